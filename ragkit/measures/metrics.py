"""Scores of answers against gold answers, and of ranked lists against gold documents.

`token_f1`, `corpus_bleu` and `rouge_n` are defined as FlashRAG defines them, the tool that WixQA
used. Measures of the same names that others mean have names of their own: `squad_f1`,
`google_rouge_n`, `google_rouge_l`, `sacre_bleu` and `sentence_bleu`. All lie between 0 and 1;
higher is better. With several gold answers the best one counts, except where said otherwise.

An empty answer scores 0. An answer that is missing (`None`) has no score: NaN from a function, no
row in a frame; the tables count both.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import pandas as pd

from ragkit import schema
from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.measures import stats

Golds = str | Sequence[str]

# What a yes or no answer must equal as a whole to get any token F1.
CLOSED = frozenset({"yes", "no", "noanswer"})
ORDER = 4  # longest n-gram of BLEU

_MARKS = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_LATIN_WORD = re.compile(r"[a-z0-9]+")
# The four steps of mteval-v13a: all ASCII marks but ' , - . stand alone; full stop and comma do
# unless a digit is before (second) or behind (third); a hyphen does behind a digit.
_ALONE = re.escape("".join(sorted(set(string.punctuation) - set("',-."))))
_MTEVAL = (
    (re.compile(f"([ {_ALONE}])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


# -- one answer -------------------------------------------------------------------------------


def token_f1(prediction: str | None, golds: Golds) -> float:
    """Return the F1 of the words that an answer and its gold answer share (FlashRAG `f1`).

    Words are what remains after lower-casing, dropping ASCII punctuation and the words a, an and
    the, and splitting on white space; a repeated word counts as often as both have it. If either
    text is just "yes", "no" or "noanswer", only the same text scores.

    Parameters
    ----------
    prediction : str or None
    golds : str or sequence of str
        The gold answer, or several.

    Returns
    -------
    float in [0, 1], or NaN if `prediction` is None
        Symmetric in prediction and gold.

    Raises
    ------
    DataError
        If there is no gold answer, or something is no string.

    References
    ----------
    WixQA, section 4; FlashRAG (Jin et al. 2024). The yes/no rule is HotpotQA's.
    """
    return _best(prediction, golds, _normalized, partial(_bag_f1, closed=True))


def squad_f1(prediction: str | None, golds: Golds) -> float:
    """Return SQuAD's token F1: `token_f1` without the rule for "yes", "no" and "noanswer".

    References
    ----------
    Rajpurkar et al. (2016), SQuAD, section 6.1.
    """
    return _best(prediction, golds, _normalized, _bag_f1)


def exact_match(prediction: str | None, golds: Golds) -> float:
    """Return 1 if an answer equals a gold answer word by word, after `token_f1`'s clean-up.

    References
    ----------
    Rajpurkar et al. (2016), SQuAD, section 6.1; FlashRAG `em`.
    """
    return _best(prediction, golds, _normalized, lambda mine, gold: float(mine == gold))


def rouge_n(prediction: str | None, golds: Golds, n: int) -> float:
    """Return ROUGE-N as FlashRAG has it: the F of two *sets* of n-grams.

    Words are split on full stops and white space; case and other punctuation are kept and nothing
    is stemmed. An empty stretch between two full stops is a word of its own, and 1e-8 is added to
    the denominator of F, so that equal texts score 1 - 5e-9: both as in the package `rouge` 1.0.1
    that FlashRAG calls. A text of fewer than n words scores 0.

    Parameters
    ----------
    prediction : str or None
    golds : str or sequence of str
    n : int >= 1

    Returns
    -------
    float in [0, 1), or NaN if `prediction` is None
        Symmetric in prediction and gold.

    Raises
    ------
    DataError
        If there is no gold answer, or something is no string.
    UsageError
        If `n` is no positive integer.

    References
    ----------
    WixQA, section 4; FlashRAG `rouge-1`, `rouge-2`.
    """
    _check_order(n)
    return _best(prediction, golds, partial(_dotted_ngrams, n=n), _set_f)


def google_rouge_n(prediction: str | None, golds: Golds, n: int) -> float:
    """Return ROUGE-N as Google's `rouge-score` has it: the F of two bags of n-grams.

    Words are runs of a to z and 0 to 9 after lower-casing, not stemmed.

    Parameters
    ----------
    prediction : str or None
    golds : str or sequence of str
    n : int >= 1

    Returns
    -------
    float in [0, 1], or NaN if `prediction` is None

    Raises
    ------
    DataError, UsageError
        As in `rouge_n`.

    References
    ----------
    Lin (2004), ROUGE: a package for automatic evaluation of summaries, section 2.
    """
    _check_order(n)
    return _best(prediction, golds, lambda text: list(_ngrams(_latin_words(text), n)), _bag_f1)


def google_rouge_l(prediction: str | None, golds: Golds) -> float:
    """Return ROUGE-L as Google's `rouge-score` has it: the F of the longest common subsequence.

    Words are those of `google_rouge_n`; the text is one sentence.

    References
    ----------
    Lin (2004), section 3.1; Hyyrö (2004), Bit-parallel LCS-length computation revisited.
    """
    return _best(prediction, golds, _latin_words, _subsequence_f)


def sentence_bleu(prediction: str | None, golds: Golds) -> float:
    """Return the BLEU of one answer as sacreBLEU has it, over 100.

    13a tokens, case kept, n-grams up to 4 or the answer's length, exponential smoothing, all gold
    answers together as references.

    References
    ----------
    Post (2018), A call for clarity in reporting BLEU scores.
    """
    if prediction is None:
        return math.nan
    counts = _bleu_counts(_text(prediction).rstrip(), [gold.rstrip() for gold in _golds(golds)])
    return float(_sacre(counts, effective_order=True))


# -- one system -------------------------------------------------------------------------------


def corpus_bleu(
    predictions: Sequence[str | None], golds: Sequence[Golds], *, smooth: bool = False
) -> float:
    """Return the BLEU of all answers together, as FlashRAG has it (0 to 1).

    13a tokens with case, n-grams up to 4, clipped by the gold answer that has most of them, no
    smoothing. The length that the brevity penalty compares with is each question's *shortest* gold
    answer; with one gold answer each, this is unsmoothed sacreBLEU over 100.

    Parameters
    ----------
    predictions : sequence of (str or None), length n
        Missing answers (None) are left out with their gold answers; empty ones count.
    golds : sequence of (str or sequence of str), length n
    smooth : bool, default=False
        Add one to every count of n-grams, as FlashRAG's `bleu_smooth` does.

    Returns
    -------
    float in [0, 1], or NaN if all answers are missing

    Raises
    ------
    DataError
        If the lengths differ, there is no answer or no gold answer, or something is no string.

    References
    ----------
    Papineni et al. (2002), BLEU; Lin and Och (2004), ORANGE, section 4; WixQA, section 4.
    """
    rows = _bleu_rows(predictions, golds)
    return float(_flashrag(rows.sum(axis=0), smooth=smooth)) if len(rows) else math.nan


def sacre_bleu(predictions: Sequence[str | None], golds: Sequence[Golds]) -> float:
    """Return the BLEU of all answers together with sacreBLEU's default settings, over 100.

    Unlike `corpus_bleu`, orders without a match are smoothed exponentially, and the brevity
    penalty compares with the gold answer of the nearest length.

    Parameters, Returns, Raises
    ---------------------------
    As in `corpus_bleu`.

    References
    ----------
    Post (2018), A call for clarity in reporting BLEU scores.
    """
    rows = _bleu_rows(predictions, golds, strip=True)
    return float(_sacre(rows.sum(axis=0))) if len(rows) else math.nan


# -- frames -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """A row of `METRICS` or `CORPUS_METRICS`: the function and, in a few words, whose it is."""

    function: Callable
    origin: str


METRICS = {
    "token_f1": Metric(token_f1, "FlashRAG f1"),
    "rouge_1": Metric(partial(rouge_n, n=1), "FlashRAG rouge-1"),
    "rouge_2": Metric(partial(rouge_n, n=2), "FlashRAG rouge-2"),
    "exact_match": Metric(exact_match, "SQuAD and FlashRAG em"),
    "squad_f1": Metric(squad_f1, "SQuAD"),
    "google_rouge_1": Metric(partial(google_rouge_n, n=1), "rouge-score rouge1, not stemmed"),
    "google_rouge_2": Metric(partial(google_rouge_n, n=2), "rouge-score rouge2, not stemmed"),
    "google_rouge_l": Metric(google_rouge_l, "rouge-score rougeL, not stemmed"),
    "sentence_bleu": Metric(sentence_bleu, "sacreBLEU, sentence level"),
}
CORPUS_METRICS = {
    "corpus_bleu": Metric(corpus_bleu, "FlashRAG bleu"),
    "sacre_bleu": Metric(sacre_bleu, "sacreBLEU, default settings"),
}
# The measures of WixQA's Tables 3 to 5 that need no judge.
WIXQA_METRICS = ("token_f1", "corpus_bleu", "rouge_1", "rouge_2")
# Measures of ranked lists, in the notation of ir_measures; those that need no cutoff.
_CUT = ("R", "P", "RR", "nDCG", "Success", "AP")
_UNCUT = ("RR", "nDCG", "AP")
_MEASURE = re.compile(rf"(?P<name>{'|'.join(_CUT)})(?:@(?P<cutoff>[1-9][0-9]{{0,5}}))?")
RETRIEVAL_MEASURES = ("R@1", "R@5", "R@10", "P@5", "RR", "nDCG@10", "Success@5")


def score_answers(
    answers: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    metrics: Sequence[str] = ("token_f1", "rouge_1", "rouge_2"),
) -> pd.DataFrame:
    """Score every answer to a question that has a gold answer.

    Parameters
    ----------
    answers : DataFrame
        Columns system, question_id, answer, doc_ids. An empty answer scores 0. An answer None and
        answers to other questions give no row; `summarise_answers` counts the former.
    questions : DataFrame
        With question_id and answer: the gold answer, a sequence of several, or None.
    metrics : sequence of str
        Names in `METRICS`.

    Returns
    -------
    DataFrame
        subject_id (the system), item_id (the question), metric, score: one row per answer and
        metric, metric by metric, in the order of `answers`. One metric's rows are a `scores`
        frame.

    Raises
    ------
    DataError
        If a frame is not valid, or a system has no row for any question with a gold answer.
    UsageError
        If a metric is unknown, or one of whole systems.
    """
    metrics = _names(metrics, METRICS, "metric", CORPUS_METRICS)
    present = _joined(answers, questions).dropna(subset=["answer"])
    texts, golds = present["answer"].tolist(), present["golds"].tolist()
    parts = [
        pd.DataFrame(
            {
                "subject_id": present["system"].to_numpy(),
                "item_id": present["question_id"].to_numpy(),
                "metric": name,
                "score": np.array(list(map(METRICS[name].function, texts, golds)), dtype=float),
            }
        )
        for name in metrics
    ]
    return pd.concat(parts, ignore_index=True)


def summarise_answers(
    answers: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    metrics: Sequence[str] = WIXQA_METRICS,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """Return each system's metrics with BCa bootstrap intervals over questions.

    Parameters
    ----------
    answers, questions
        As in `score_answers`.
    metrics : sequence of str
        Names in `METRICS` (means over answers) and `CORPUS_METRICS`.
    level, n_resamples, seed
        As in `ragkit.measures.stats.bootstrap_interval`.

    Returns
    -------
    DataFrame
        One row per system and metric: system, metric, n answers scored, of which empty; missing
        (the answer is None), absent (no row for the question), no_gold (questions without a gold
        answer: left out); value, low, high. A system without any answer has NaN.

    Raises
    ------
    DataError, UsageError
        As in `score_answers`.
    """
    metrics = _names(metrics, {**METRICS, **CORPUS_METRICS}, "metric")
    joined = _joined(answers, questions)
    asked = int(questions["answer"].notna().sum())
    options = {"level": level, "n_resamples": n_resamples, "seed": seed}
    table = []
    for system, rows in joined.groupby("system", sort=False):
        rows = rows.sort_values("question_id")
        present = rows.dropna(subset=["answer"])
        texts, golds = present["answer"].tolist(), present["golds"].tolist()
        counts = (
            len(present),
            sum(not text.strip() for text in texts),
            len(rows) - len(present),
            asked - len(rows),
            len(questions) - asked,
        )
        for name in metrics:
            if not texts:
                value, low, high = math.nan, math.nan, math.nan
            elif name in METRICS:
                scores = list(map(METRICS[name].function, texts, golds))
                value, low, high, _ = stats.bootstrap_interval(scores, **options)
            else:
                counter, statistic = _CORPUS[name]
                value, low, high, _ = stats.bootstrap_statistic(
                    counter(texts, golds), statistic, **options
                )
            table.append((system, name, *counts, value, low, high))
    columns = ["system", "metric", "n", "empty", "missing", "absent", "no_gold"]
    return pd.DataFrame(table, columns=[*columns, "value", "low", "high"])


def compare_corpus(
    answers: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    metric: str = "corpus_bleu",
    baseline: str | None = None,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare systems by a metric that is no mean over questions.

    Parameters
    ----------
    answers, questions
        As in `score_answers`.
    metric : {"corpus_bleu", "sacre_bleu"}
    baseline, level, n_resamples, seed
        As in `ragkit.measures.stats.compare_systems`.

    Returns
    -------
    DataFrame
        As `ragkit.measures.stats.compare_systems`, with a column metric, for pairs in order of appearance.
        The interval resamples questions; the test exchanges the two answers to a question.

    Raises
    ------
    DataError, UsageError
        As in `score_answers` and `ragkit.measures.stats.compare_systems`.

    References
    ----------
    Koehn (2004), Statistical significance tests for machine translation evaluation; Riezler and
    Maxwell (2005), On some pitfalls in automatic evaluation and significance testing for MT.
    """
    (metric,) = _names([metric], CORPUS_METRICS, "corpus metric")
    counter, statistic = _CORPUS[metric]
    present = _joined(answers, questions).dropna(subset=["answer"])
    systems = list(dict.fromkeys(present["system"]))
    items = sorted(set(present["question_id"]))
    place = {item: number for number, item in enumerate(items)}
    rows = np.zeros((len(items), len(systems), _COLUMNS))
    mask = np.zeros((len(items), len(systems)), dtype=bool)
    for number, system in enumerate(systems):
        own = present[present["system"] == system]
        at = own["question_id"].map(place).to_numpy()
        rows[at, number] = counter(own["answer"].tolist(), own["golds"].tolist())
        mask[at, number] = True
    table = stats.compare_statistics(
        rows,
        mask,
        systems,
        statistic,
        baseline=baseline,
        level=level,
        n_resamples=n_resamples,
        seed=seed,
    )
    table.insert(0, "metric", metric)
    return table


