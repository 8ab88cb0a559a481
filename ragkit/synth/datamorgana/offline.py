"""DataMorgana's stages without a language model: recorded facts, rules, and templates."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ragkit.synth.datamorgana import filters, words
from ragkit.synth.datamorgana.collection import Collection, Fact
from ragkit.synth.datamorgana.mistakes import misspell
from ragkit.synth.datamorgana.words import added, cap, fill, phrases, small
from ragkit.synth.stages import Check, Rejected, Task
from ragkit.synth.streams import Stream
from ragkit.synth.world import MONTHS, WEEKDAYS

SHORT = 9  # most words of a concise natural question, a name as one, without what stands around it
BRIEF = 11  # most words of it, names and all
# Most words that are put around a concise question to say who asks, courteously, and for what.
PREMISE, COURTESY, STYLE = 5, 3, 3
QUERY, LIMIT = 6, 24  # most words of a short search query, and of a long one
# Shares of a question's words, names apart, that stand in its documents.
SIMILAR, DISTANT = 0.5, 0.34
# Chances that a claim beyond what was asked for is in the answer.
MORE = {"concise-answer": (0.0, 0.0), "unspecified": (0.45, 0.2), "detailed-answer": (1.0, 0.5)}
LISTED = 4  # most facts of a list
POLITE = re.compile(
    r"\b(please|thank(?:s| you)|grateful|kind(?:ly)?|appreciate\w*|would you mind|sorry|excuse me|"
    r"may i (?:kindly )?ask|don't mind|too much trouble|might i)\b",
    re.I,
)
_AUXILIARY = re.compile(
    r"\b(do|does|did|is|are|was|were|may|must|can|could|will|would|should|shall|has|have|had|am)\b",
    re.I,
)
_ASKS = re.compile(r"(who|whose|which|what|how many|how much)\b", re.I)
# Questions that can follow a phrase: not an order, no fragment such as "Rent of the office?"
_WHOLE = re.compile(
    r"(?:(?:at|in|on|to|by|for|from|of|with|after|until|under|below|beyond|during|as|up) )*(?:as of )?"
    r"(?:what|which|who|whom|whose|when|where|why|how|is|are|do|does|did|was|were|am|can|may|must|will) "
    r".*\?$",
    re.I,
)
_ORDERS = re.compile(r"(list|name|give|define|explain|compare|enumerate)\b", re.I)
# After a preposition the name stands alone; elsewhere it is people who act.
_AFTER = re.compile(
    r"\b(about|against|among|at|behind|between|by|for|from|in|of|on|through|to|towards|visit|visiting|with) \{f\}"
)
_NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?)(?: .*)?")


class Refused(Exception):
    """Facts cannot be put into words of these categories; the message says why."""


@dataclass(frozen=True)
class Draft:
    """A question on its way through the stages.

    Parameters
    ----------
    index : int
        From 0, in the order of the questions.
    categories : dict of str to str
    documents : tuple of str
    turn : int
        How often it was begun before.
    taken : set of tuple
        What other questions ask for, and in which words.
    collection : Collection
    facts : tuple of (str, Fact)
        What can be asked, with the document that states it.
    near : tuple of str
        Other documents: candidates for the second, then those that the question is tried on.
    data : dict
        The answer of the stage `question`.
    """

    index: int
    categories: dict[str, str]
    documents: tuple[str, ...]
    turn: int
    taken: set[tuple]
    collection: Collection
    facts: tuple[tuple[str, Fact], ...] = ()
    near: tuple[str, ...] = ()
    data: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"question {self.index + 1}" + (f", try {self.turn + 1}" if self.turn else "")

    @property
    def texts(self) -> list[str]:
        return [self.collection.text(d) for d in self.documents]

    def others(self) -> list[str]:
        return [self.collection.text(d) for d in self.near]

    def task(self, values: dict) -> Task:
        return Task(self.name, values, self, turn=self.turn)

    def used(self, data: dict | None = None) -> list[Fact]:
        """Return the facts that the question asks for."""
        return [self.facts[n - 1][1] for n in (data or self.data)["facts"]]

    def turn_key(self, data: dict) -> tuple:
        """Return what identifies what is asked for."""
        return (self.categories.get("Answer Type"), *sorted(f.fact_id for f in self.used(data)))

    def text_key(self, data: dict) -> tuple:
        return ("text", " ".join(data["question"].lower().split()))


class Offline:
    """Answer the stages from recorded facts.

    Parameters
    ----------
    collection : Collection
    seed : int
    """

    def __init__(self, collection: Collection, seed: int):
        self.collection, self.seed = collection, seed

    def answer(
        self, stage: str, tasks: Sequence[Task], check: Check | None = None
    ) -> list[dict | Rejected]:
        """Return the data of each task, or `Rejected` where the facts do not carry it."""
        found: list[dict | Rejected] = []
        for task in tasks:
            try:
                data = getattr(self, stage)(task)
                reason = check(task, data) if check else ""
            except Refused as refused:
                reason = str(refused)
            found.append(Rejected(stage, task.item, reason) if reason else data)
        return found

    def stream(self, name: str, draft: Draft) -> Stream:
        return Stream(self.seed, name, draft.index, draft.turn)

    # Documents

    def able(self, kind: str, doc_id: str) -> bool:
        """Return whether the facts of a document can carry a question of an answer type."""
        if kind not in ("comparison", "multi-aspect"):
            return any(askable(kind, self.collection, [doc_id]))
        return any(any(self._partners(kind, f)) for f in self.collection.by_document[doc_id])

    def _partners(self, kind: str, fact: Fact) -> Iterator[Fact]:
        """Yield the facts of other documents that make a question with a fact."""
        if fact.key != "case":
            peers = self._peers[kind, fact.key if kind == "comparison" else fact.subject]
            yield from (peer for peer in peers if _apart(kind, fact, peer))

    @cached_property
    def _topics(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for fact in self.collection.facts:
            if fact.key != "case" and fact.label not in found[fact.topic]:
                found[fact.topic].append(fact.label)
        return found

    def topics(self, task: Task) -> dict:
        return {"topics": list(self._topics)}

    def subtopics(self, task: Task) -> dict:
        return {"topics": [task.given, *self._topics[task.given]]}

    def filter(self, task: Task) -> dict:
        scores = {name: score(task.given) for name, score in filters.CRITERIA.items()}
        why = {name: score.why for name, score in scores.items()}
        return {name: score.value for name, score in scores.items()} | {"why": why}

    def facts(self, task: Task) -> dict:
        return {"facts": []}  # what is not recorded is not known

    @cached_property
    def _peers(self) -> dict[tuple[str, str], list[Fact]]:
        found: dict[tuple[str, str], list[Fact]] = defaultdict(list)
        for fact in self.collection.facts:
            if fact.key != "case":
                found["comparison", fact.key].append(fact)
                found["multi-aspect", fact.subject].append(fact)
        return found

    def complement(self, task: Task) -> dict:
        """Return a query for each fact of the document that another document could complete."""
        draft = task.given
        kind, stream = draft.categories["Answer Type"], self.stream("complement", draft)
        known = self.collection.by_document[draft.documents[0]]
        peers = [p for f in known for p in stream.sample(list(self._partners(kind, f)), 1)]
        queries = [f"{p.subject} {p.label} {p.value}" for p in stream.sample(peers, len(peers))]
        return {"pairs": [{"question": "", "query": query} for query in queries]}

    def choose(self, task: Task) -> dict:
        draft, first = task.given, task.given.documents[0]
        for number, doc_id in enumerate(draft.near, 1):
            if any(_pairs(draft.categories["Answer Type"], self.collection, first, doc_id)):
                return {"reason": "", "number": number}
        raise Refused("no candidate completes the document")

    # Questions

    def question(self, task: Task) -> dict:
        """Return a question for facts of the documents that nobody asked for, with its answer."""
        draft = task.given
        kind, stream = draft.categories["Answer Type"], self.stream("question", draft)
        order = {id(fact): n for n, (_, fact) in enumerate(draft.facts, 1)}
        options = list(askable(kind, self.collection, draft.documents))
        refused = Refused(f"no {kind} can be asked of its facts")
        for facts in stream.sample(options, len(options)):
            numbers = [order[id(fact)] for fact in facts]
            if draft.turn_key({"facts": numbers}) in draft.taken:
                continue
            try:
                about = about_facts(kind, facts, self.collection, stream)
                written, correct = write(about, draft.categories, " ".join(draft.texts), stream)
            except Refused as reason:
                refused = reason
                continue
            claims = self._claims(draft, facts, about.direct, stream)
            answer = " ".join(c for part in claims.values() for c in part)
            return {"question": written, "answer": answer, "facts": numbers} | {
                "correct": correct,
                "claims": claims,
            }
        raise refused

    def _claims(self, draft: Draft, facts, direct, stream: Stream) -> dict[str, list[str]]:
        """Return the claims of an answer: what else is said of the subject is useful."""
        own = {fact.fact_id for fact in facts}
        other = [f for _, f in draft.facts if f.fact_id not in own]
        about = {(fact.subject, fact.topic) for fact in facts}
        useful = [f.claim for f in other if (f.subject, f.topic) in about]
        useless = [f.claim for f in other if (f.subject, f.topic) not in about]
        if facts[0].key == "case" and facts[0].fix:
            useful = [f"What helps is to {facts[0].fix}.", *useful]
        chances = MORE[draft.categories["Answer Style"]]
        return {
            "direct": list(direct),
            "useful": [c for c in dict.fromkeys(useful[:3]) if stream.chance(chances[0])],
            "useless": [c for c in useless[:1] if stream.chance(chances[1])],
        }

    def claims(self, task: Task) -> dict:
        return task.given.data["claims"]

    def check(self, task: Task) -> dict:
        """Return what the recorded facts say: who states what is asked for."""
        draft = task.given
        used = draft.used()
        lower = self.collection.lower
        needed = [
            n
            for n, doc_id in enumerate(draft.documents, 1)
            if any(
                all(f.value.lower() not in lower[d] for d in draft.documents if d != doc_id)
                for f in used
                if doc_id in f.documents
            )
        ]
        elsewhere = [
            n
            for n, doc_id in enumerate(draft.near, 1)
            if any(
                doc_id in f.documents
                or (f.value.lower() in lower[doc_id] and f.subject.lower() in lower[doc_id])
                for f in used
            )
        ]
        return {"answered": True, "needed": needed, "elsewhere": elsewhere, "reason": ""}


# What can be asked of documents


def askable(kind: str, collection: Collection, documents: Sequence[str]) -> Iterator[tuple]:
    """Yield the facts, one or several, that a question of an answer type can be about."""
    facts = collection.by_document[documents[0]]
    plain = [f for f in facts if f.key != "case"]
    if kind in ("comparison", "multi-aspect"):
        yield from _pairs(kind, collection, *documents)
    elif kind == "list":
        by_subject: dict[str, list[Fact]] = defaultdict(list)
        for fact in plain:
            by_subject[fact.subject].append(fact)
        yield from (tuple(part[:LISTED]) for part in by_subject.values() if len(part) > 1)
    elif kind == "explanation":
        yield from ((f,) for f in facts if f.key == "case")
    else:
        yield from ((f,) for f in plain if kind != "definition" or f.said)


def _pairs(kind: str, collection: Collection, first: str, second: str) -> Iterator[tuple]:
    for a in collection.by_document[first]:
        for b in collection.by_document[second]:
            if a.key != "case" != b.key and _apart(kind, a, b):
                yield a, b


def _apart(kind: str, a: Fact, b: Fact) -> bool:
    """Return whether two facts of different documents make a question of a kind."""
    alone = not set(a.documents) & set(b.documents)
    if kind == "comparison":
        return alone and a.key == b.key and a.subject != b.subject
    return alone and a.subject == b.subject and a.key != b.key


@dataclass(frozen=True)
class About:
    """What a question is about, ready for the templates: wordings, names, answer, what to hide."""

    near: tuple[str, ...]
    far: tuple[str, ...]
    marks: tuple[str, ...]
    names: frozenset[str]
    title: str
    direct: tuple[str, ...]
    given: tuple[str, ...]


def about_facts(kind: str, facts: Sequence[Fact], collection: Collection, stream: Stream) -> About:
    """Return the wordings of a question about facts, from the templates of its kind."""
    first, last = facts[0], facts[-1]
    bank = phrases()["kinds"][kind]
    slots = {"where": first.where, "Where": cap(first.where), "label": first.label}
    slots |= {"subject": first.subject, "subject2": last.subject, "label2": last.label}
    slots |= {"is": _verb(first.label), "is2": _verb(last.label), "title": first.topic}
    slots |= {"does": "does" if slots["is"] == "is" else "do", "Label": cap(first.label)}
    direct, given = tuple(f.claim for f in facts), tuple(f.value for f in facts)
    ask, far = list(first.ask), [roundabout(line, first) for line in first.far]
    if kind == "yes/no":
        said, true = _proposed(first, collection, stream)
        slots["said"] = said
        direct = (f"{'Yes' if true else 'No'}: {small(first.claim, words.names(first.subject))}",)
        given = ()
    elif kind == "definition":
        direct = (f"{cap(first.where)}, '{first.label}' refers to this: {first.said}.",)
    elif kind == "list":
        labels = [f"the {fact.label}" for fact in facts]
        slots["labels"] = f"{', '.join(labels[:-1])} and {labels[-1]}"
        joined = [roundabout(f.far[0], f) if n == 0 else _them(f.far[0]) for n, f in enumerate(facts) if f.far]  # fmt: skip
        far = [" ".join(map(cap, joined))] if len(joined) == len(facts) else []
    elif kind == "comparison":
        direct = (_compared(first, last), *direct)
    elif kind == "multi-aspect":
        far = [f"{x.rstrip('?.')}, and {small(_them(y))}" for x in far for y in last.far]
    names = words.names(first.subject, last.subject)
    names |= words.names(slots.get("said", ""))
    return About(
        tuple(_expanded(bank["near"], slots, ask, far)),
        tuple(_expanded(bank["far"], slots, ask, far)),
        tuple(bank["marks"]),
        names,
        first.topic,
        direct,
        given,
    )


def _expanded(lines: Sequence[str], slots: dict[str, str], ask, far) -> Iterator[str]:
    """Yield templates with their slots filled, once for every wording of the fact itself."""
    for line in lines:
        if "{label}" in line and not slots["label"]:
            continue
        for name, wordings in (("ask", ask), ("far", far)):
            if "{" + name in line:
                for wording in wordings:
                    one = line.replace("{" + name + "_}", wording.rstrip("?."))
                    yield _slotted(one.replace("{" + name + "}", wording), slots)
                break
        else:
            yield _slotted(line, slots)


def _slotted(line: str, slots: dict[str, str]) -> str:
    for name, value in slots.items():
        line = line.replace("{" + name + "}", value)
    return line


def roundabout(phrase: str, fact: Fact) -> str:
    """Return a roundabout phrase about a fact's subject."""
    phrase = phrase.replace("{thing}", fact.subject)
    phrase = _AFTER.sub(lambda m: f"{m[1]} {fact.subject}", phrase)
    return phrase.replace("{f}", fact.people or fact.subject)


