"""What question flows look into and speak with: documents, counts of facts, phrases in rotation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ragkit.synth import banks
from ragkit.synth.banks import Attribute
from ragkit.synth.briefs import Brief
from ragkit.synth.index import Index
from ragkit.synth.pen import CASE, Pen, cap, voices
from ragkit.synth.plan import Plan
from ragkit.synth.streams import Stream
from ragkit.synth.world import MONTHS, Fact

# Words that open a question and are written small inside a sentence.
ASKING = frozenset(
    """After Among As At By Did Do Does For From How In Is Of On Until Up What When Where Which Who
    Whom Whose Why With Within""".split()
)
STOP = frozenset(
    """a about after all an and any are as at be been before by can did do does done each for from
    get gets had has have how if in into is it its may me more much must my name need no not of off
    on one only or our out please she so some than that the their them then there these they this
    to until up us was we were what when where which who whom whose why will with would you""".split()
)


class Corpus:
    """What the flows look into: the written documents, and how often a fact is stated.

    Parameters
    ----------
    plan : Plan
    index : Index
        Of the volume documents.
    extra : dict of str to dict
        Written documents outside the volume, by id.
    pairs : list of dict
        Records of near-duplicates.
    """

    def __init__(self, plan: Plan, index: Index, extra: dict[str, dict], pairs: list[dict]):
        self.plan, self.world, self.volume = plan, plan.world, plan.volume
        self.index, self.count, self.extra, self.pairs = index, index.count, extra, pairs
        self.made: Counter[str] = Counter()  # questions by type, as they are accepted
        self.changed = {(p["key"], p["entity"]) for p in pairs}
        self.written = dict(extra)
        # One rotation for all types, so that a phrase does not come up in each of them.
        self.phrases = Phrases(Stream(self.world.seed, "phrases"))

    def document(self, source: str, number: int) -> dict | None:
        """Return a volume document, or None if its author left it out."""
        document = self.index.read(source, number)
        if document is not None:
            self.written[document["doc_id"]] = document
        return document

    def only(self, fact: Fact) -> bool:
        """Whether one document states a fact, and no later one changes it."""
        unchanged = (fact.key, fact.entity) not in self.changed
        return unchanged and self.count("full", fact.key, fact.entity, fact.scope) == 1

    def fill(self, stream: Stream, line: str, slots: dict) -> str:
        """Return a line with who asks, and when, filled in."""
        return cap(Pen(stream, voices(self.world, stream) | slots).fill(line))


class Phrases:
    """Phrases in rotation: the one that was used least comes next, and so for attributes."""

    def __init__(self, stream: Stream):
        self.stream = stream
        self.attributes: Counter[str] = Counter()
        self.tries: Counter[str] = Counter()  # documents looked at for an attribute
        self.phrases: Counter[str] = Counter()

    def ask(self, attribute: Attribute) -> str:
        """Return a question for an attribute."""
        self.attributes[attribute.key] += 1
        return self.least(attribute.ask)

    def least(self, phrases: Sequence[str]) -> str:
        """Return the phrase that was used least."""
        fewest = min(self.phrases[p] for p in phrases)
        phrase = self.stream.pick([p for p in phrases if self.phrases[p] == fewest])
        self.phrases[phrase] += 1
        return phrase


def visible(document: dict) -> str:
    """Return title and content: what a retrieval system is given."""
    return f"{document['title']}\n\n{document['content']}"


def content_words(text: str) -> set[str]:
    return {w for w in re.findall(r"[^\W_]+", text.lower()) if w not in STOP and len(w) > 2}


def overlap(question: str, document: dict) -> float:
    """Return the share of a question's content words that stand in its document."""
    asked = content_words(question)
    return len(asked & content_words(visible(document))) / max(1, len(asked))


def lead(
    corpus: Corpus,
    stream: Stream,
    question: str,
    share: float,
    *,
    brief: Brief | None = None,
    value: str = "",
    before: bool = False,
) -> str:
    """Return a question as people ask it: with who asks, what for, or what it is about.

    Parameters
    ----------
    corpus : Corpus
    stream : Stream
    question : str
    share : float
        Of the questions that get such words.
    brief : Brief, optional
        Of the document, whose case may then be called to mind.
    value : str
        The answer; to a number people add other words than to a name or a day.
    before : bool
        Whether the question has to come last.
    """
    question = cap(question)
    if not stream.chance(share) or not re.fullmatch(r"[^.?!:]+[.?!]", question):
        return question
    banked = banks.sections("questions")
    slots = voices(corpus.world, stream)
    slots |= {"q": question, "Q": question, "q2": inner(question)}
    case = {p.text: p.role for p in reversed(brief.points) if p.role in CASE} if brief else {}
    if case and stream.chance(0.35):
        told = corpus.phrases.least(sorted(case))
        slots |= {"case": told, "Case": cap(told)}
        lines = banked[f"{case[told]} in mind"]
    else:
        lines = banked["lead"]
        if re.match(rf"[\d,.]+ (?!{'|'.join(MONTHS)})", value):
            lines = (*lines, *banked["lead number"])
    if before:
        lines = [line for line in lines if line.lower().endswith(("{q}", "{q2}"))]
    return cap(Pen(stream, slots).fill(corpus.phrases.least(fit(lines, question))))


def inner(question: str) -> str:
    return question[:1].lower() + question[1:]


def fit(lines: Sequence[str], question: str) -> list[str]:
    """Return the lines in which a question can stand: inside a sentence only a whole one can."""
    whole = question.split()[0].rstrip(",") in ASKING and question.count("?") == 1
    return [line for line in lines if whole or "2}" not in line]
