"""The ten question types of EnterpriseRAG-Bench, each by its own flow (appendix C), validated.

A flow proposes drafts; a draft becomes a question when its type's condition holds in the
documents as they were written. What fails is counted and replaced by the next draft.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date

from ragkit.errors import UsageError
from ragkit.synth import banks
from ragkit.synth.briefs import SOURCES, Brief, shares
from ragkit.synth.core import Draft, answered
from ragkit.synth.index import Index
from ragkit.synth.pen import CASE, GLUE, Pen, Slots, cap, stop, voices
from ragkit.synth.plan import TYPES, Plan
from ragkit.synth.streams import Stream
from ragkit.synth.world import MONTHS, Fact, Subject, say_date

SEMANTIC_OVERLAP = 0.5  # most content words that a semantic question may share with its document
DESCRIBED_OVERLAP = 0.36  # the same where its subject is described and not named
NAMED = 0.25  # of the semantic questions name their subject, if few enough words are shared
BASIC_OVERLAP = 0.25  # fewest that a basic one shares
TURN = 0.25  # of a use: what a document without a question costs its attribute in the rotation
LOOKS = 1000  # documents of a source that are looked at before another source gives the question
DISTANCE = 250  # characters between the halves of an intra-document answer, at least
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
        self.phrases = _Phrases(Stream(self.world.seed, "phrases"))

    def document(self, source: str, number: int) -> dict | None:
        """Return a volume document, or None if its author left it out."""
        document = self.index.read(source, number)
        if document is not None:
            self.written[document["doc_id"]] = document
        return document


def visible(document: dict) -> str:
    return f"{document['title']}\n\n{document['content']}"


def content_words(text: str) -> set[str]:
    return {w for w in re.findall(r"[^\W_]+", text.lower()) if w not in STOP and len(w) > 2}


def overlap(question: str, document: dict) -> float:
    """Return the share of a question's content words that stand in its document."""
    asked = content_words(question)
    return len(asked & content_words(visible(document))) / max(1, len(asked))


def make_questions(
    corpus: Corpus, counts: dict[str, int], gold_sources: dict[str, dict[str, float]]
) -> tuple[list[dict], dict]:
    """Return validated questions in ERB's fields, and the statistics of rejected drafts.

    Parameters
    ----------
    corpus : Corpus
    counts : dict of str to int
        Questions by type.
    gold_sources : dict of str to dict
        For single-document types, the weight of each source as gold source (Table 10).

    Raises
    ------
    UsageError
        If the documents do not carry as many questions of a type.
    """
    flows: dict[str, Callable[[], Iterator[Draft]]] = {
        "basic": lambda: _single(corpus, "basic", gold_sources["basic"], counts["basic"]),
        "semantic": lambda: _single(
            corpus, "semantic", gold_sources["semantic"], counts["semantic"]
        ),
        "intra_document_reasoning": lambda: _intra(
            corpus,
            gold_sources["intra_document_reasoning"],
            counts["intra_document_reasoning"],
        ),
        "project_related": lambda: _from_groups(corpus, "project"),
        "constrained": lambda: _constrained(corpus, counts["constrained"]),
        "conflicting_info": lambda: _conflicting(corpus),
        "completeness": lambda: _from_groups(corpus, "cluster"),
        "miscellaneous": lambda: _miscellaneous(corpus),
        "high_level": lambda: _high_level(corpus),
        "info_not_found": lambda: _not_found(corpus),
    }
    rows: list[dict] = []
    rejected: Counter[str] = Counter()
    seen: set[str] = set()
    for kind in TYPES:
        for draft in flows[kind]() if counts.get(kind) else ():
            if draft.text in seen:
                continue
            reason = validate(corpus, draft)
            if reason:
                rejected[f"{kind}: {reason}"] += 1
                continue
            seen.add(draft.text)
            rows.append(_row(corpus, draft))
            corpus.made[kind] += 1
            if corpus.made[kind] == counts[kind]:
                break
        if corpus.made[kind] < counts.get(kind, 0):
            raise UsageError(
                f"the documents carry {corpus.made[kind]:,} questions of type {kind!r}, not {counts[kind]:,}",
                "ask for fewer questions or make more documents",
            )
    for number, row in enumerate(rows, 1):
        row["question_id"] = f"qst_{number:04d}"
    ordered = [{"question_id": row.pop("question_id"), **row} for row in rows]
    return ordered, dict(sorted(rejected.items()))


