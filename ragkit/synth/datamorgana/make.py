"""The stages of DataMorgana as a model answers them (LiveRAG, section 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from math import gcd
from pathlib import Path

from ragkit import checks
from ragkit.display import card, table
from ragkit.errors import ModelError, UsageError
from ragkit.files import sha256, write_jsonl
from ragkit.synth.datamorgana.config import Config, load_config
from ragkit.synth.folder import Nearest, located, read_documents
from ragkit.synth.layout import shares
from ragkit.synth.stages import AuthorOptions, Guess, Model, Pipeline, Task, needed, within
from ragkit.synth.stamp import write_json
from ragkit.synth.streams import Stream

PROMPTS = Path(__file__).parent / "prompts"
TOPICS, SUBTOPICS, TITLES = 12, 8, 80
QUERIES, CANDIDATES = 3, 5  # for a second document, and documents for each of them
NEAR = 5  # other documents that a question is tried on
RATED, FEWEST = 2, 20  # documents rated for each question, and at least
ROUNDS = 3  # documents that are tried for a question
# The challenge had two sessions of 500 questions each, 105 of which were in both.
SESSIONS = {"First": 395, "Second": 395, "Both": 105}
SHOWN, CANDIDATE = within(needed="documents", elsewhere="near"), within(number="near")
EDIT = "change the prompt or the model; what was answered is in the ledger"


def make_questions(
    documents: str | Path,
    *,
    questions: int,
    seed: int,
    author: str | None = None,
    config: str | Path | Config | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    author_options: AuthorOptions | None = None,
) -> Benchmark:
    """Let a model ask about the documents of a folder.

    Parameters
    ----------
    documents : path-like
        A folder with documents.jsonl, or a file that `ragkit.files.read_frame` reads.
    questions : int
    seed : int, at least 0
    author : str
        `openai:MODEL`.
    config : path-like or Config, optional
        Default: LiveRAG's.
    progress : callable, optional
        Called with stage, answers and tasks, as a stage begins and ends.
    author_options : AuthorOptions, optional
        Also says what is raised if the model does not answer.

    Raises
    ------
    DataError
        If the folder or the configuration is not fit.
    UsageError
        If a number is out of range, no author is named, or no document passes the filters.
    """
    asked = {"questions": questions, "seed": seed}
    maker = Maker(documents, **asked, config=config)
    made = maker.make(Model(author, PROMPTS, author_options, progress=progress))
    made.report["settings"] = settings(documents, **asked, author=author, config=maker.config)
    return made


def estimate(
    documents, *, author=None, author_options: AuthorOptions | None = None, **asked
) -> list[str]:
    """Return in lines what `make_questions` would still ask, and its cost; nothing is asked."""
    maker = Maker(documents, **asked)
    guess = Guess(author, PROMPTS, author_options, STAND_INS)
    maker.make(guess)
    head = f"{len(maker.texts):,} documents, {asked['questions']:,} questions; requests:"
    return [head, *guess.lines()]


def settings(documents, *, config=None, **asked) -> dict[str, int | str]:
    """Return what a file of questions is made from, as its report says it."""
    config = config if isinstance(config, Config) else load_config(config)
    read = {"sha256 of the config": config.digest}
    return asked | read | {"sha256 of the documents": sha256(located(documents))}


@dataclass(frozen=True)
class Benchmark:
    """Questions in the fields of LiveRAG's appendix B, notes on each, a report, and what was left out.

    The notes are `Index`, `facts` (what is asked for, as sentences) and `marks` (the documents' own
    words). The report says how documents and questions came and went, and the settings.
    """

    rows: list[dict]
    notes: list[dict]
    report: dict = field(default_factory=dict)
    left_out: list[dict] = field(default_factory=list)  # stage, item, reason and remedy

    def __repr__(self) -> str:
        return f"<Benchmark of {len(self.rows):,} questions, {len(self.left_out):,} left out>"

    def _repr_html_(self) -> str:
        facts = {"questions": f"{len(self.rows):,}", "left out": f"{len(self.left_out):,}"}
        rows = [{"question": row["Question"], "answer": row["Answer"]} for row in self.rows[:5]]
        after = (
            "Next: `.write(out)` writes them in LiveRAG's fields; `.left_out` says why others went."
        )
        return card("Generated questions", facts, table(rows, "The first ones"), after=after)

    def write(self, out: str | Path) -> None:
        """Write `out` and beside it `STEM.notes.jsonl`, `STEM.report.json`, `STEM.left_out.jsonl`.

        The last one only if something was left out. `out` is written last.
        """
        out = Path(out)
        write_jsonl(beside(out, "notes.jsonl"), self.notes)
        write_json(beside(out, "report.json"), self.report)
        if self.left_out:
            write_jsonl(beside(out, "left_out.jsonl"), self.left_out)
        write_jsonl(out, self.rows)


def beside(out: Path, tail: str) -> Path:
    """Return the path of a file beside a file of questions."""
    return out.with_name(f"{out.name.removesuffix('.jsonl')}.{tail}")


@dataclass(frozen=True)
class Draft:
    """A question on its way through the stages."""

    index: int  # from 0, in the order of the questions
    categories: dict[str, str]
    documents: tuple[str, ...]
    turn: int = 0  # how often it was begun before
    facts: tuple[tuple[int, dict], ...] = ()  # each with the number of its document, from 1
    near: tuple[str, ...] = ()  # candidates for a second document, then others that it is tried on
    data: dict = field(default_factory=dict)  # the answer of the stage `question`

    @property
    def name(self) -> str:
        return f"question {self.index + 1}" + (f", try {self.turn + 1}" if self.turn else "")

    @property
    def asked(self) -> dict[str, str]:
        return {name: self.data[name] for name in ("question", "answer")}

    def task(self, values: dict) -> Task:
        """Return the task of a stage."""
        return Task(self.name, values, self, turn=self.turn)

    def keys(self, data: dict) -> set[tuple]:
        """Return what no other question may ask for: these facts, and this text."""
        facts = sorted(self.facts[n - 1][1]["id"] for n in data["facts"])
        text = " ".join(data["question"].lower().split())
        return {(self.categories.get("Answer Type"), *facts), ("text", text)}


class Maker(Pipeline):
    """Make questions; `refused` has the reasons of all rounds, `lost` what the last one lost."""

    wait = True

    def __init__(self, documents, *, questions: int, seed: int, config=None):
        super().__init__()
        checks.whole(questions, "questions")
        checks.whole(seed, "seed", least=0)
        self.config = config if isinstance(config, Config) else load_config(config)
        frame = read_documents(documents)
        self.folder, self.seed = documents, seed
        self.titles = dict(zip(frame["doc_id"], frame["title"], strict=True))
        whole = frame["title"] + "\n\n" + frame["text"]
        self.texts = dict(zip(frame["doc_id"], whole, strict=True))
        self.nearest = Nearest(frame)
        self.drawn = [self.config.draw(Stream(seed, "categories", i)) for i in range(questions)]
        self.facts: dict[str, list[dict]] = {}
        self.taken: set[tuple] = set()
        self.refused: Counter[str] = Counter()

    def make(self, author: Model) -> Benchmark:
        """Return the questions; `ModelError` if there is none."""
        self.author = author
        pool, told = self.sample()
        drafts = self.write(pool)
        sessions, rows, notes = self._sessions(), [], []
        for draft, claims in self.ask("claims", drafts, lambda draft: draft.task(draft.asked)):
            index = {"Index": len(rows) + 1}
            asked = {name.capitalize(): text.strip() for name, text in draft.asked.items()}
            documents = [{"doc_id": d, "content": self.texts[d]} for d in draft.documents]
            asked |= {"Supporting_Documents": documents, "Answer_Claims": claims}
            asked |= {"Session": sessions[draft.index], "DataMorgana_Config": draft.categories}
            rows.append(index | asked)
            used = [draft.facts[n - 1][1] for n in draft.data["facts"]]
            said = {"facts": [f["statement"] for f in used], "marks": [f["value"] for f in used]}
            notes.append(index | said)
        if not rows:
            said = f"no question of {len(self.drawn):,} is usable: {self.lost[-1].reason}"
            raise ModelError(said, EDIT)
        about = {d["doc_id"] for row in rows for d in row["Supporting_Documents"]}
        report = {
            "questions": len(rows),
            "documents": told | {"asked about": len(about)},
            "attempts refused": dict(sorted(self.refused.items())),
            "failed": dict(sorted(Counter(one.reason for one in self.lost).items())),
        }
        return Benchmark(rows, notes, report, [one.row() for one in self.lost])

    def _sessions(self) -> list[str]:
        """Return the session of each question, in the challenge's proportions."""
        counts = shares(len(self.drawn), SESSIONS)
        found = [name for name, n in counts.items() for _ in range(n)]
        return Stream(self.seed, "sessions").sample(found, len(found))

    # Documents (section 2.1)

    def sample(self) -> tuple[list[str], dict[str, int]]:
        """Return the documents found by topic that pass the filters, and how many did not."""
        order = Stream(self.seed, "rating").sample(list(self.texts), len(self.texts))
        listed = "\n".join(f"- {self.titles[d]}" for d in order[:TITLES])
        heads = [self.texts[d].strip()[:40] for d in order]
        task = Task("the collection", {"n": TOPICS, "titles": listed})
        (found,) = needed(self.author.answer("topics", [task]), EDIT)
        topics = list(dict.fromkeys(found["topics"]))[:TOPICS]

        def about(topic: str) -> Task:
            own = heads[topics.index(topic) :: TOPICS]
            return Task(f"topic {topic!r}", {"n": SUBTOPICS, "topic": topic}, own)

        parts = {topic: [topic] for topic in topics}
        for topic, data in self.ask("subtopics", topics, about):
            parts[topic] = data["topics"]
        queries = list(dict.fromkeys(query for part in parts.values() for query in part))
        runs = self.nearest.search(queries, self.config.sampling.per_subtopic)
        reached = {d for run in runs for d in run}
        chosen = [d for d in order if d in reached][: max(FEWEST, RATED * len(self.drawn))]
        seen: dict[str, str] = {}
        unfit = {d: self._unfit(d, seen) for d in chosen}  # before a rating is paid for
        fit = [d for d in chosen if not unfit[d]]
        rated = dict(self.ask("filter", fit, self._document))
        unfit |= {d: self._filtered(rated.get(d)) for d in fit}
        kept = [d for d, reason in unfit.items() if not reason]
        counts = Counter(reason for reason in unfit.values() if reason)
        if not kept:
            reasons = ", ".join(f"{n} {reason}" for reason, n in counts.most_common())
            raise UsageError(
                f"{self.folder}: none of {len(chosen)} documents passes the filters ({reasons})",
                f"loosen [filters] or [sampling] in {self.config.path}",
            )
        told = {"found by topic": len(chosen), "kept": len(kept)}
        return kept, told | dict(sorted(counts.items()))

    def _unfit(self, doc_id: str, seen: dict[str, str]) -> str:
        """Return why a document is not rated, or an empty string."""
        words, limits = self.texts[doc_id].lower().split(), self.config.sampling
        if seen.setdefault(" ".join(words), doc_id) != doc_id:
            return "duplicate"
        if len(words) < limits.min_words:
            return "too short"
        return "too long" if len(words) > limits.max_words else ""

    def _filtered(self, rating: dict | None) -> str:
        """Return the first filter that a rating does not pass, or an empty string."""
        if rating is None:
            return "not rated"
        limits = self.config.filters.items()
        broken = (n for n, limit in limits if not limit.at_least <= rating[n] <= limit.at_most)
        return next(broken, "")

    # Questions (section 2.2)

    def write(self, pool: list[str]) -> list[Draft]:
        """Return a checked draft for every question that could be made.

        Each round gives every open question another document; all documents have their turn before
        one comes up again.
        """
        done: dict[int, Draft] = {}
        order = Stream(self.seed, "documents").sample(pool, len(pool))
        step = next(n for n in count(len(self.drawn)) if gcd(n, len(order)) == 1)
        before, last = len(self.lost), []
        for turn in range(ROUNDS):
            begun = [
                Draft(i, self.drawn[i], (order[(i + turn * step) % len(order)],), turn)
                for i in range(len(self.drawn))
                if i not in done
            ]
            done |= {draft.index: draft for draft in self._round(begun, set(pool))}
            last = self.lost[before:]
            del self.lost[before:]
            self.refused.update(one.reason for one in last)
        self.lost += last
        return [done[i] for i in sorted(done)]

    def _round(self, drafts: list[Draft], pool: set[str]) -> Iterator[Draft]:
        """Yield the drafts of a round that pass every stage."""
        drafts, kept = list(self._with_facts(self._completed(drafts, pool))), []
        for draft, data in self.ask("question", drafts, self._material, self._fault):
            if self.taken & draft.keys(data):
                self.refuse("question", draft.name, "asked before")
            else:
                self.taken |= draft.keys(data)
                kept.append(replace(draft, data=data))
        near = self.nearest.search([d.data["question"] for d in kept], NEAR + 2)
        kept = [
            replace(d, near=tuple(x for x in ids if x not in d.documents)[:NEAR])
            for d, ids in zip(kept, near, strict=True)
        ]
        for draft, data in self.ask("check", kept, self._tried, SHOWN):
            if reason := verdict(draft, data):
                self.taken -= draft.keys(draft.data)
                self.refuse("check", draft.name, reason)
            else:
                yield draft

    def _completed(self, drafts: list[Draft], pool: set[str]) -> list[Draft]:
        """Give drafts of two documents their second one (section 2.2.2)."""
        two = [d for d in drafts if self.config.documents(d.categories) == 2]

        def task(draft: Draft, **more) -> Task:
            kind, document = self.config.of_two(draft.categories), self.texts[draft.documents[0]]
            return draft.task({"kind": kind, "document": document} | more)

        def choice(draft: Draft) -> Task:
            return task(draft, candidates=self._numbered(draft.near, "[{}]"))

        asked = list(self.ask("complement", two, partial(task, n=QUERIES)))
        queries = [[pair["query"] for pair in data["pairs"][:QUERIES]] for _, data in asked]
        runs = iter(self.nearest.search([q for own in queries for q in own], CANDIDATES))
        candidates = []
        for (draft, _), own in zip(asked, queries, strict=True):
            ids = dict.fromkeys(d for _ in own for d in next(runs))
            if near := tuple(d for d in ids if d in pool and d not in draft.documents):
                candidates.append(replace(draft, near=near))
            else:
                self.refuse("complement", draft.name, "no second document was found")
        whole = {d.index: d for d in drafts if d not in two}
        for draft, data in self.ask("choose", candidates, choice, CANDIDATE):
            if data["number"]:
                second = draft.near[data["number"] - 1]
                whole[draft.index] = replace(draft, documents=(*draft.documents, second))
            else:
                self.refuse("choose", draft.name, "no candidate completes the document")
        return [whole[i] for i in sorted(whole)]

    def _with_facts(self, drafts: list[Draft]) -> Iterator[Draft]:
        """Yield the drafts whose documents state facts, with these."""
        wanted = dict.fromkeys(d for draft in drafts for d in draft.documents)
        wanted = [d for d in wanted if d not in self.facts]
        for doc_id, data in self.ask("facts", wanted, self._document, _unstated):
            rows = enumerate(data["facts"], 1)
            self.facts[doc_id] = [fact | {"id": f"{doc_id}/{n}"} for n, fact in rows]
        for draft in drafts:
            if all(d in self.facts for d in draft.documents):
                numbered = enumerate(draft.documents, 1)
                facts = tuple((n, fact) for n, d in numbered for fact in self.facts[d])
                yield replace(draft, facts=facts)
            else:
                self.refuse("facts", draft.name, "a document states no known fact")

    # Prompts and what is wrong with their answers

    def _document(self, doc_id: str) -> Task:
        return Task(f"document {doc_id}", {"document": self.texts[doc_id]}, self.texts[doc_id])

    def _numbered(self, ids: Iterable[str], label: str) -> str:
        return "\n\n".join(f"{label.format(n)}\n{self.texts[d]}" for n, d in enumerate(ids, 1))

    def _material(self, draft: Draft) -> Task:
        facts = (
            f"[{n}] {fact['subject']}, {fact['attribute']}: {fact['value']} (document {number})"
            for n, (number, fact) in enumerate(draft.facts, 1)
        )
        properties = "\n".join(self.config.described(draft.categories))
        values = {"properties": properties, "facts": "\n".join(facts)}
        return draft.task(values | self._shown(draft))

    def _tried(self, draft: Draft) -> Task:
        others = {"others": self._numbered(draft.near, "[{}]") or "none"}
        return draft.task(draft.asked | others | self._shown(draft))

    def _shown(self, draft: Draft) -> dict:
        return {"documents": self._numbered(draft.documents, "Document {}:")}

    def _fault(self, task: Task, data: dict) -> str:
        """Return what is wrong with a question: foreign or missing facts, length, asked before."""
        draft = task.given
        if foreign := within(facts="facts")(task, data):
            return foreign
        used = {draft.facts[n - 1][0] for n in data["facts"]}
        for number, _ in enumerate(draft.documents, 1):
            if number not in used:
                return f"it uses no fact of document {number}"
        length = len(data["question"].split())
        for _, category in self.config.chosen(draft.categories):
            if category.words and not category.words[0] <= length <= category.words[1]:
                return f"a {category.name} of {length} words"
        texts = {key for key in draft.keys(data) if key[0] == "text"}
        return "asked before" if texts & self.taken else ""


def verdict(draft: Draft, data: dict) -> str:
    """Return why a question is not answered by its documents and by nothing else near."""
    if not data["answered"]:
        return "its documents do not answer it"
    needed, wanted = len(set(data["needed"])), len(draft.documents)
    if needed < wanted:
        return f"its answer needs {needed} of {wanted} documents"
    return "another document answers it, too" if data["elsewhere"] else ""


def _unstated(task: Task, data: dict) -> str:
    text = " ".join(task.given.lower().split())
    for fact in data["facts"]:
        if " ".join(fact["value"].lower().split()) not in text:
            return f"the document does not say {fact['value']!r}"
    return ""


# What depends on the task in the stand-ins of an estimate; the rest is in prompts/stand_ins.json.
STAND_INS: dict[str, Callable[[Task], dict]] = {
    "subtopics": lambda task: {"topics": task.given[:SUBTOPICS]},
    "complement": lambda task: {
        "pairs": [{"question": "so said", "query": task.values["document"].strip()[:60]}] * QUERIES
    },
    "question": lambda task: {"facts": [n for n, _ in enumerate(task.given.facts, 1)]},
    "check": lambda task: {"needed": [n for n, _ in enumerate(task.given.documents, 1)]},
}