def _them(phrase: str) -> str:
    """Return a roundabout phrase about those who were named before."""
    phrase = _AFTER.sub(lambda m: "there" if m[1] in ("at", "to", "in") else f"{m[1]} them", phrase)
    return phrase.replace("{f}", "they").replace("{thing}", "it")


def _verb(label: str) -> str:
    single = label.startswith(("number", "share")) or not label.endswith("s")
    return "is" if single else "are"


def _proposed(fact: Fact, collection: Collection, stream: Stream) -> tuple[str, bool]:
    """Return a value to ask for, the fact's own or that of another subject, and whether it is true."""
    others = sorted({f.value for f in collection.facts if f.key == fact.key} - {fact.value})
    if not others:
        raise Refused("no other value is known to ask for")
    true = stream.chance(0.5)
    return (fact.value, True) if true else (stream.pick(others), False)


def _number(value: str) -> float | None:
    match = _NUMBER.fullmatch(value)
    return float(match[1].replace(",", "")) if match else None


def _compared(a: Fact, b: Fact) -> str:
    """Return the verdict of a comparison as a claim."""
    one, two = _number(a.value), _number(b.value)
    if a.value == b.value:
        return f"They have the same {a.label}: {a.value}."
    if one is None or two is None:
        return f"{cap(a.label)}: {a.value} {a.where}, {b.value} {b.where}."
    return f"{cap(a.label)}: higher {(a if one > two else b).where}."