def retrieval(
    runs: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    measures: Sequence[str] = RETRIEVAL_MEASURES,
) -> pd.DataFrame:
    """Score the ranked list of every system for every question that has gold documents.

    The order is that of `rank`, so ties of the score are where the system put them. A question for
    which a system found nothing scores 0, as trec_eval's `-c` has it; `questions` are therefore
    those that were asked.

    Parameters
    ----------
    runs : DataFrame
        Columns system, question_id, rank, doc_id, score. Other questions are left out.
    questions : DataFrame
        With question_id and gold_doc_ids; those without gold documents are left out.
    measures : sequence of str
        In the notation of ir_measures: R@k (recall), P@k (precision: over k, however many were
        found), Success@k (any gold document among the first k), RR (reciprocal rank, whose mean is
        MRR), nDCG and AP, the last three with or without a cutoff. Gold documents count alike.

    Returns
    -------
    DataFrame
        subject_id (the system), item_id (the question), metric, score in [0, 1], retrieved
        (documents found): system by system, in the order of `runs` and `questions`, the measures
        in the order given.

    Raises
    ------
    DataError
        If a frame is not valid, no question has gold documents, a list holds a document twice, or
        a system has none of the questions.
    UsageError
        If a measure is unknown.

    References
    ----------
    MacAvaney, Macdonald and Ounis (2022), Streamlining evaluation with ir-measures.
    """
    import ir_measures

    parsed = _measures(measures)
    judged = _judged(questions)
    runs = _known_runs(runs, questions)
    qrels = {question: dict.fromkeys(gold, 1) for question, gold in judged.items()}
    judge = ir_measures.evaluator(list(parsed.values()), qrels)
    parts = []
    for system, rows in runs.groupby("system", sort=False):
        rows = rows[rows["question_id"].isin(judged)].sort_values("rank", kind="stable")
        # trec_eval sorts by score in single precision; a negated place is exact there.
        lists = {
            question: dict(zip(found, range(0, -len(found), -1), strict=True))
            for question, found in rows.groupby("question_id", sort=False)["doc_id"]
        }
        scores = {(found.query_id, found.measure): found.value for found in judge.iter_calc(lists)}
        parts += [
            (
                system,
                question,
                name,
                scores.get((question, measure), 0.0),
                len(lists.get(question, ())),
            )
            for question in judged
            for name, measure in parsed.items()
        ]
    return pd.DataFrame(parts, columns=["subject_id", "item_id", "metric", "score", "retrieved"])