def _row(corpus: Corpus, draft: Draft) -> dict:
    sources = [corpus.written[doc_id]["source_type"] for doc_id in draft.gold]
    return {
        "question_type": draft.kind,
        "source_types": [s for s in SOURCES if s in sources],
        "question": draft.text,
        "expected_doc_ids": list(draft.gold),
        "gold_answer": draft.answer,
        "answer_facts": list(draft.facts),
        "pattern": draft.pattern,
        "distractor_doc_ids": list(draft.distractors),
    }


def validate(corpus: Corpus, draft: Draft) -> str:
    """Return why a draft does not meet its type's condition, or an empty string."""
    for doc_id in draft.gold:
        if doc_id not in corpus.written:
            return "a gold document was left out by its author"
    for doc_id, strings in draft.needed.items():
        text = visible(corpus.written[doc_id]).lower()
        if any(s.lower() not in text for s in strings):
            return "a gold document does not say it"
    document = corpus.written[draft.gold[0]] if draft.gold else None
    if draft.kind == "semantic" and overlap(draft.text, document) > SEMANTIC_OVERLAP:
        return "too many words in common"
    if draft.kind == "basic" and overlap(draft.text, document) < BASIC_OVERLAP:
        return "too few words in common"
    if draft.kind == "intra_document_reasoning":
        first, last = (
            corpus.written[draft.gold[0]]["content"].lower().find(s.lower()) for s in draft.absent
        )
        if first < 0 or last < 0 or abs(last - first) < DISTANCE:
            return "answerable from one passage"
    elif draft.absent and draft.gold:
        wanted = [part.lower() for item in draft.absent for part in item.split("\n")]
        for doc_id in draft.gold:
            text = visible(corpus.written[doc_id]).lower()
            if all(w in text for w in wanted):
                return "one document answers it"
    if draft.kind == "constrained" and not draft.distractors:
        return "no distractor"
    if draft.kind == "high_level":
        wanted = [part.lower() for part in draft.absent]
        for other in corpus.extra.values():
            text = visible(other).lower()
            if all(w in text for w in wanted):
                return "one document answers it"
    return ""


# Single documents


class _Turns:
    """Whose turn it is: each source in its share of the questions, until it has given one.

    A source whose documents can seldom be asked about is looked at more often, so that the gold
    sources follow the weights and not the ease of asking.

    Parameters
    ----------
    corpus : Corpus
    stream : Stream
    kind : str
        Type of the questions; `corpus.made` says how many were accepted.
    weights : dict of str to float
        By source.
    count : int
        Questions wanted.
    """

    def __init__(
        self, corpus: Corpus, stream: Stream, kind: str, weights: dict[str, float], count: int
    ):
        self.corpus, self.stream, self.kind = corpus, stream, kind
        self.weights = {s: w for s, w in weights.items() if w and corpus.volume.counts.get(s)}
        turns = shares(count, list(self.weights.values())) if self.weights else []
        order = [s for s, n in zip(self.weights, turns, strict=True) for _ in range(n)]
        self.order = stream.sample(order, len(order))
        self.made, self.looks, self.source = 0, 0, ""

    def next(self) -> str:
        """Return the source to look into, or an empty string if none is left."""
        made = self.corpus.made[self.kind]
        if made == self.made and self.looks == LOOKS:
            self.drop(self.source)
        if made > self.made or self.source not in self.weights:
            self.made, self.looks = made, 0
            self.source = self.order.pop() if self.order else ""
            if self.weights and self.source not in self.weights:
                self.source = self.stream.weighted(list(self.weights), list(self.weights.values()))
        self.looks += 1
        return self.source if self.weights else ""

    def drop(self, source: str) -> None:
        """Look into a source no more."""
        self.weights.pop(source, None)