# From a question in waiting to words


def write(
    about: About, categories: dict[str, str], document: str, stream: Stream
) -> tuple[str, str]:
    """Return the question as it is asked, and as it would be without spelling mistakes.

    Raises
    ------
    Refused
        If it cannot be put into words of these categories.
    """
    near = categories["Linguistic Variation"] == "similar-to-document"
    search = categories["Phrasing"].endswith("query")
    wordings = dict.fromkeys(about.near if near else about.far)
    options = [o for w in wordings for o in (_queries(w, about) if search else [w])]
    shares = {o: words.overlap(o, document, about.names) for o in dict.fromkeys(options)}
    options = [o for o, share in shares.items() if (share >= SIMILAR if near else share <= DISTANT)]
    if not options:
        raise Refused("too few words in common" if near else "too many words in common")
    put = _query if search else _natural
    text = put(options, about, categories, near, stream)
    if any(g.lower() in f" {text.lower()} " for g in about.given if len(g) > 2):
        raise Refused("it gives its answer away")
    if categories["Politeness"] == "neutral" and POLITE.search(text):
        raise Refused("it is polite by itself")
    written = misspell(text, categories["Linguistic Correctness"], stream, about.names)
    if written == text and categories["Linguistic Correctness"] != "correct":
        raise Refused("no word of it can be misspelt")
    return written, text