def summarise_retrieval(
    runs: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    measures: Sequence[str] = RETRIEVAL_MEASURES,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """Return each system's mean measures with BCa bootstrap intervals over questions.

    Parameters
    ----------
    runs, questions, measures
        As in `retrieval`.
    level, n_resamples, seed
        As in `ragkit.measures.stats.bootstrap_interval`.

    Returns
    -------
    DataFrame
        One row per system and measure: system, metric, n questions scored, of which nothing_found
        (an empty list), no_gold (questions without gold documents: left out), value, low, high.

    Raises
    ------
    DataError, UsageError
        As in `retrieval`.
    """
    scores = retrieval(runs, questions, measures=measures)
    table = stats.summarise(scores, level=level, n_resamples=n_resamples, seed=seed)
    groups = scores.groupby(["metric", "subject_id"])["retrieved"]
    empty = groups.apply(lambda found: int((found == 0).sum()))
    table.insert(
        3,
        "nothing_found",
        [empty[key] for key in zip(table["metric"], table["subject_id"], strict=True)],
    )
    table.insert(4, "no_gold", len(questions) - scores["item_id"].nunique())
    table = table.rename(columns={"subject_id": "system", "mean": "value"})
    table = table[["system", "metric", *table.columns[2:]]]
    order = {system: number for number, system in enumerate(dict.fromkeys(scores["subject_id"]))}
    return table.sort_values("system", key=lambda s: s.map(order), kind="stable", ignore_index=True)


# -- texts ------------------------------------------------------------------------------------


def _best(prediction, golds, prepare, compare) -> float:
    golds = _golds(golds)
    if prediction is None:
        return math.nan
    if not _text(prediction).strip():
        return 0.0
    mine = prepare(prediction)
    return max(compare(mine, prepare(gold)) for gold in golds)


def _text(value) -> str:
    if not isinstance(value, str):
        raise DataError(
            f"an answer should be a string, found {value!r:.80}",
            "a missing answer is None, an empty one ''",
        )
    return value


def _golds(golds) -> list[str]:
    golds = [golds] if isinstance(golds, str) else golds
    try:
        golds = list(golds)
    except TypeError:
        raise DataError(f"a gold answer should be a string, found {golds!r:.80}") from None
    if not golds:
        raise DataError("there is no gold answer", "leave the question out and count it")
    for gold in golds:
        if not isinstance(gold, str) or not gold.strip():
            raise DataError(f"a gold answer should be a text, found {gold!r:.80}")
    return golds


def _normalized(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_MARKS)).split()


