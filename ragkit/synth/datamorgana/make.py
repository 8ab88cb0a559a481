"""The stages of DataMorgana, the same for every author (LiveRAG, section 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from math import gcd
from pathlib import Path

from ragkit import checks
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.files import sha256
from ragkit.synth.author import AuthorOptions, check_author
from ragkit.synth.datamorgana.collection import MAKE, Collection, Fact, load
from ragkit.synth.datamorgana.config import Config, load_config, offline_only
from ragkit.synth.datamorgana.filters import Score, Verdicts, judge
from ragkit.synth.datamorgana.offline import Draft, Offline
from ragkit.synth.datamorgana.report import Benchmark, note, report, row, sessions
from ragkit.synth.stages import Author, Model, Rejected, Task
from ragkit.synth.streams import Stream

PROMPTS = Path(__file__).parent / "prompts"
STAGES = tuple("topics subtopics filter facts complement choose question check claims".split())
TOPICS, SUBTOPICS, TITLES = 12, 8, 80
QUERIES, CANDIDATES = 3, 5  # for a second document, and documents for each of them
NEAR = 5  # other documents that a question is tried on
RATED = 2.0  # documents rated for each question, by a model
ROUNDS = 3  # documents that a model tries for a question
AGAIN = 2  # times that categories which no document carries are drawn anew
TRIED = 8  # times that the offline author goes through all documents in vain
# The number of words that Table 1 asks for.
LENGTHS = {
    "verbose-and-natural": (10, 10**6),
    "short-search-query": (1, 6),
    "long-search-query": (7, 10**6),
}
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Pool:
    """The valid documents, how many the topics brought in, and why the others are not valid."""

    documents: list[str]
    found: int
    verdicts: Verdicts


def make_questions(
    documents: str | Path,
    *,
    questions: int,
    config: str | Path | Config | None = None,
    seed: int,
    author: str = "offline",
    progress: Progress | None = None,
    author_options: AuthorOptions | None = None,
) -> Benchmark:
    """Make questions about the documents of a folder.

    Parameters
    ----------
    documents : path-like
        A folder with documents.jsonl and, for the offline author, facts.jsonl.
    questions : int
    config : path-like or Config, optional
        Default: LiveRAG's.
    seed : int, at least 0
    author : str
        `offline` or `openai:MODEL`.
    progress : callable, optional
        Called with stage, steps done and steps in all.
    author_options : AuthorOptions, optional
        For a model as author.

    Raises
    ------
    DataError
        If the folder or the configuration is not fit.
    UsageError
        If the facts do not carry as many questions, or the offline author is given options.
    ModelError
        If the endpoint did not answer, or gave no usable question.
    BatchWritten
        If the options name a batch file and the ledger lacks answers.
    """
    collection, config, writer = _begin(documents, questions, config, seed, author, author_options)
    progress = progress or (lambda *_: None)
    left: list[Rejected] = []
    pool = sample(writer, collection, config, seed, questions, left)
    drawn = [config.draw(Stream(seed, "categories", i)) for i in range(questions)]
    if author == "offline":
        _check_room(collection, pool, drawn)
    drafts, refused = write(writer, collection, config, seed, pool, drawn, progress, left)
    claimed = writer.answer("claims", [_claims_task(d) for d in drafts])
    made = Benchmark()
    parts = sessions(questions, Stream(seed, "sessions"))
    for draft, claims in zip(drafts, claimed, strict=True):
        if isinstance(claims, Rejected):
            left.append(claims)
            continue
        number = len(made.rows) + 1
        made.rows.append(row(number, draft, claims, parts[draft.index], collection))
        made.notes.append(note(number, draft, collection))
    if not made.rows:
        raise ModelError(
            f"{author} gave no usable question for {questions}: {left[-1].reason}",
            "see what each stage was answered with `ragkit llm ledger`",
        )
    made.report = report(made.rows, made.notes, config, pool, refused, offline=author == "offline")
    if left:
        made.report["failed"] = dict(sorted(Counter(one.reason for one in left).items()))
    made.report |= settings(documents, config, questions, seed, author)
    made.left_out = [one.row() for one in left]
    return made


def settings(
    documents: str | Path, config: Config, questions: int, seed: int, author: str
) -> dict[str, int | str]:
    """Return what a finished file of questions was made from, as its report says it."""
    return {
        "questions asked for": questions,
        "seed": seed,
        "author": author,
        "sha256 of the config": config.digest,
        "sha256 of documents.jsonl": sha256(Path(documents) / "documents.jsonl"),
    }


def estimate(
    documents: str | Path,
    *,
    questions: int,
    config: str | Path | Config | None = None,
    seed: int,
    author: str = "offline",
    author_options: AuthorOptions | None = None,
) -> list[str]:
    """Return, in lines, what `make_questions` would do; nothing is asked or written."""
    collection, config, writer = _begin(documents, questions, config, seed, author, author_options)
    drawn = [config.draw(Stream(seed, "categories", i)) for i in range(questions)]
    if author != "offline":
        plan = _plan(collection, config, seed, drawn)
        lines = [f"{len(collection.documents):,} documents, {questions:,} questions; requests:"]
        return [*lines, *writer.estimate(plan)]
    pool = sample(writer, collection, config, seed, questions, [])
    lines = [f"{len(collection.documents):,} documents, {pool.found:,} found by topic"]
    lines += [f"  {n:>7,} left out: {what}" for what, n in sorted(pool.verdicts.counts.items())]
    lines += [f"  {len(pool.documents):>7,} to be asked about", f"{questions:,} questions"]
    wanted = Counter(categories["Answer Type"] for categories in drawn)
    return [*lines, *(f"  {n:>7,} {kind}" for kind, n in wanted.items())]


def _begin(documents, questions, config, seed, author, options):
    """Return the collection, the configuration and the author, checked."""
    checks.whole(questions, "questions")
    checks.whole(seed, "seed", least=0)
    check_author(author)
    if not isinstance(config, Config):
        config = load_config(config)
    if author == "offline" and options is not None:
        raise UsageError("the offline author takes no options of a model")
    collection = load(documents)
    if author != "offline":
        return collection, config, Model(author, PROMPTS, options or AuthorOptions())
    offline_only(config)
    if not collection.facts:
        raise DataError(
            f"{collection.folder}: no facts (facts.jsonl is missing or empty), and without a "
            "language model only facts that the documents' author recorded can be asked about",
            f"{MAKE}, or let a model find facts and write: --author openai:MODEL",
        )
    return collection, config, Offline(collection, seed)


def _check_room(collection: Collection, pool: Pool, drawn: list[dict[str, str]]) -> None:
    facts = {f.fact_id for d in pool.documents for f in collection.by_document.get(d, ())}
    if len(drawn) > 2 * len(facts):
        _too_many(collection, len(pool.documents), f"{len(facts):,} facts, {len(drawn):,} wanted")


def _too_many(collection: Collection, documents: int, what: str):
    raise UsageError(
        f"{collection.folder}: the facts of {documents} documents do not carry the questions: {what}",
        "ask for fewer questions, lower the probability of that category, or make more documents",
    )


# Documents (section 2.1)


def sample(
    author: Author,
    collection: Collection,
    config: Config,
    seed: int,
    questions: int,
    left: list[Rejected],
) -> Pool:
    """Find documents by topic and keep the valid ones; `left` takes what was not answered."""
    order = _order(collection, seed)
    titles = "\n".join(f"- {collection.documents[d]['title']}" for d in order[:TITLES])
    (found,) = author.answer("topics", [Task("the collection", {"n": TOPICS, "titles": titles})])
    if isinstance(found, Rejected):
        raise ModelError(f"stage 'topics': {found.reason}", "change the prompt or the model")
    topics = list(dict.fromkeys(found["topics"]))
    topics = topics if isinstance(author, Offline) else topics[:TOPICS]
    parts = author.answer("subtopics", [_subtopics_task(topic) for topic in topics])
    left += [part for part in parts if isinstance(part, Rejected)]
    queries = dict.fromkeys(
        query
        for topic, part in zip(topics, parts, strict=True)
        for query in ([topic] if isinstance(part, Rejected) else part["topics"])
    )
    runs = collection.search(list(queries), config.sampling["per_subtopic"])
    reached = {d for run in runs for d in run}
    chosen = [d for d in order if d in reached]
    if isinstance(author, Model):
        chosen = chosen[: _rated(questions)]
    rated = author.answer("filter", [_filter_task(collection, d) for d in chosen])
    scores = {}
    for doc_id, data in zip(chosen, rated, strict=True):
        if isinstance(data, Rejected):
            left.append(data)
        else:
            why = data.get("why", {})
            scores[doc_id] = {k: Score(v, why.get(k, "")) for k, v in data.items() if k != "why"}
    verdicts = judge(
        ((d, collection.text(d)) for d in chosen if d in scores),
        config.filters,
        min_words=config.sampling["min_words"],
        max_words=config.sampling["max_words"],
        scores=scores,
    )
    for doc_id in chosen:
        if doc_id not in scores:
            verdicts.fail(doc_id, "not rated", "the model gave no rating")
    if not verdicts.kept:
        reasons = ", ".join(f"{n} {what}" for what, n in verdicts.counts.most_common())
        raise UsageError(
            f"{collection.folder}: none of {len(chosen)} documents passes the filters ({reasons})",
            f"loosen [filters] or [sampling] in {config.path}",
        )
    return Pool(verdicts.kept, len(chosen), verdicts)


def _order(collection: Collection, seed: int) -> list[str]:
    return Stream(seed, "rating").sample(list(collection.documents), len(collection.documents))


def _rated(questions: int) -> int:
    return max(20, int(RATED * questions))


# Questions (section 2.2)


def write(
    author: Author,
    collection: Collection,
    config: Config,
    seed: int,
    pool: Pool,
    drawn: list[dict[str, str]],
    progress: Progress,
    left: list[Rejected],
) -> tuple[list[Draft], Counter[str]]:
    """Return a checked draft for every question that could be made, and the reasons of the others.

    Each round gives every open question another document; all documents have their turn before
    one comes up again.
    """
    offline = isinstance(author, Offline)
    done: dict[int, Draft] = {}
    taken: set[tuple] = set()
    refused: Counter[str] = Counter()
    orders = {kind: _supply(author, pool, seed, kind) for kind in _kinds(drawn)}
    lost: list[Rejected] = []
    idle = again = 0  # documents tried since the last question was made; drawings anew
    for turn in count():
        open_ = [i for i in range(len(drawn)) if i not in done]
        most = len(pool.documents) * min(len(open_), TRIED)
        vain = idle > most if offline else turn == ROUNDS
        if open_ and vain and offline and again < AGAIN:
            idle, again = 0, again + 1
            drawn = [
                d if i in done else _redrawn(config, seed, i, d, again) for i, d in enumerate(drawn)
            ]
            refused["categories drawn anew"] += len(open_)
        elif not open_ or vain:
            break
        lost, begun = [], []
        for i in open_:
            order = orders[drawn[i].get("Answer Type")]
            first = order[(i + turn * _step(len(drawn), len(order))) % len(order)]
            begun.append(Draft(i, drawn[i], (first,), turn, taken, collection))
        drafts = list(_round(author, collection, config, set(pool.documents), begun, lost))
        for draft in drafts:
            done[draft.index] = draft
        idle = 0 if drafts else idle + len(begun)
        refused.update(one.reason for one in lost)
        progress("questions", len(done), len(drawn))
    if len(done) < len(drawn) and offline:
        short = Counter(drawn[i]["Answer Type"] for i in range(len(drawn)) if i not in done)
        what = ", ".join(f"{n} {kind} could not be made" for kind, n in short.items())
        _too_many(collection, len(pool.documents), what)
    left += [one for one in lost if len(done) < len(drawn)]
    return [done[i] for i in sorted(done)], refused


def _redrawn(
    config: Config, seed: int, i: int, given: dict[str, str], again: int
) -> dict[str, str]:
    """Return other categories of the same answer type, or the given ones if there are none."""
    for attempt in range(200):
        found = config.draw(Stream(seed, "categories", i, again, attempt))
        if found != given and found["Answer Type"] == given["Answer Type"]:
            return found
    return given


def _kinds(drawn: list[dict[str, str]]) -> set[str | None]:
    return {categories.get("Answer Type") for categories in drawn}


def _supply(author: Author, pool: Pool, seed: int, kind: str | None) -> list[str]:
    """Return the documents for questions of an answer type, in the order of their turns."""
    order = Stream(seed, "documents").sample(pool.documents, len(pool.documents))
    return [d for d in order if not isinstance(author, Offline) or author.able(kind, d)] or order


@cache
def _step(questions: int, documents: int) -> int:
    """Return how many documents lie between two turns of a question, so that it gets to all."""
    return next(n for n in count(questions) if gcd(n, documents) == 1)


def _round(author, collection, config, pool, drafts, lost) -> Iterator[Draft]:
    """Yield the drafts of a round that pass every stage; `lost` takes the others."""
    drafts = _complete(author, collection, config, pool, drafts, lost)
    drafts = _with_facts(author, collection, drafts, lost)
    kept = []
    for draft, data in _answered(author, "question", drafts, _question_task(config), lost, fault):
        keys = {draft.turn_key(data), draft.text_key(data)}
        if keys & draft.taken:
            lost.append(Rejected("question", draft.name, "asked before"))
            continue
        draft.taken.update(keys)
        kept.append(replace(draft, data=data))
    near = collection.search([d.data.get("correct", d.data["question"]) for d in kept], NEAR + 2)
    kept = [
        replace(d, near=tuple(x for x in ids if x not in d.documents)[:NEAR])
        for d, ids in zip(kept, near, strict=True)
    ]
    for draft, data in _answered(author, "check", kept, _check_task, lost, _foreign):
        reason = verdict(draft, data)
        if reason:
            draft.taken.difference_update((draft.turn_key(draft.data), draft.text_key(draft.data)))
            lost.append(Rejected("check", draft.name, reason))
        else:
            yield draft


def _answered(author, stage, drafts, task, lost, check=None):
    """Yield the drafts that were answered in a stage, with the data."""
    results = author.answer(stage, [task(draft) for draft in drafts], check)
    for draft, data in zip(drafts, results, strict=True):
        if isinstance(data, Rejected):
            lost.append(data)
        else:
            yield draft, data


def _complete(author, collection, config, pool, drafts, lost) -> list[Draft]:
    """Give drafts of two documents their second one (section 2.2.2)."""
    two = [d for d in drafts if config.documents(d.categories) == 2]
    kinds = {d.index: config.of_two(d.categories) for d in two}

    def partner(draft):
        values = {"n": QUERIES, "kind": kinds[draft.index]}
        return draft.task(values | {"document": collection.text(draft.documents[0])})

    asked = list(_answered(author, "complement", two, partner, lost))
    queries = [[pair["query"] for pair in data["pairs"][:QUERIES]] for _, data in asked]
    runs = iter(collection.search([q for group in queries for q in group], CANDIDATES))
    candidates = []
    for (draft, _), group in zip(asked, queries, strict=True):
        ids = dict.fromkeys(d for _ in group for d in next(runs))
        ids = tuple(d for d in ids if d in pool and d not in draft.documents)
        if ids:
            candidates.append(replace(draft, near=ids))
        else:
            lost.append(Rejected("complement", draft.name, "no second document was found"))

    def choice(draft):
        found = "\n\n".join(f"[{k}]\n{collection.text(d)}" for k, d in enumerate(draft.near, 1))
        values = {"kind": kinds[draft.index], "document": collection.text(draft.documents[0])}
        return draft.task(values | {"candidates": found})

    chosen = {}
    for draft, data in _answered(author, "choose", candidates, choice, lost, _foreign_choice):
        if data["number"]:
            chosen[draft.index] = (*draft.documents, draft.near[data["number"] - 1])
        else:
            lost.append(Rejected("choose", draft.name, "no candidate completes the document"))
    return [
        replace(d, documents=chosen.get(d.index, d.documents))
        for d in drafts
        if d.index not in kinds or d.index in chosen
    ]


def _with_facts(author, collection, drafts, lost) -> list[Draft]:
    """Give drafts the facts of their documents: recorded ones, otherwise found by the author."""
    wanted = dict.fromkeys(d for draft in drafts for d in draft.documents)
    unknown = [d for d in wanted if d not in collection.by_document]
    tasks = [_facts_task(collection, d) for d in unknown]
    found = author.answer("facts", tasks, _unstated(collection))
    for doc_id, data in zip(unknown, found, strict=True):
        if isinstance(data, Rejected):
            lost.append(data)
            continue
        for n, one in enumerate(data["facts"], 1):
            fact = Fact(f"{doc_id}/{n}", one["subject"], one["attribute"], one["attribute"],
                        one["value"], one["statement"], (doc_id,))  # fmt: skip
            collection.facts.append(fact)
            collection.by_document[doc_id].append(fact)
    kept = []
    for draft in drafts:
        facts = [(d, f) for d in draft.documents for f in collection.by_document.get(d, ())]
        if {d for d, _ in facts} == set(draft.documents):
            kept.append(replace(draft, facts=tuple(facts)))
        else:
            lost.append(Rejected("facts", draft.name, "a document states no known fact"))
    return kept


# What is wrong with an answer


def fault(task: Task, data: dict) -> str:
    """Return what is wrong with a question: foreign or missing facts, length, asked before."""
    draft = task.given
    foreign = [n for n in data["facts"] if not 1 <= n <= len(draft.facts)]
    if foreign:
        return f"there is no fact {foreign[0]}: they run from 1 to {len(draft.facts)}"
    used = {draft.facts[n - 1][0] for n in data["facts"]}
    for number, doc_id in enumerate(draft.documents, 1):
        if doc_id not in used:
            return f"it uses no fact of document {number}"
    low, high = LENGTHS.get(draft.categories.get("Phrasing", ""), (1, 10**6))
    length = len(data.get("correct", data["question"]).split())
    if not low <= length <= high:
        return f"a {draft.categories['Phrasing']} of {length} words"
    return "asked before" if draft.text_key(data) in draft.taken else ""


def verdict(draft: Draft, data: dict) -> str:
    """Return why a question is not answered by its documents and by nothing else near."""
    if not data["answered"]:
        return "its documents do not answer it"
    if len(draft.documents) > len(set(data["needed"])):
        return "one document answers it alone"
    return "another document answers it, too" if data["elsewhere"] else ""


def _foreign(task: Task, data: dict) -> str:
    for name, known in (("needed", task.given.documents), ("elsewhere", task.given.near)):
        for number in data[name]:
            if not 1 <= number <= len(known):
                return f"{name}: there is no document {number}: they run from 1 to {len(known)}"
    return ""


def _foreign_choice(task: Task, data: dict) -> str:
    known = len(task.given.near)
    return "" if data["number"] <= known else f"there is no candidate {data['number']} of {known}"


def _unstated(collection: Collection):
    def check(task: Task, data: dict) -> str:
        text = " ".join(collection.lower[task.given].split())
        for fact in data["facts"]:
            if " ".join(fact["value"].lower().split()) not in text:
                return f"the document does not say {fact['value']!r}"
        return ""

    return check


# Tasks


def _subtopics_task(topic: str) -> Task:
    return Task(f"topic {topic!r}", {"n": SUBTOPICS, "topic": topic}, topic)


def _filter_task(collection: Collection, doc_id: str) -> Task:
    text = collection.text(doc_id)
    return Task(f"document {doc_id}", {"document": text}, text)


def _facts_task(collection: Collection, doc_id: str) -> Task:
    return Task(f"document {doc_id}", {"document": collection.text(doc_id)}, doc_id)


def _question_task(config: Config):
    def task(draft: Draft) -> Task:
        facts = "\n".join(
            f"[{n}] {f.subject}, {f.label}: {f.value} (document {draft.documents.index(d) + 1})"
            for n, (d, f) in enumerate(draft.facts, 1)
        )
        properties = "\n".join(config.described(draft.categories))
        return draft.task(
            {"properties": properties, "facts": facts, "documents": _numbered(draft.texts)}
        )

    return task


def _check_task(draft: Draft) -> Task:
    others = "\n\n".join(f"[{n}]\n{text}" for n, text in enumerate(draft.others(), 1))
    answer = {"question": draft.data["question"], "answer": draft.data["answer"]}
    return draft.task(answer | {"documents": _numbered(draft.texts), "others": others or "none"})


def _claims_task(draft: Draft) -> Task:
    return draft.task({"question": draft.data["question"], "answer": draft.data["answer"]})


def _numbered(texts) -> str:
    return "\n\n".join(f"Document {n}:\n{text}" for n, text in enumerate(texts, 1))


def _plan(collection, config, seed, drawn) -> dict[str, list[Task]]:
    """Return tasks of the size and number that a run is expected to ask."""
    order = _order(collection, seed)[: _rated(len(drawn))]
    titles = "\n".join(f"- {collection.documents[d]['title']}" for d in order[:TITLES])
    guess = Stream(seed, "guess")
    drafts = []
    for i, categories in enumerate(drawn):
        ids = tuple(guess.sample(order, config.documents(categories)))
        near = tuple(guess.sample(order, NEAR))
        stand_in = Fact(f"{i}", "somebody there", "", "what is known of them", "the value it has", "", ())  # fmt: skip
        data = {"question": "what is asked about " * 4, "answer": f"{i}: " + "what it says " * 12}
        facts = tuple((d, stand_in) for d in ids for _ in range(6))
        drafts.append(Draft(i, categories, ids, 0, set(), collection, facts, near, data))
    two = [d for d in drafts if len(d.documents) == 2]
    read = dict.fromkeys(d for draft in drafts for d in draft.documents)
    kinds = [config.of_two(d.categories) for d in two]
    firsts = [collection.text(d.documents[0]) for d in two]
    return {
        "topics": [Task("", {"n": TOPICS, "titles": titles})],
        "subtopics": [_subtopics_task(f"a topic, the {n}th") for n in range(TOPICS)],
        "filter": [_filter_task(collection, d) for d in order],
        "facts": [_facts_task(collection, d) for d in read if d not in collection.by_document],
        "complement": [
            Task("", {"n": QUERIES, "kind": kind, "document": text})
            for kind, text in zip(kinds, firsts, strict=True)
        ],
        "choose": [
            Task("", {"kind": k, "document": t, "candidates": _numbered(d.others())})
            for d, k, t in zip(two, kinds, firsts, strict=True)
        ],
        "question": [_question_task(config)(d) for d in drafts],
        "check": [_check_task(d) for d in drafts],
        "claims": [_claims_task(d) for d in drafts],
    }