def _queries(wording: str, about: About) -> Iterator[str]:
    """Yield keywords for a wording: its words that carry meaning, the names before or behind.

    Where they are many, the first two of them are a query, too.
    """
    plain = re.sub(r"\[([^|\]]*)\|[^\]]*\]", r"\1", wording)
    kept = (set(words.content(plain)) - words.ASKING) | (about.names - words.STOP_WORDS)
    bare = [w for w in words.words(plain) if w in kept]
    name = [w for w in bare if w in about.names]
    rest = [w for w in bare if w not in about.names]
    if not rest or not name:
        return
    for mark in about.marks:
        for kept in (rest, rest[:2]):
            for parts in ((kept, [mark], name), (name, kept, [mark]), ([mark], kept, name)):
                yield " ".join(w for part in parts for w in part if w)


def _query(options, about: About, categories, near: bool, stream: Stream) -> str:
    extra = []
    if categories["Answer Style"] != "unspecified":
        extra = [stream.pick(phrases()["style"][categories["Answer Style"]]["keywords"])]
    lead = ""
    if categories["Premise"] == "with-premise":
        lead = stream.pick(phrases()["keywords"][categories["User Persona"]])
    short = categories["Phrasing"] == "short-search-query"
    low, high = (1, QUERY) if short else (QUERY + 1, LIMIT)
    made = [words.keywords(" ".join([lead, option, *extra])) for option in options]
    made = [text for text in made if low <= len(text.split()) <= high]
    longest = max((len(text.split()) for text in made), default=0)
    made = [text for text in made if len(text.split()) > longest - 2]
    if not made:
        raise Refused("no search query of this length")
    return stream.pick(made)