def _latin_words(text: str) -> list[str]:
    return _LATIN_WORD.findall(text.lower())


def _dotted_ngrams(text: str, n: int) -> set:
    words = list(chain.from_iterable(part.split() or ("",) for part in text.split(".") if part))
    return set(words) if n == 1 else set(_ngrams(words, n))


def _ngrams(words: Sequence[str], n: int):
    return zip(*(words[start:] for start in range(n)), strict=False)


def _bag_f1(mine: list, gold: list, *, closed: bool = False) -> float:
    if closed and mine != gold and (_closed(mine) or _closed(gold)):
        return 0.0
    shared = sum((Counter(mine) & Counter(gold)).values())
    if shared == 0:
        return 0.0
    precision, recall = shared / len(mine), shared / len(gold)
    return 2 * precision * recall / (precision + recall)


def _closed(words: list[str]) -> bool:
    return len(words) == 1 and words[0] in CLOSED


def _set_f(mine: set, gold: set) -> float:
    shared = len(mine & gold)
    if shared == 0:
        return 0.0
    precision, recall = shared / len(mine), shared / len(gold)
    return 2.0 * (precision * recall / (precision + recall + 1e-8))


def _subsequence_f(mine: list[str], gold: list[str]) -> float:
    # Bit i of `row` is 0 where the table's row steps up at word i: one addition a row.
    masks: dict[str, int] = {}
    for place, word in enumerate(gold):
        masks[word] = masks.get(word, 0) | 1 << place
    full = row = (1 << len(gold)) - 1
    for word in mine:
        hits = row & masks.get(word, 0)
        row = ((row + hits) | (row - hits)) & full
    length = len(gold) - row.bit_count()
    if length == 0:
        return 0.0
    precision, recall = length / len(mine), length / len(gold)
    return 2 * precision * recall / (precision + recall)