def _documents(
    corpus: Corpus, name: str, weights: dict[str, float], turns: _Turns | None = None
) -> Iterator[tuple[Stream, Brief, dict]]:
    """Yield volume documents at random, sources by weight or in turns, each at most once."""
    stream = Stream(corpus.world.seed, "questions", name)
    volume = corpus.volume
    weights = {s: w for s, w in weights.items() if volume.counts.get(s)}
    # Small sources must not be asked about more often than they have documents.
    taken: set[tuple[str, int]] = set()
    for _ in range(60 * sum(min(n, 4000) for n in volume.counts.values())):
        source = turns.next() if turns else stream.weighted(list(weights), list(weights.values()))
        if not source:
            return
        number = stream.below(volume.counts[source])
        if (source, number) in taken:
            continue
        taken.add((source, number))
        document = corpus.document(source, number)
        if document is not None:
            yield stream, volume.brief(source, number), document


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
    slots = voices(corpus.world, stream) | {
        "q": question,
        "Q": question,
        "q2": _inner(question),
    }
    case = [p for p in brief.points if p.role in CASE] if brief else []
    if case and stream.chance(0.35):
        texts = {p.text for p in case}
        told = corpus.phrases.least(sorted(texts))
        role = next(p.role for p in case if p.text == told)
        slots |= {"case": told, "Case": cap(told)}
        lines = banked[f"{role} in mind"]
    else:
        lines = banked["lead"]
        if re.match(rf"[\d,.]+ (?!{'|'.join(MONTHS)})", value):
            lines = (*lines, *banked["lead number"])
    if before:
        lines = [line for line in lines if line.lower().endswith(("{q}", "{q2}"))]
    line = corpus.phrases.least(_fit(lines, question))
    return cap(Pen(stream, slots).fill(line))


def _inner(question: str) -> str:
    return question[:1].lower() + question[1:]


def _fit(lines: Sequence[str], question: str) -> list[str]:
    """Return the lines in which a question can stand: inside a sentence only a whole one can."""
    whole = question.split()[0].rstrip(",") in ASKING and question.count("?") == 1
    return [line for line in lines if whole or "2}" not in line]


def _sentence(fact) -> str:
    return f"For {fact.subject}, {fact.statement}."


def _attribute(fact):
    return banks.attributes()[fact.key]


class _Phrases:
    """Phrases in rotation: an attribute comes up again when the others have had their turn."""

    def __init__(self, stream: Stream):
        self.stream = stream
        self.attributes: Counter[str] = Counter()
        self.tries: Counter[str] = Counter()  # documents looked at for an attribute
        self.phrases: Counter[str] = Counter()

    def take(self, attribute, phrases: tuple[str, ...]) -> str:
        """Return the phrase of an attribute that was used least."""
        self.attributes[attribute.key] += 1
        return self.least(phrases)

    def least(self, phrases: Sequence[str]) -> str:
        fewest = min(self.phrases[p] for p in phrases)
        phrase = self.stream.pick([p for p in phrases if self.phrases[p] == fewest])
        self.phrases[phrase] += 1
        return phrase


def _stating(
    corpus: Corpus, name: str, weights: dict[str, float], count: int
) -> Iterator[tuple[Stream, Brief, dict, Fact]]:
    """Yield volume documents, each once, with a fact that no other document states.

    The sources come in turns (see `_Turns`); the attribute is the one whose turn it is there, and the
    document is drawn from those that state it, so that none is looked at in vain for its topic.
    """
    stream = Stream(corpus.world.seed, "questions", name)
    keys = {
        source: [key for key in banks.attributes() if len(corpus.index.stating(source, key))]
        for source in weights
        if corpus.volume.counts.get(source)
    }
    weights = {source: weights[source] for source, found in keys.items() if found}
    turns = _Turns(corpus, stream, name, weights, count)
    taken: set[tuple[str, int]] = set()
    used, tries = corpus.phrases.attributes, corpus.phrases.tries
    while source := turns.next():
        rank = {key: used[key] + TURN * tries[key] for key in keys[source]}
        fewest = min(rank.values())
        key = stream.pick([key for key, turn in rank.items() if turn == fewest])
        tries[key] += 1
        number = int(stream.pick(corpus.index.stating(source, key)))
        if (source, number) in taken:
            continue
        brief = corpus.volume.brief(source, number)
        fact = next((f for f in brief.facts if f.key == key and _only(corpus, f)), None)
        document = corpus.document(source, number) if fact else None
        if document is not None:
            taken.add((source, number))
            yield stream, brief, document, fact