def _natural(options, about: About, categories, near: bool, stream: Stream) -> str:
    names, persona = about.names, categories["User Persona"]
    brief = categories["Phrasing"] == "concise-and-natural"
    options = [o for o in options if not POLITE.search(o)]
    asked = [o for o in options if _WHOLE.match(o)]
    if brief:
        options = [o for o in options if words.count(o, names) <= SHORT and len(o.split()) <= BRIEF]
    else:  # an order does not go well behind a phrase, a longer question needs none
        longer = [o for o in options if words.count(o, names) > SHORT]
        options = longer if longer and (stream.chance(0.7) or not asked) else asked
    if not options:
        raise Refused("no wording of this length")
    slots = _slots(about, near, stream)
    text = fill(stream.pick(options), {}, stream)
    if not brief and words.count(text, names) <= SHORT:
        frame = stream.pick(_fitting(phrases()["frames"][persona], near))
        text = _around(frame, text, names, slots, stream)
    if categories["Politeness"] == "polite":
        text = _politely(text, names, stream, brief)
    if categories["Answer Style"] != "unspecified":
        frames = phrases()["style"][categories["Answer Style"]]["natural"]
        frames = [f for f in frames if not brief or added(f) <= STYLE]
        # A colon or an order inside does not go with a phrase before it.
        if categories["Politeness"] == "polite" or ":" in text or not _WHOLE.match(text):
            frames = [f for f in frames if f.startswith("{q}")]
        text = _around(stream.pick(frames), text, names, slots, stream)
    if categories["Premise"] == "with-premise":
        frames = _fitting(phrases()["premises"][persona], near)
        frames = [f for f in frames if not brief or added(f) <= PREMISE]
        text = f"{fill(stream.pick(frames), slots, stream)} {cap(text)}"
    return cap(text)