def _check_order(n) -> None:
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise UsageError(f"n should be an integer of at least 1, found {n!r}")


# -- BLEU: counts of one answer, summed over answers, make the score ----------------------------

# Words; words of the shortest and of the nearest gold answer; shared and possible n-grams.
_COLUMNS = 3 + 2 * ORDER


def _mteval_tokens(text: str) -> list[str]:
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    text = f" {text} "
    for pattern, spaced in _MTEVAL:
        text = pattern.sub(spaced, text)
    return text.split()


def _bleu_counts(prediction: str, golds: list[str]) -> np.ndarray:
    mine = _mteval_tokens(prediction)
    references = [_mteval_tokens(gold) for gold in golds]
    lengths = sorted(map(len, references))
    row = [len(mine), lengths[0], min(lengths, key=lambda length: abs(length - len(mine)))]
    shared = []
    for n in range(1, ORDER + 1):
        most = Counter(_ngrams(references[0], n))
        for reference in references[1:]:
            most |= Counter(_ngrams(reference, n))
        shared.append(sum((Counter(_ngrams(mine, n)) & most).values()))
    possible = [max(len(mine) - n + 1, 0) for n in range(1, ORDER + 1)]
    return np.array(row + shared + possible, dtype=float)


def _bleu_rows(predictions, golds, *, strip: bool = False) -> np.ndarray:
    if isinstance(predictions, str) or isinstance(golds, str):
        raise DataError(
            "expected several answers, found one string", "one answer has sentence_bleu"
        )
    predictions, golds = list(predictions), list(golds)
    if len(predictions) != len(golds):
        raise DataError(
            f"expected as many gold answers as answers, found {len(golds)} and {len(predictions)}"
        )
    if not predictions:
        raise DataError("there is no answer")
    rows = []
    for prediction, gold in zip(predictions, golds, strict=True):
        gold = _golds(gold)
        if prediction is None:
            continue
        _text(prediction)
        if strip:
            prediction, gold = prediction.rstrip(), [text.rstrip() for text in gold]
        rows.append(_bleu_counts(prediction, gold))
    return np.array(rows).reshape(len(rows), _COLUMNS)


