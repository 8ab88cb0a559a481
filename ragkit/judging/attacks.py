"""Changed gold answers that a judge must tell apart: damaged copies, and attacks on the judge.

The sentences around a gold answer are data, in `attacks.toml`.

>>> from ragkit.judging import load_judge
>>> frame = {"question_id": ["q"], "text": ["How long?"], "answer": ["It is open for 3 days."]}
>>> changed = perturb(pd.DataFrame(frame))
>>> changed[["change", "answer"]].head(3)
           change                      answer
0            gold      It is open for 3 days.
1  number changed      It is open for 4 days.
2         negated  It is not open for 3 days.
>>> accepted(changed, load_judge("offline"))[["change", "n", "accepted"]].head(3)
           change  n  accepted
0            gold  1         1
1  number changed  1         0
2         negated  1         0
>>> sample_attacks(held_out=True, questions=3)["change"].head(2).tolist()
['gold', "other question's"]
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pandas as pd

from ragkit import checks, datasets, text
from ragkit.judging.judges import KINDS, Judge, Task, ask
from ragkit.judging.offline_text import asks_abstention, parse
from ragkit.measures import stats

_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
CHANGES, ATTACKS, HARMLESS = (tuple(_DATA[name]) for name in ("changes", "attacks", "harmless"))
COLUMNS = ["question_id", "question", "gold", "change", "answer"]
PLAIN = ("gold", "other question's")
SAMPLES = ("enterpriserag_bench", "wixqa")
# The most gold answers that "all answers" lists.
MOST_ANSWERS = 60
_ABSTENTION = "I could not find that in the documents."
_NUMBER = re.compile(r"(?<![\w.,:/-])(\d{1,4})(?![\d:/-]|[.,]\d)")
_VERB = re.compile(
    r"\b(is|are|was|were|must|should|can|will|has|have|does|do)\b(?! not\b|n't)", re.IGNORECASE
)


def perturb(questions: pd.DataFrame) -> pd.DataFrame:
    """Return the gold answers of a frame `questions`, and damaged copies of them.

    A changed number is one more than the first whole number that the question does not have; a
    negated answer has a "not" behind its first auxiliary verb; a truncated one keeps the first
    third of its words. If that leaves the answer unchanged, there is no such row. Questions
    without a gold answer, and those whose gold answer says that there is none, are left out.
    The columns are question_id, question, gold, change (one of `CHANGES`) and answer.
    """
    kept = _answerable(questions)
    golds, rows = list(kept["gold"]), []
    for place, (name, question, gold) in enumerate(kept.itertuples(index=False, name=None)):
        changed = (
            gold,
            _renumbered(gold, question),
            _VERB.sub(r"\1 not", gold, count=1),
            " ".join(gold.split()[: max(1, len(gold.split()) // 3)]),
            golds[(place + 1) % len(golds)],
            _ABSTENTION,
        )
        rows += [
            (name, question, gold, change, answer)
            for change, answer in zip(CHANGES, changed, strict=True)
            if change == "gold" or answer != gold
        ]
    return pd.DataFrame(rows, columns=COLUMNS)


def attack(
    questions: pd.DataFrame,
    documents: Mapping[str, str] | None = None,
    *,
    held_out: bool = True,
) -> pd.DataFrame:
    """Return gold answers that are changed to please a judge, and harmless changes of them.

    "taken back", "more numbers", "hedged" and "harmless" are templates of `attacks.toml`, one at
    random for each question: with `held_out` one that took no part in the calibration of the
    offline judge. "all answers" lists the gold answers to 60 questions, in a random order;
    "shuffled" has the words of the gold answer in a random order; "sorted keywords" its words that
    are no stop words, in alphabetical order; "whole document" is the text of a gold document, of
    the `documents` by id; "extracted" adds one or two sentences of it to the gold answer. "injected
    answer" and "injected document" are instructions to the judge, behind the gold answer to another
    question and behind a document that is not gold; they are never used for a calibration.

    The frames are as in `perturb`; change is one of `ATTACKS` or `HARMLESS`.
    """
    kept, rng = _answerable(questions), random.Random(0)
    listed_docs = questions.loc[kept.index, "gold_doc_ids"]
    tables = _DATA["templates"].items()
    templates = {name: table["held_out" if held_out else "fit"] for name, table in tables}
    golds, rows, texts = list(kept["gold"]), [], list((documents or {}).items())
    for (name, question, gold), docs in zip(kept.to_numpy(), listed_docs, strict=True):
        others = [answer for answer in golds if answer != gold] or [_ABSTENTION]
        numbers = dict(zip("abc", rng.sample(range(3, 999), 3), strict=True))
        filled = {"gold": gold, "other": rng.choice(others), **numbers}
        changed = {change: rng.choice(own).format(**filled) for change, own in templates.items()}
        listed = [gold, *rng.sample(others, min(len(others), MOST_ANSWERS - 1))]
        changed["all answers"] = "\n".join(rng.sample(listed, len(listed)))
        changed["shuffled"] = " ".join(rng.sample(gold.split(), len(gold.split())))
        words = {word.strip(".,;:!?()\"'") for word in gold.split()}
        keywords = sorted(word for word in words if word.lower() not in text.STOP_WORDS)
        changed["sorted keywords"] = ", ".join(filter(None, keywords))
        whole = next((documents[doc] for doc in docs if doc in documents), "") if documents else ""
        if whole:
            lines = text.sentences(whole)
            some = rng.sample(lines, min(len(lines), rng.choice((1, 2))))
            changed |= {"whole document": whole, "extracted": " ".join([gold, *some])}
        if held_out:  # drawn apart, so that the attacks above are the same without them
            own = random.Random(f"0/{name}")
            filled["document"] = own.choice([t for d, t in texts if d not in docs] or [""])
            for change, lines in _DATA["injected"].items():
                if filled["document"] or change != "injected document":
                    changed[change] = own.choice(lines).format(**filled)
        rows += [(name, question, gold, change, answer) for change, answer in changed.items()]
    return pd.DataFrame(rows, columns=COLUMNS)


@cache
def sample_attacks(*, held_out: bool, questions: int = 0) -> pd.DataFrame:
    """Return attacks on the gold answers of the embedded samples, with their documents.

    Held out are the templates (see `attack`) and the questions: the calibration attacks every
    second question, `held_out` the others.

    For a slow judge, `questions` draws so many of each sample (0: all). "all answers" then lists
    theirs alone, and `PLAIN` answers of `perturb` are added. Rows of a question stand together,
    for a server's cache of prompts, and the samples take turns: a stopped run judged some of both.
    """
    parts, turns, drawn = [], {}, checks.whole(questions, "questions", least=0)
    for number, sample in enumerate(map(datasets.load, SAMPLES)):
        own = sample.questions.iloc[int(held_out) :: 2]
        if drawn:
            own = own.loc[_answerable(own).index]
            own = own.sample(min(drawn, len(own)), random_state=0).reset_index(drop=True)
            made = perturb(own)
            parts.append(made[made["change"].isin(PLAIN)])
            turns |= {name: (place, number) for place, name in enumerate(own["question_id"])}
        texts = sample.documents.set_index("doc_id")["text"].to_dict()
        parts.append(attack(own, texts, held_out=held_out))
    found = pd.concat(parts, ignore_index=True)
    if not drawn:
        return found
    turn = pd.Series(turns)
    return found.sort_values(
        "question_id", key=lambda ids: ids.map(turn), kind="stable", ignore_index=True
    )


def accepted(frame: pd.DataFrame, judge: Judge) -> pd.DataFrame:
    """Return how many answers of `perturb` or `attack` a judge accepts, by change.

    An injected document is accepted if the judge calls it valid or required; a judge that does not
    classify documents gets none. The columns are change, n (verdicts given), accepted (of them,
    those that are a sure yes), unsure, missing, and the share accepted with Wilson's interval:
    value, low, high (NaN without a verdict).
    """
    kinds = frame["change"].map({"injected document": "validity"}).fillna("correctness")
    found = frame.assign(kind=kinds, document=frame["answer"])[kinds.isin(judge.kinds)]
    rows = found.to_dict("records")
    asked = [Task.of(r["kind"], *(r[name] for name in KINDS[r["kind"]].fields)) for r in rows]
    verdicts = ask(judge, asked)
    found["missing"] = [verdict.missing for verdict in verdicts]
    found["unsure"] = [verdict.unsure for verdict in verdicts]
    yes = (True, "valid", "required")
    found["accepted"] = [one.value in yes and not one.unsure for one in verdicts]
    found = found[["change", "missing", "unsure", "accepted"]]
    table = found.groupby("change", sort=False).sum()
    table["n"] = found.groupby("change").size() - table["missing"]
    counts = table[["accepted", "n"]].to_numpy().tolist()
    none = [float("nan")] * 3
    ends = [stats.wilson_interval(k, n)[:3] if n else none for k, n in counts]
    table[["value", "low", "high"]] = ends
    order = [one for one in (*CHANGES, *ATTACKS, *HARMLESS) if one in table.index]
    columns = "change n accepted unsure missing value low high".split()
    return table.loc[order].reset_index()[columns]


def _answerable(questions: pd.DataFrame) -> pd.DataFrame:
    """Return question_id, question and gold of the questions that have an answer."""
    kept = questions[["question_id", "text", "answer"]].dropna(subset="answer")
    kept = kept[~kept["answer"].map(asks_abstention).astype(bool)]
    return kept.set_axis(COLUMNS[:3], axis=1)


def _renumbered(gold: str, question: str) -> str:
    asked = parse(question).numbers
    for found in _NUMBER.finditer(gold):
        if found[1] not in asked:
            return f"{gold[: found.start()]}{int(found[1]) + 1}{gold[found.end() :]}"
    return gold