def _only(corpus: Corpus, fact: Fact) -> bool:
    """Whether one document states a fact, and no later one changes it."""
    unchanged = (fact.key, fact.entity) not in corpus.changed
    return unchanged and corpus.count("full", fact.key, fact.entity, fact.scope) == 1


def _single(corpus: Corpus, kind: str, weights: dict[str, float], count: int) -> Iterator[Draft]:
    for stream, brief, document, fact in _stating(corpus, kind, weights, count):
        attribute = banks.attributes()[fact.key]
        gold = (document["doc_id"],)
        if kind == "semantic":
            phrase = corpus.phrases.least(attribute.far)
            text = _roundabout(corpus, stream, brief, document, fact, phrase)
            if not text:
                continue
            corpus.phrases.attributes[fact.key] += 1
            needed = {gold[0]: (fact.value,)}
            yield Draft(kind, text, _sentence(fact), (_sentence(fact),), gold, needed)
            continue
        text = corpus.phrases.take(attribute, attribute.ask).replace("{s}", fact.subject)
        stated = [fact]
        second = next((f for f in brief.facts if f.scope == fact.scope and f.key != fact.key), None)
        if second and _only(corpus, second) and text.endswith("?") and stream.chance(0.2):
            ask = stream.pick(_attribute(second).ask)
            # A pronoun has to be an object, and both have to be whole questions.
            whole = {text.split()[0], ask.split()[0]} <= ASKING and ask.endswith("?")
            if whole and re.search(r"\b(at|by|for|from|in|of|to|with) \{s\}(?!')", ask):
                place = brief.subject.kind in ("customer", "office")
                other = ask.replace("{s}", stream.pick(("them", "that place")) if place else "them")
                text = f"{text[:-1]}, and {other[:1].lower()}{other[1:]}"
                stated.append(second)
        answer = " ".join([_sentence(fact), *(stop(f.statement) for f in stated[1:])])
        yield Draft(
            "basic",
            lead(corpus, stream, text, 0.65, brief=brief, value=fact.value),
            answer,
            tuple(map(_sentence, stated)),
            gold,
            {gold[0]: tuple(f.value for f in stated)},
        )


def _names(corpus: Corpus, subject: Subject, fact: Fact) -> Iterator[tuple[str, bool]]:
    """Yield what a subject may be called so that one document alone states the attribute of it.

    Descriptions, the short name that colleagues use, and the name itself, each with whether it
    is a name; the scope only where it is needed.
    """
    scope = fact.scope
    told = [subject.far, *([subject.nick] if subject.nick else [])]
    for name in told:
        if corpus.count("told", fact.key, subject.kind, name) == 1:
            yield name, False
    short = corpus.world.short(subject)
    part = "" if corpus.count("pair", fact.key, subject.name) == 1 else scope
    yield subject.phrase(part), True
    if short:
        aside = subject.label if subject.kind == "office" else subject.nick or subject.far
        aside = f"{aside}, {part}" if part else aside
        yield (f"{short} ({part})" if part else short), True
        yield f"{short} ({aside})", True
    if scope:
        for name in told:
            if corpus.count("told", fact.key, subject.kind, name, scope) == 1:
                yield f"{name} ({scope})", False


def _elsewhere(stream: Stream, name: str) -> str:
    """Return a description with its region told in one of several ways."""
    for _, ways in banks.rows("regions"):
        first, *others = banks.alternatives(ways)
        if first in name:
            return name.replace(first, stream.pick((first, *others)))
    return name