def _flashrag(sums: np.ndarray, n: int = 0, *, smooth: bool = False) -> np.ndarray:
    shared, possible = sums[..., 3 : 3 + ORDER] + smooth, sums[..., 3 + ORDER :] + smooth
    precision = shared / np.maximum(possible, 1)
    return _brevity(sums[..., 0], sums[..., 1]) * _geometric_mean(precision)


def _sacre(sums: np.ndarray, n: int = 0, *, effective_order: bool = False) -> np.ndarray:
    shared, possible = sums[..., 3 : 3 + ORDER], sums[..., 3 + ORDER :]
    # The k-th order without a match counts as 1 / 2^k of one.
    without = (shared == 0) & (possible > 0)
    smoothed = np.where(without, 0.5 ** np.cumsum(without, axis=-1), shared)
    precision = smoothed / np.maximum(possible, 1)
    used = possible > 0 if effective_order else np.ones_like(possible, dtype=bool)
    mean = _geometric_mean(precision, used)
    matched = shared.any(axis=-1)
    return np.where(matched, _brevity(sums[..., 0], sums[..., 2]) * mean, 0.0)


def _geometric_mean(precision: np.ndarray, used: np.ndarray | None = None) -> np.ndarray:
    used = np.ones_like(precision, dtype=bool) if used is None else used
    logs = np.log(np.where(precision > 0, precision, 1.0)) * used
    mean = np.exp(logs.sum(axis=-1) / np.maximum(used.sum(axis=-1), 1))
    return np.where(((precision > 0) | ~used).all(axis=-1), mean, 0.0)


