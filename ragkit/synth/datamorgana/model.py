"""DataMorgana with a language model: LiveRAG's pipeline (section 2, appendix A), prompts our own.

What was answered is in the ledger: the same command goes on where it was interrupted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

from ragkit.errors import ModelError, UsageError
from ragkit.llm import Client, Request, load_prompt
from ragkit.synth.author import AuthorOptions
from ragkit.synth.datamorgana import sampling
from ragkit.synth.datamorgana.company import Company
from ragkit.synth.datamorgana.config import Config
from ragkit.synth.datamorgana.filters import Score, judge
from ragkit.synth.datamorgana.make import Benchmark, _sessions, note, report, row
from ragkit.synth.datamorgana.wording import QUERY, SHORT
from ragkit.synth.model import ANSWERED
from ragkit.synth.streams import Stream

PROMPTS = Path(__file__).parent / "prompts"
TOPICS, SUBTOPICS = 12, 8
TITLES = 80
QUERIES = 3  # for a second document
CANDIDATES = 5  # documents for each of them
ROUNDS = 3  # documents tried for a question
RESERVE = 2.0  # documents rated for each one needed
PARAMETERS = {"max_tokens": 1200}


def _array(item: dict, n: int) -> dict:
    return {"type": "array", "items": item, "minItems": 1, "maxItems": n}


def _object(**properties) -> dict:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT = {"type": "string", "minLength": 1}
RATING = {"type": "integer", "minimum": 1, "maximum": 5}
CLAIMS = {"type": "array", "items": TEXT}
SCHEMAS = {
    "topics": _object(topics=_array(TEXT, 50)),
    "subtopics": _object(topics=_array(TEXT, 50)),
    "filter": _object(
        factuality=RATING,
        interest=RATING,
        credibility=RATING,
        toxicity=RATING,
        sexuality=RATING,
        freshness=RATING,
    ),
    "complement": _object(pairs=_array(_object(question=TEXT, query=TEXT), 10)),
    "choose": _object(reason=TEXT, number={"type": "integer", "minimum": 0}),
    "question": _object(question=TEXT, answer=TEXT),
    "claims": _object(direct={**CLAIMS, "minItems": 1}, useful=CLAIMS, useless=CLAIMS),
}


class ModelWriter:
    """Ask a model for topics, ratings, partners, questions and claims, stage by stage.

    Parameters
    ----------
    name : str
        `openai:MODEL`.
    company : Company
        Documents; facts are not needed.
    config : Config
    seed : int
    progress : callable, optional
    options : AuthorOptions
    """

    def __init__(
        self,
        name: str,
        company: Company,
        config: Config,
        seed: int,
        progress=None,
        options: AuthorOptions | None = None,
    ):
        self.client = Client(name, **asdict(options or AuthorOptions()), parameters=PARAMETERS)
        self.name, self.company, self.config, self.seed = name, company, config, seed
        self.progress = progress or (lambda *_: None)
        self.failed: Counter[str] = Counter()

    def estimate(self, questions: int) -> list[str]:
        """Return counts, and the cost of rating and asking as far as it can be known before."""
        ids = self._order(list(self.company.documents))[: self._needed(questions)]
        rated = [self._request("filter", document=self.company.text(d)) for d in ids]
        drawn = self._draw(questions)
        asked = [
            self._asked(
                c, tuple(Stream(self.seed, "guess", i).sample(ids, self.config.documents(c)))
            )
            for i, c in enumerate(drawn)
        ]
        return [
            f"{len(self.company.documents):,} documents, {len(ids):,} to be rated, {questions:,} questions",
            str(self.client.dry_run([*rated, *asked])),
            "topics, second documents and claims come on top, less than as much again",
        ]

    def make(self, questions: int) -> Benchmark:
        """Return the questions; those that the model spoilt three times are left out and counted."""
        pool = self.pool(questions)
        drawn = self._draw(questions)
        done: dict[int, tuple] = {}
        seen: set[str] = set()
        for turn in range(ROUNDS):
            waiting = [i for i in range(questions) if i not in done]
            gold = self._gold(waiting, drawn, pool.documents, turn)
            order = [i for i in waiting if i in gold]
            made = self._ask([self._asked(drawn[i], gold[i], turn) for i in order])
            for i, data in zip(order, made, strict=True):
                reason = self._fault(data, drawn[i], seen)
                if reason:
                    self.failed[reason] += turn == ROUNDS - 1
                else:
                    seen.add(data["question"].strip().lower())
                    done[i] = (data["question"].strip(), data["answer"].strip(), gold[i])
            self.progress("questions", len(done), questions)
        order = sorted(done)
        claims = self._ask(
            [self._request("claims", question=done[i][0], answer=done[i][1]) for i in order]
        )
        sessions = _sessions(questions, Stream(self.seed, "sessions"))
        out = Benchmark()
        for i, sorted_claims in zip(order, claims, strict=True):
            text, answer, ids = done[i]
            if sorted_claims is None:
                self.failed["no claims"] += 1
                continue
            number = len(out.rows) + 1
            made_row = row(
                number, text, ids, sorted_claims, sessions[i], drawn[i], self.company.documents
            )
            out.rows.append(made_row | {"Answer": answer})
            document = " ".join(self.company.text(d) for d in ids)
            out.notes.append(note(number, text, text, document, frozenset()))
        if not out.rows:
            raise ModelError(f"{self.name} gave no usable question in {ROUNDS} rounds")
        out.report = report(out, self.config, pool, {})
        # What the text would be without mistakes is not known of a model's question.
        del out.report["error rate"]
        out.report["failed"] = dict(sorted(self.failed.items()))
        return out

    # Stages

    def pool(self, questions: int) -> sampling.Pool:
        """Return the documents that the model finds fit, of those that its topics lead to."""
        self.progress("topics", 0, 1)
        ids = self._order(list(self.company.documents))
        titles = "\n".join(f"- {self.company.documents[d]['title']}" for d in ids[:TITLES])
        (found,) = self._ask([self._request("topics", n=TOPICS, titles=titles)])
        if found is None:
            raise ModelError(f"{self.name} names no topics")
        topics = list(dict.fromkeys(found["topics"]))[:TOPICS]
        parts = self._ask([self._request("subtopics", n=SUBTOPICS, topic=t) for t in topics])
        subtopics = {
            t: list(dict.fromkeys(part["topics"]))[:SUBTOPICS] if part else [t]
            for t, part in zip(topics, parts, strict=True)
        }
        queries = list(dict.fromkeys(s for group in subtopics.values() for s in group))
        runs = sampling.retrieve(self.company, queries, self.config.sampling["per_subtopic"])
        reached = {d for run in runs for d in run}
        chosen = [d for d in ids if d in reached][: self._needed(questions)]
        self.progress("rating", 0, len(chosen))
        rated = self._ask([self._request("filter", document=self.company.text(d)) for d in chosen])
        scores = {
            d: {name: Score(value, f"by {self.name}") for name, value in data.items()}
            for d, data in zip(chosen, rated, strict=True)
            if data is not None
        }
        verdicts = judge(
            ((d, self.company.text(d)) for d in chosen if d in scores),
            self.config.filters,
            min_words=self.config.sampling["min_words"],
            max_words=self.config.sampling["max_words"],
            scores=scores,
        )
        for d in chosen:
            if d not in scores:
                verdicts.fail(d, "not rated", "the model gave no rating")
        if not verdicts.kept:
            reasons = ", ".join(f"{n} {what}" for what, n in verdicts.counts.most_common())
            raise UsageError(
                f"{self.company.folder}: none of {len(chosen)} documents is fit ({reasons})",
                f"loosen [filters] or [sampling] in {self.config.path}",
            )
        return sampling.Pool(verdicts.kept, len(chosen), subtopics, verdicts)

    def _gold(self, waiting, drawn, pool, turn) -> dict[int, tuple[str, ...]]:
        """Return the documents for each question; none where no partner was found."""
        first = {i: Stream(self.seed, "document", i, turn).pick(pool) for i in waiting}
        two = [i for i in waiting if self.config.documents(drawn[i]) == 2]
        gold = {i: (d,) for i, d in first.items() if i not in two}
        kinds = [self._kind(drawn[i]) for i in two]
        texts = [self.company.text(first[i]) for i in two]
        pairs = self._ask(
            [
                self._request("complement", n=QUERIES, kind=k, document=t)
                for k, t in zip(kinds, texts, strict=True)
            ]
        )
        queries = [[p["query"] for p in data["pairs"][:QUERIES]] if data else [] for data in pairs]
        flat = [q for group in queries for q in group]
        runs = iter(sampling.retrieve(self.company, flat, CANDIDATES) if flat else ())
        fit = set(pool)
        candidates = {}
        for i, group in zip(two, queries, strict=True):
            found = dict.fromkeys(d for _ in group for d in next(runs))
            candidates[i] = [d for d in found if d in fit and d != first[i]]
        order = [n for n, i in enumerate(two) if candidates[i]]
        chosen = self._ask(
            [
                self._request(
                    "choose",
                    kind=kinds[n],
                    document=texts[n],
                    candidates="\n\n".join(
                        f"[{k}]\n{self.company.text(d)}"
                        for k, d in enumerate(candidates[two[n]], 1)
                    ),
                )
                for n in order
            ]
        )
        for n, data in zip(order, chosen, strict=True):
            i = two[n]
            if data and 1 <= data["number"] <= len(candidates[i]):
                gold[i] = (first[i], candidates[i][data["number"] - 1])
        if turn == ROUNDS - 1:
            self.failed["no second document"] += sum(i not in gold for i in two)
        return gold

    def _fault(self, data, categories: dict[str, str], seen: set[str]) -> str:
        if data is None:
            return "no usable answer"
        text = data["question"].strip()
        if text.lower() in seen:
            return "asked before in the same words"
        n = len(text.split())
        limits = {
            "short-search-query": (1, QUERY),
            "long-search-query": (QUERY + 1, 10**6),
            "verbose-and-natural": (SHORT + 1, 10**6),
        }
        low, high = limits.get(categories.get("Phrasing", ""), (1, 10**6))
        return "" if low <= n <= high else "not of the wanted length"

    # Requests

    def _request(self, name: str, *, repeat: int = 0, **values) -> Request:
        prompt = load_prompt(name, PROMPTS)
        return prompt.request(
            values, schema=SCHEMAS[name], purpose=f"datamorgana-{name}", repeat=repeat
        )

    def _asked(self, categories: dict[str, str], ids: tuple[str, ...], turn: int = 0) -> Request:
        lines = [
            f"- {name}: {category.name} ({category.description})"
            for name, choices in self.config.categorizations.items()
            for category in choices
            if category.name == categories[name]
        ]
        texts = [f"Document {n}:\n{self.company.text(d)}" for n, d in enumerate(ids, 1)]
        return self._request(
            "question", properties="\n".join(lines), documents="\n\n".join(texts), repeat=turn
        )

    def _kind(self, categories: dict[str, str]) -> str:
        return "; ".join(
            category.description
            for name, choices in self.config.categorizations.items()
            for category in choices
            if category.name == categories[name] and category.documents == 2
        )

    def _ask(self, requests: list[Request]) -> list[dict | None]:
        """Return the data of each answer, None where the model gave nothing usable.

        Raises
        ------
        ModelError
            If the endpoint did not answer. What it answered is in the ledger.
        """
        found: list[dict | None] = []
        for result in self.client.complete(requests, progress=False):
            if not result.ok and result.kind not in ANSWERED:
                raise ModelError(
                    f"{self.name} did not answer ({result.kind}: {result.reason})",
                    "run the same command again; what was answered is in the ledger",
                )
            found.append(result.data if result.ok else None)
        return found

    def _draw(self, questions: int) -> list[dict[str, str]]:
        return [self.config.draw(Stream(self.seed, "categories", i)) for i in range(questions)]

    def _order(self, ids: list[str]) -> list[str]:
        return Stream(self.seed, "rating").sample(ids, len(ids))

    def _needed(self, questions: int) -> int:
        return max(20, int(RESERVE * questions))