def _roundabout(corpus, stream, brief, document, fact, phrase) -> str:
    """Return a question in other words than the document's about a subject that can be told, or "".

    The words for what is asked are far from the document's; whom it is about is described in one
    part of the questions and called by a name in the other.
    """
    names = list(_names(corpus, brief.subject, fact))
    named = stream.chance(NAMED)
    names = sorted(stream.sample(names, len(names)), key=lambda pair: pair[1] != named)
    inside = visible(document).lower()
    things = [thing for thing in brief.topic.things if thing.lower() in inside]
    for name, is_name in names:
        text = phrase.replace("{f}", _elsewhere(stream, name))
        text = re.sub(r"\b(at|by|near|in|to) the people at the ", r"\1 the ", text)
        if overlap(text, document) > (SEMANTIC_OVERLAP if is_name else DESCRIBED_OVERLAP):
            continue
        if stream.chance(0.65):
            return lead(corpus, stream, text, 0.5, value=fact.value)
        thing = stream.pick(things or brief.topic.things)
        slots = voices(corpus.world, stream) | {
            "q": text,
            "who": stream.pick(brief.people[:3]),
            "thing": thing,
            "Thing": cap(thing),
        }
        line = corpus.phrases.least(banks.sections("questions")["hint"])
        return cap(Pen(stream, slots).fill(line))
    return ""


def _intra(corpus: Corpus, weights: dict[str, float], count: int) -> Iterator[Draft]:
    stream = Stream(corpus.world.seed, "questions", "intra")
    numbers = {s: corpus.index.split_once(s) for s in weights if corpus.volume.counts.get(s)}
    left = {s: stream.sample(found, len(found)) for s, found in numbers.items()}
    weights = {source: weights[source] for source, found in left.items() if found}
    turns = _Turns(corpus, stream, "intra_document_reasoning", weights, count)
    while source := turns.next():
        if not left[source]:
            turns.drop(source)
            continue
        number = left[source].pop()
        brief, document = corpus.volume.brief(source, number), corpus.document(source, number)
        if document is None:
            continue
        split = brief.split
        slots = voices(corpus.world, stream) | {"scope": split["scope"]}
        ask = corpus.phrases.least(GLUE[split["ask"]])
        yield Draft(
            "intra_document_reasoning",
            lead(corpus, stream, cap(Pen(stream, slots).fill(ask)), 0.5, brief=brief),
            split["answer"],
            split["facts"],
            (document["doc_id"],),
            {document["doc_id"]: split["needed"]},
            (split["first"], split["last"]),
            pattern="class told elsewhere"
            if "class" in split["answer"]
            else "option dropped later",
        )


def _miscellaneous(corpus: Corpus) -> Iterator[Draft]:
    stream = Stream(corpus.world.seed, "questions", "misc")
    for brief in stream.sample(corpus.plan.misc, len(corpus.plan.misc)):
        if brief.doc_id not in corpus.written:
            continue
        fact = brief.facts[0]
        attribute = _attribute(fact)
        phrase = stream.pick(attribute.ask if stream.chance(0.6) else attribute.far)
        text = phrase.replace("{thing}", fact.entity)
        answer = f"About {fact.entity}: {fact.statement}."
        yield Draft(
            "miscellaneous",
            lead(corpus, stream, text, 0.5),
            answer,
            (answer,),
            (brief.doc_id,),
            {brief.doc_id: (fact.value,)},
        )


# Several documents


def _from_groups(corpus: Corpus, kind: str) -> Iterator[Draft]:
    """Yield the drafts of projects or clusters in turn, one of each before the next."""
    groups = [group for group in corpus.plan.groups if group.kind == kind]
    longest = max((len(group.drafts) for group in groups), default=0)
    step = max(1, round(longest / max(1, len(groups))))
    for turn in range(longest):
        for i, group in enumerate(groups):
            # Not every project is asked the same things in the same order.
            draft = group.drafts[(turn + step * i) % len(group.drafts)]
            stream = Stream(corpus.world.seed, "asked", draft.text)
            yield replace(draft, text=lead(corpus, stream, draft.text, 0.5, before=True))