def _brevity(length: np.ndarray, reference: np.ndarray) -> np.ndarray:
    penalty = np.exp(1 - reference / np.maximum(length, 1))
    return np.where(length == 0, 0.0, np.minimum(penalty, 1.0))


_CORPUS = {
    "corpus_bleu": (_bleu_rows, _flashrag),
    "sacre_bleu": (partial(_bleu_rows, strip=True), _sacre),
}


# -- checks of frames -------------------------------------------------------------------------


def _names(names, known: dict, kind: str, elsewhere: dict | None = None) -> list[str]:
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise UsageError(f"no {kind} was asked for", f"known: {', '.join(known)}")
    for name in names:
        if elsewhere and name in elsewhere:
            raise UsageError(
                f"{name} has no value for a single answer", "use summarise_answers for it"
            )
        if name not in known:
            raise UsageError(f"no {kind} {name!r}", did_you_mean(name, known))
    return list(dict.fromkeys(names))


def _joined(answers: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """Return the answers to questions that have a gold answer, with a column `golds`."""
    schema.check(answers, "answers", "answers")
    _check_questions(questions, "answer")
    answered = questions[questions["answer"].notna()]
    if answered.empty:
        raise DataError("no question has a gold answer")
    _check_overlap(answers, answered, " with a gold answer")
    known = answered.set_index("question_id")["answer"]
    rows = answers[answers["question_id"].isin(known.index)]
    golds = [known[question] for question in rows["question_id"]]
    return rows[["system", "question_id", "answer"]].assign(golds=pd.Series(golds, rows.index))


def _judged(questions: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    _check_questions(questions, "gold_doc_ids")
    gold = dict(zip(questions["question_id"], questions["gold_doc_ids"], strict=True))
    gold = {question: docs for question, docs in gold.items() if len(docs)}
    if not gold:
        raise DataError("no question has gold documents")
    return gold


def _known_runs(runs: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    schema.check(runs, "runs", "runs")
    _check_overlap(runs, questions)
    ranks = pd.to_numeric(runs["rank"], errors="coerce")
    if not (ranks >= 1).all():
        row = int((~(ranks >= 1)).to_numpy().argmax())
        raise DataError(
            f"runs: row {row + 1}: rank should be a number from 1, found {runs['rank'].iloc[row]!r}"
        )
    repeated = runs.duplicated(["system", "question_id", "doc_id"])
    if repeated.any():
        row = runs[repeated].iloc[0]
        raise DataError(
            f"runs: {row['system']!r} lists {row['doc_id']!r} twice for {row['question_id']!r}",
            "of a document's chunks keep the best",
        )
    return runs.assign(rank=ranks)


def _check_questions(questions: pd.DataFrame, column: str) -> None:
    for name in ("question_id", column):
        if name not in questions.columns:
            raise DataError(
                f"questions lack the column {name!r}",
                f"found {', '.join(map(str, questions.columns))}",
            )
    repeated = questions["question_id"].duplicated()
    if repeated.any():
        name = questions["question_id"][repeated].iloc[0]
        raise DataError(f"questions: {name!r} is there twice")


def _check_overlap(frame: pd.DataFrame, questions: pd.DataFrame, which: str = "") -> None:
    if frame.empty:
        raise DataError("there is no row to score")
    known = frame["question_id"].isin(questions["question_id"]).groupby(frame["system"]).any()
    if not known.all():
        system = known.index[~known][0]
        example = frame.loc[frame["system"] == system, "question_id"].iloc[0]
        raise DataError(
            f"{system!r} has none of the {len(questions)} questions{which}: it has {example!r}, "
            f"they begin with {questions['question_id'].iloc[0]!r}"
        )


def _measures(names: Sequence[str]) -> dict:
    import ir_measures

    names = [names] if isinstance(names, str) else list(names)
    hint = f"known: {', '.join(name + '@k' for name in _CUT)}, {', '.join(_UNCUT)}"
    if not names:
        raise UsageError("no measure was asked for", hint)
    parsed = {}
    for name in names:
        # Checked here, because trec_eval ends the whole process on a cutoff of 0.
        found = _MEASURE.fullmatch(name) if isinstance(name, str) else None
        if found is None or (found["cutoff"] is None and found["name"] not in _UNCUT):
            raise UsageError(f"no retrieval measure {name!r}", hint)
        parsed[name] = ir_measures.parse_measure(name)
    return parsed