def _fitting(frames: list[str], near: bool) -> list[str]:
    """Return the phrases that fit; far from the document, none that names a thing of it."""
    return [f for f in frames if near or not ("{thing}" in f or "{title}" in f)]


def _slots(about: About, near: bool, stream: Stream) -> dict[str, str]:
    bank = phrases()["slots"]
    return {
        "years": str(stream.between(4, 19)),
        "first": stream.pick(bank["first"]),
        "place": stream.pick(bank["place"]),
        "weekday": stream.pick(WEEKDAYS),
        "month": stream.pick(MONTHS),
        "clock": f"{stream.between(6, 22)}:{stream.pick(('00', '15', '30', '45'))}",
        "title": about.title,
        "thing": about.title,
    }


def _around(frame: str, text: str, names, slots: dict[str, str], stream: Stream) -> str:
    return fill(frame, slots, stream).replace("{q2}", small(text, names)).replace("{q}", cap(text))


def _politely(text: str, names, stream: Stream, brief: bool) -> str:
    bank = phrases()["polite"]
    if brief:
        bank = {place: [x for x in lines if added(x) <= COURTESY] for place, lines in bank.items()}
    plain = text.endswith("?") and text.count("?") == 1
    if _ORDERS.match(text):
        line = stream.pick(bank["imperative"])
        out = _around(line, text, names, {}, stream)
        asks = text.endswith(".") and not line.startswith(("Please", "I'd", "Kindly"))
        return out[:-1] + "?" if asks else out
    if plain and _ASKS.match(text) and not _AUXILIARY.search(text) and stream.chance(0.7):
        line = stream.pick(bank["indirect"])
        out = _around(line, text, names, {}, stream)
        return out[:-1] + "." if line.startswith(("I would", "Please", "Kindly")) else out
    fits = plain and ":" not in text and _WHOLE.match(text)
    lines = bank["before"] + bank["after"] if fits else bank["after"]
    return _around(stream.pick(lines), text, names, {}, stream)