def _constrained(corpus: Corpus, count: int) -> Iterator[Draft]:
    weights = {
        "confluence": 16.0,
        "jira": 13.0,
        "slack": 3.0,
        "linear": 2.0,
        "google_drive": 3.0,
        "gmail": 3.0,
    }
    order = Stream(corpus.world.seed, "questions", "constrained", "turns")
    turns = _Turns(corpus, order, "constrained", weights, count)
    asked: set[str] = set()
    for stream, brief, document in _documents(corpus, "constrained", weights, turns):
        if brief.kind == "sheet":
            continue
        for fact in brief.facts:
            key = (fact.key, fact.entity)
            stating = corpus.count("full", *key, fact.scope)
            known = fact.fact_id in asked or key in corpus.changed
            if not fact.scope or known or stating > 2:
                continue
            others, twins = {}, {}
            for source, number in corpus.index.scopes(*key):
                other = corpus.volume.brief(source, number)
                written = corpus.document(source, number)
                if written is None or other.doc_id == brief.doc_id or other.kind == "sheet":
                    continue
                for rival in other.facts:
                    if rival.fact_id == fact.fact_id:
                        twins[written["doc_id"]] = rival
                    if (
                        rival.key == fact.key
                        and rival.scope != fact.scope
                        and rival.value != fact.value
                    ):
                        others[written["doc_id"]] = rival
            # Whatever states the fact is a gold document, and none of them can be a distractor.
            others = {doc_id: rival for doc_id, rival in others.items() if doc_id not in twins}
            if not others or 1 + len(twins) != stating:
                continue
            asked.add(fact.fact_id)
            gold = (document["doc_id"], *twins)
            attribute = _attribute(fact)
            ask = corpus.phrases.take(attribute, attribute.ask).replace("{s}", fact.entity)
            part = f"the {fact.scope}" if not fact.scope.startswith("Depot") else fact.scope
            slots = {"ask": cap(ask), "ask2": _inner(ask), "part": part, "n": fact.entity}
            lines = banks.sections("questions")["only"]
            if brief.subject.kind in ("customer", "office"):
                lines = (*lines, *banks.sections("questions")["only place"])
            line = corpus.phrases.least(_fit(lines, ask))
            text = cap(Pen(stream, voices(corpus.world, stream) | slots).fill(line))
            bans = tuple(
                f"The answer must not give {rival.value}, which holds for {rival.subject}."
                for rival in list(others.values())[:3]
            )
            yield Draft(
                "constrained",
                text,
                _sentence(fact),
                (_sentence(fact), *bans),
                gold,
                dict.fromkeys(gold, (fact.value,)),
                (),
                tuple(others),
                f"{len(others)} distractors",
            )
            break


def _conflicting(corpus: Corpus) -> Iterator[Draft]:
    stream = Stream(corpus.world.seed, "questions", "conflict")
    for pair in corpus.pairs:
        corpus.document(pair["source"], pair["number"])
        attribute = banks.attributes()[pair["key"]]
        ask = corpus.phrases.take(attribute, attribute.ask)
        ask = ask.replace("{s}", pair["subject"])
        slots = voices(corpus.world, stream) | {"ask": cap(ask), "ask2": _inner(ask)}
        line = corpus.phrases.least(_fit(banks.sections("questions")["conflict"], ask))
        text = cap(Pen(stream, slots).fill(line))
        day = say_date(date.fromisoformat(pair["old_day"]))
        answer = (
            f"{cap(pair['new'])}. The earlier note, of {day}, says {pair['old']} and is superseded."
        )
        yield Draft(
            "conflicting_info",
            text,
            answer,
            (
                f"{cap(pair['attribute'])} for {pair['subject']}: {pair['new']}.",
                f"The earlier note, of {day}, gives {pair['old']}.",
                f"The answer must not give {pair['old']} as the current {pair['attribute']}.",
            ),
            (pair["original"], pair["duplicate"]),
            {pair["original"]: (pair["old"],), pair["duplicate"]: (pair["new"],)},
            (),
            (),
            "superseded",
        )


# The whole company


def _high_level(corpus: Corpus) -> Iterator[Draft]:
    """Yield drafts about the company as a whole, from the script `high_level`."""
    world = corpus.world
    stream = Stream(world.seed, "questions", "high")
    first = [vars(item) for item in world.initiatives]
    counts = {kind: len(world.subjects[kind]) for kind in ("customer", "vendor", "office")}
    segments = [{"label": row[0], "goods": row[3]} for row in banks.rows("segments")]
    regions = [row[0] for row in banks.rows("regions")]
    slots = vars(world) | {
        "titles": ", ".join(item["title"] for item in first),
        "owners": "; ".join(f"{item['owner']} owns {item['title']}" for item in first),
        "principles": "; ".join(world.values),
        "goods": ", ".join(row["goods"] for row in segments),
        "regions": ", ".join(regions),
        "customers": f"{counts['customer']:,}",
        "vendors": f"{counts['vendor']:,}",
        "offices": str(counts["office"]),
        "customer_digits": str(counts["customer"]),
        "vendor_digits": str(counts["vendor"]),
    }
    lists = {
        "initiatives": first,
        "values": [{"value": value} for value in world.values],
        "first six segments": segments[:6],
        "first eight segments": segments[:8],
        "regions": [{"region": region} for region in regions],
    }
    script, lines = banks.sections("high_level"), banks.sections("questions")
    of_one = ("initiative measure", "initiative why", "pair")
    wanted = [(name, {}) for name in script if name not in of_one]
    for i, item in enumerate(first):
        other = {f"{name}2": value for name, value in first[(i + 3) % len(first)].items()}
        wanted += [(name, item | other) for name in of_one]
    drafts = []
    for name, more in wanted:
        own = Slots(slots | more)
        text = Pen(stream, own).say_from(lines[name])
        told = answered(script[name], own, lists)
        told.pop("needed")
        drafts.append(Draft("high_level", text, pattern=name, **told))
    yield from stream.sample(drafts, len(drafts))


def _not_found(corpus: Corpus) -> Iterator[Draft]:
    lines = banks.sections("questions")
    seen: set[str] = set()
    for stream, brief, _ in _documents(
        corpus,
        "absent",
        {
            "slack": 5.0,
            "gmail": 4.0,
            "linear": 2.0,
            "confluence": 2.0,
            "jira": 2.0,
            "google_drive": 2.0,
        },
    ):
        subject: Subject = brief.subject
        if subject.name in seen:
            continue
        # Nothing about the subject at all; in a large company, nothing about this part of it.
        missing = [
            a for a in brief.topic.attributes if not corpus.count("pair", a.key, subject.name)
        ]
        if not missing and brief.scope:
            missing = [
                a
                for a in brief.topic.attributes
                if not corpus.count("full", a.key, subject.name, brief.scope)
                and not corpus.count("full", a.key, subject.name, "")
                and len(corpus.index.scopes(a.key, subject.name)) > 1
            ]
        if not missing:
            continue
        seen.add(subject.name)
        attribute = stream.pick(missing)
        slots = {"attribute": attribute.name, "s": subject.phrase(brief.scope), "n": subject.name}
        text = corpus.phrases.take(attribute, attribute.ask)
        text = text.replace("{s}", subject.phrase(brief.scope))
        yield Draft(
            "info_not_found",
            lead(corpus, stream, text, 0.6, brief=brief),
            Pen(stream, slots).say_from(lines["not known"]),
            (lines["not known fact"][0],),
            distractors=(brief.doc_id,),
            pattern="absent attribute",
        )


# Metadata


def metadata_questions(corpus: Corpus, count: int) -> list[dict]:
    """Return questions whose answers stand in the metadata alone, as in ERB's extra questions."""
    weights = dict.fromkeys(SOURCES, 1.0)
    rows: list[dict] = []
    asked: set[str] = set()
    titles: set[str] = set()
    for stream, brief, document in _documents(corpus, "metadata", weights):
        if len(rows) == count:
            return rows
        name, phrase = stream.pick(banks.rows(brief.source, "metadata"))
        value = str(document.get(name, ""))
        key = str(
            brief.metadata.get("identifier")
            or brief.metadata.get("key")
            or brief.metadata.get("number", "")
        )
        text = (
            phrase.replace("{t}", document["title"])
            .replace("{k}", key)
            .replace("{d}", brief.day.isoformat())
        )
        if not value or text in asked or value in visible(document) or document["title"] in titles:
            continue
        asked.add(text)
        titles.add(document["title"])
        rows.append(
            {
                "question_id": f"ext_{len(rows) + 1:04d}",
                "question_type": "metadata",
                "source_types": [brief.source],
                "question": text,
                "expected_doc_ids": [document["doc_id"]],
                "gold_answer": f"{value}.",
                "answer_facts": [f"The {name.replace('_', ' ')} is {value}."],
                "pattern": name,
                "distractor_doc_ids": [],
            }
        )
    if len(rows) < count:
        raise UsageError(
            f"the documents carry {len(rows):,} questions on metadata, not {count:,}",
            "make more documents",
        )
    return rows
