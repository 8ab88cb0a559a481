"""The ten question types of EnterpriseRAG-Bench, each by its own flow (appendix C), validated.

A flow proposes drafts; a draft becomes a question when its type's condition holds in the
documents as they were written. What fails is counted and replaced by the next draft.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date

from ragkit.errors import UsageError
from ragkit.synth import banks
from ragkit.synth.briefs import SOURCES, Brief, shares
from ragkit.synth.core import Draft, answered
from ragkit.synth.corpus import ASKING, Corpus, fit, inner, lead, overlap, visible
from ragkit.synth.pen import GLUE, Pen, Slots, cap, stop, voices
from ragkit.synth.plan import TYPES
from ragkit.synth.streams import Stream
from ragkit.synth.world import Fact, Subject, say_date

SEMANTIC_OVERLAP = 0.5  # most content words that a semantic question may share with its document
DESCRIBED_OVERLAP = 0.36  # the same where its subject is described and not named
NAMED = 0.25  # of the semantic questions name their subject, if few enough words are shared
BASIC_OVERLAP = 0.25  # fewest that a basic one shares
TURN = 0.25  # of a use: what a document without a question costs its attribute in the rotation
LOOKS = 1000  # documents of a source that are looked at before another source gives the question
DISTANCE = 250  # characters between the halves of an intra-document answer, at least
CONSTRAINED = {"confluence": 16, "jira": 13, "slack": 3, "linear": 2, "google_drive": 3, "gmail": 3}
NOT_FOUND = {"slack": 5, "gmail": 4, "linear": 2, "confluence": 2, "jira": 2, "google_drive": 2}


def make_questions(
    corpus: Corpus, counts: dict[str, int], gold_sources: dict[str, dict[str, float]]
) -> tuple[list[dict], dict[str, int]]:
    """Return validated questions in ERB's fields, and the rejected drafts by type and reason.

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
    rows: list[dict] = []
    rejected: Counter[str] = Counter()
    seen: set[str] = set()
    for kind in TYPES:
        weights = gold_sources.get(kind, {})
        for draft in _FLOWS[kind](corpus, weights, counts[kind]) if counts.get(kind) else ():
            if draft.text in seen:
                continue
            if reason := validate(corpus, draft):
                rejected[f"{kind}: {reason}"] += 1
                continue
            seen.add(draft.text)
            sources = {corpus.written[doc_id]["source_type"] for doc_id in draft.gold}
            rows.append(_row(f"qst_{len(rows) + 1:04d}", draft, sources))
            corpus.made[kind] += 1
            if corpus.made[kind] == counts[kind]:
                break
        if corpus.made[kind] < counts.get(kind, 0):
            raise UsageError(
                f"the documents carry {corpus.made[kind]:,} questions of type {kind!r}, not {counts[kind]:,}",
                "ask for fewer questions or make more documents",
            )
    return rows, dict(sorted(rejected.items()))


def _row(question_id: str, draft: Draft, sources: set[str]) -> dict:
    return {
        "question_id": question_id,
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
    if not corpus.written.keys() >= set(draft.gold):
        return "a gold document was left out by its author"
    texts = {doc_id: visible(corpus.written[doc_id]).lower() for doc_id in draft.gold}
    for doc_id, strings in draft.needed.items():
        if any(s.lower() not in texts[doc_id] for s in strings):
            return "a gold document does not say it"
    document = corpus.written[draft.gold[0]] if draft.gold else None
    if draft.kind == "semantic" and overlap(draft.text, document) > SEMANTIC_OVERLAP:
        return "too many words in common"
    if draft.kind == "basic" and overlap(draft.text, document) < BASIC_OVERLAP:
        return "too few words in common"
    if draft.kind == "constrained" and not draft.distractors:
        return "no distractor"
    if draft.kind == "intra_document_reasoning":
        first, last = (document["content"].lower().find(s.lower()) for s in draft.absent)
        near = first < 0 or last < 0 or abs(last - first) < DISTANCE
        return "answerable from one passage" if near else ""
    if draft.kind == "high_level":
        texts = {doc_id: visible(other).lower() for doc_id, other in corpus.extra.items()}
    wanted = [part.lower() for item in draft.absent for part in item.split("\n")]
    alone = wanted and any(all(w in text for w in wanted) for text in texts.values())
    return "one document answers it" if alone else ""


# Single documents


class _Turns:
    """Whose turn it is: each source in its share of the questions, until it has given one.

    A source whose documents can seldom be asked about is looked at more often, so that the gold
    sources follow the weights and not the ease of asking. `corpus.made` says how many questions of
    the type were accepted.
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
    taken: set[tuple[str, int]] = set()
    for _ in range(60 * sum(min(n, 4000) for n in volume.counts.values())):
        source = turns.next() if turns else stream.weighted(list(weights), list(weights.values()))
        if not source:
            return
        number = stream.below(volume.counts[source])
        if (source, number) in taken:
            continue
        taken.add((source, number))
        if (document := corpus.document(source, number)) is not None:
            yield stream, volume.brief(source, number), document


def _stating(
    corpus: Corpus, name: str, weights: dict[str, float], count: int
) -> Iterator[tuple[Stream, Brief, dict, Fact]]:
    """Yield volume documents, each once, with a fact that no other document states.

    The sources come in turns; the attribute is the one whose turn it is there, and the document is
    drawn from those that state it, so that none is looked at in vain for its topic.
    """
    stream = Stream(corpus.world.seed, "questions", name)
    keys = {
        source: [key for key in banks.attributes() if len(corpus.index.stating(source, key))]
        for source in weights
        if corpus.volume.counts.get(source)
    }
    turns = _Turns(corpus, stream, name, {s: weights[s] for s, own in keys.items() if own}, count)
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
        fact = next((f for f in brief.facts if f.key == key and corpus.only(f)), None)
        document = corpus.document(source, number) if fact else None
        if document is not None:
            taken.add((source, number))
            yield stream, brief, document, fact


def _sentence(fact: Fact) -> str:
    return f"For {fact.subject}, {fact.statement}."


def _basic(corpus: Corpus, weights: dict[str, float], count: int) -> Iterator[Draft]:
    known = banks.attributes()
    for stream, brief, document, fact in _stating(corpus, "basic", weights, count):
        text, stated = corpus.phrases.ask(known[fact.key]).replace("{s}", fact.subject), [fact]
        second = next((f for f in brief.facts if f.scope == fact.scope and f.key != fact.key), None)
        if second and corpus.only(second) and text.endswith("?") and stream.chance(0.2):
            ask = stream.pick(known[second.key].ask)
            # A pronoun has to be an object, and both have to be whole questions.
            whole = {text.split()[0], ask.split()[0]} <= ASKING and ask.endswith("?")
            if whole and re.search(r"\b(at|by|for|from|in|of|to|with) \{s\}(?!')", ask):
                place = brief.subject.kind in ("customer", "office")
                other = ask.replace("{s}", stream.pick(("them", "that place")) if place else "them")
                text = f"{text[:-1]}, and {inner(other)}"
                stated.append(second)
        answer = " ".join([_sentence(fact), *(stop(f.statement) for f in stated[1:])])
        text = lead(corpus, stream, text, 0.65, brief=brief, value=fact.value)
        needed = {document["doc_id"]: tuple(f.value for f in stated)}
        yield Draft("basic", text, answer, tuple(map(_sentence, stated)), tuple(needed), needed)


def _semantic(corpus: Corpus, weights: dict[str, float], count: int) -> Iterator[Draft]:
    for stream, brief, document, fact in _stating(corpus, "semantic", weights, count):
        phrase = corpus.phrases.least(banks.attributes()[fact.key].far)
        if text := _roundabout(corpus, stream, brief, document, fact, phrase):
            corpus.phrases.attributes[fact.key] += 1
            answer, needed = _sentence(fact), {document["doc_id"]: (fact.value,)}
            yield Draft("semantic", text, answer, (answer,), tuple(needed), needed)


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
        yield (f"{short} ({part})" if part else short), True
        yield f"{short} ({aside}, {part})" if part else f"{short} ({aside})", True
    for name in told if scope else ():
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
    for name, is_name in names:
        text = phrase.replace("{f}", _elsewhere(stream, name))
        text = re.sub(r"\b(at|by|near|in|to) the people at the ", r"\1 the ", text)
        if overlap(text, document) > (SEMANTIC_OVERLAP if is_name else DESCRIBED_OVERLAP):
            continue
        if stream.chance(0.65):
            return lead(corpus, stream, text, 0.5, value=fact.value)
        things = [thing for thing in brief.topic.things if thing.lower() in inside]
        thing = stream.pick(things or brief.topic.things)
        slots = voices(corpus.world, stream) | {"q": text, "who": stream.pick(brief.people[:3])}
        slots |= {"thing": thing, "Thing": cap(thing)}
        return cap(
            Pen(stream, slots).fill(corpus.phrases.least(banks.sections("questions")["hint"]))
        )
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
        split, needed = brief.split, {document["doc_id"]: brief.split["needed"]}
        slots = voices(corpus.world, stream) | {"scope": split["scope"]}
        ask = cap(Pen(stream, slots).fill(corpus.phrases.least(GLUE[split["ask"]])))
        yield Draft(
            "intra_document_reasoning",
            lead(corpus, stream, ask, 0.5, brief=brief),
            split["answer"],
            split["facts"],
            tuple(needed),
            needed,
            (split["first"], split["last"]),
            pattern="class told elsewhere"
            if "class" in split["answer"]
            else "option dropped later",
        )


def _miscellaneous(corpus: Corpus, weights: dict[str, float], count: int) -> Iterator[Draft]:
    stream = Stream(corpus.world.seed, "questions", "misc")
    for brief in stream.sample(corpus.plan.misc, len(corpus.plan.misc)):
        if brief.doc_id in corpus.written:
            fact = brief.facts[0]
            attribute = banks.attributes()[fact.key]
            phrase = stream.pick(attribute.ask if stream.chance(0.6) else attribute.far)
            text = lead(corpus, stream, phrase.replace("{thing}", fact.entity), 0.5)
            answer, needed = (
                f"About {fact.entity}: {fact.statement}.",
                {brief.doc_id: (fact.value,)},
            )
            yield Draft("miscellaneous", text, answer, (answer,), tuple(needed), needed)


# Several documents


def _of_groups(kind: str) -> Callable[..., Iterator[Draft]]:
    """Return the flow that yields the drafts of projects or clusters, one of each before the next."""

    def flow(corpus: Corpus, weights: dict[str, float], count: int) -> Iterator[Draft]:
        groups = [group for group in corpus.plan.groups if group.kind == kind]
        longest = max((len(group.drafts) for group in groups), default=0)
        step = max(1, round(longest / max(1, len(groups))))
        for turn in range(longest):
            for i, group in enumerate(groups):
                # Not every project is asked the same things in the same order.
                draft = group.drafts[(turn + step * i) % len(group.drafts)]
                stream = Stream(corpus.world.seed, "asked", draft.text)
                yield replace(draft, text=lead(corpus, stream, draft.text, 0.5, before=True))

    return flow


def _constrained(corpus: Corpus, weights: dict[str, float], count: int) -> Iterator[Draft]:
    order = Stream(corpus.world.seed, "questions", "constrained", "turns")
    turns = _Turns(corpus, order, "constrained", CONSTRAINED, count)
    banked, asked = banks.sections("questions"), set()
    for stream, brief, document in _documents(corpus, "constrained", CONSTRAINED, turns):
        for fact in brief.facts if brief.kind != "sheet" else ():
            known = fact.fact_id in asked or (fact.key, fact.entity) in corpus.changed
            stating = corpus.count("full", fact.key, fact.entity, fact.scope)
            if not fact.scope or known or stating > 2:
                continue
            twins, others = _rivals(corpus, brief, fact)
            if not others or 1 + len(twins) != stating:
                continue
            asked.add(fact.fact_id)
            gold = (document["doc_id"], *twins)
            ask = corpus.phrases.ask(banks.attributes()[fact.key]).replace("{s}", fact.entity)
            part = f"the {fact.scope}" if not fact.scope.startswith("Depot") else fact.scope
            slots = {"ask": cap(ask), "ask2": inner(ask), "part": part, "n": fact.entity}
            lines = banked["only"]
            if brief.subject.kind in ("customer", "office"):
                lines = (*lines, *banked["only place"])
            line = corpus.phrases.least(fit(lines, ask))
            bans = (
                f"The answer must not give {rival.value}, which holds for {rival.subject}."
                for rival in list(others.values())[:3]
            )
            yield Draft(
                "constrained",
                corpus.fill(stream, line, slots),
                _sentence(fact),
                (_sentence(fact), *bans),
                gold,
                dict.fromkeys(gold, (fact.value,)),
                (),
                tuple(others),
                f"{len(others)} distractors",
            )
            break


def _rivals(corpus: Corpus, brief: Brief, fact: Fact) -> tuple[list[str], dict[str, Fact]]:
    """Return the other documents that state a fact, and those with another value elsewhere.

    Whatever states the fact is a gold document, and none of them can be a distractor.
    """
    twins: list[str] = []
    others: dict[str, Fact] = {}
    for source, number in corpus.index.scopes(fact.key, fact.entity):
        other, written = corpus.volume.brief(source, number), corpus.document(source, number)
        if written is None or other.doc_id == brief.doc_id or other.kind == "sheet":
            continue
        rivals = [f for f in other.facts if f.key == fact.key]
        if any(f.fact_id == fact.fact_id for f in rivals):
            twins.append(other.doc_id)
            continue
        for rival in rivals:
            if rival.scope != fact.scope and rival.value != fact.value:
                others[other.doc_id] = rival
    return twins, others


def _conflicting(corpus: Corpus, weights: dict[str, float], count: int) -> Iterator[Draft]:
    stream = Stream(corpus.world.seed, "questions", "conflict")
    script, banked = banks.sections("high_level"), banks.sections("questions")
    for pair in corpus.pairs:
        corpus.document(pair["source"], pair["number"])
        ask = corpus.phrases.ask(banks.attributes()[pair["key"]]).replace("{s}", pair["subject"])
        line = corpus.phrases.least(fit(banked["conflict"], ask))
        text = corpus.fill(stream, line, {"ask": cap(ask), "ask2": inner(ask)})
        told = Slots(pair, day=say_date(date.fromisoformat(pair["old_day"])))
        told = answered(script["conflict"], told) | {"pattern": "superseded"}
        told["needed"] = {pair["original"]: (pair["old"],), pair["duplicate"]: (pair["new"],)}
        yield Draft("conflicting_info", text, gold=tuple(told["needed"]), **told)


# The whole company


def _high_level(corpus: Corpus, weights: dict[str, float], count: int) -> Iterator[Draft]:
    """Yield drafts about the company as a whole, from the script `high_level`."""
    world = corpus.world
    stream = Stream(world.seed, "questions", "high")
    first = [vars(item) for item in world.initiatives]
    segments = [{"label": row[0], "goods": row[3]} for row in banks.rows("segments")]
    regions = [row[0] for row in banks.rows("regions")]
    slots = vars(world) | {
        "titles": ", ".join(item["title"] for item in first),
        "owners": "; ".join(f"{item['owner']} owns {item['title']}" for item in first),
        "principles": "; ".join(world.values),
        "goods": ", ".join(row["goods"] for row in segments),
        "regions": ", ".join(regions),
        **{f"{kind}s": f"{len(found):,}" for kind, found in world.subjects.items()},
        **{f"{kind}_digits": str(len(found)) for kind, found in world.subjects.items()},
    }
    lists = {
        "initiatives": first,
        "values": [{"value": value} for value in world.values],
        "first six segments": segments[:6],
        "first eight segments": segments[:8],
        "regions": [{"region": region} for region in regions],
    }
    script, banked = banks.sections("high_level"), banks.sections("questions")
    of_one = ("initiative measure", "initiative why", "pair")
    wanted = [(name, {}) for name in script if name not in (*of_one, "conflict")]
    for i, item in enumerate(first):
        other = {f"{name}2": value for name, value in first[(i + 3) % len(first)].items()}
        wanted += [(name, item | other) for name in of_one]
    drafts = []
    for name, more in wanted:
        own = Slots(slots | more)
        text = Pen(stream, own).say_from(banked[name])
        told = answered(script[name], own, lists)
        drafts.append(Draft("high_level", text, pattern=name, **told))
    yield from stream.sample(drafts, len(drafts))


def _not_found(corpus: Corpus, weights: dict[str, float], count: int) -> Iterator[Draft]:
    lines = banks.sections("questions")
    seen: set[str] = set()
    for stream, brief, _ in _documents(corpus, "absent", NOT_FOUND):
        subject, topic = brief.subject, brief.topic
        if subject.name in seen:
            continue
        # Nothing about the subject at all; in a large company, nothing about this part of it.
        missing = [a for a in topic.attributes if not corpus.count("pair", a.key, subject.name)]
        if not missing and brief.scope:
            missing = [
                a
                for a in topic.attributes
                if not corpus.count("full", a.key, subject.name, brief.scope)
                and not corpus.count("full", a.key, subject.name, "")
                and len(corpus.index.scopes(a.key, subject.name)) > 1
            ]
        if not missing:
            continue
        seen.add(subject.name)
        attribute, place = stream.pick(missing), subject.phrase(brief.scope)
        text = corpus.phrases.ask(attribute).replace("{s}", place)
        slots = {"attribute": attribute.name, "s": place, "n": subject.name}
        yield Draft(
            "info_not_found",
            lead(corpus, stream, text, 0.6, brief=brief),
            Pen(stream, slots).say_from(lines["not known"]),
            (lines["not known fact"][0],),
            distractors=(brief.doc_id,),
            pattern="absent attribute",
        )


# Each flow takes the corpus, the weights of the gold sources, and the number of questions.
_FLOWS: dict[str, Callable[[Corpus, dict[str, float], int], Iterator[Draft]]] = {
    "basic": _basic,
    "semantic": _semantic,
    "intra_document_reasoning": _intra,
    "project_related": _of_groups("project"),
    "constrained": _constrained,
    "conflicting_info": _conflicting,
    "completeness": _of_groups("cluster"),
    "miscellaneous": _miscellaneous,
    "high_level": _high_level,
    "info_not_found": _not_found,
}


def metadata_questions(corpus: Corpus, count: int) -> list[dict]:
    """Return questions whose answers stand in the metadata alone, as in ERB's extra questions."""
    rows: list[dict] = []
    asked: set[str] = set()  # questions, and titles
    for stream, brief, document in _documents(corpus, "metadata", dict.fromkeys(SOURCES, 1.0)):
        if len(rows) == count:
            return rows
        name, phrase = stream.pick(banks.rows(brief.source, "metadata"))
        value, title = str(document.get(name, "")), document["title"]
        keys = (brief.metadata.get(key) for key in ("identifier", "key", "number"))
        key = str(next(filter(None, keys), ""))
        text = phrase.replace("{t}", title).replace("{k}", key)
        text = text.replace("{d}", brief.day.isoformat())
        if not value or value in visible(document) or asked & {text, title}:
            continue
        asked |= {text, title}
        fact = f"The {name.replace('_', ' ')} is {value}."
        gold = (document["doc_id"],)
        draft = Draft("metadata", text, f"{value}.", (fact,), gold, pattern=name)
        rows.append(_row(f"ext_{len(rows) + 1:04d}", draft, {brief.source}))
    if len(rows) < count:
        raise UsageError(
            f"the documents carry {len(rows):,} questions on metadata, not {count:,}",
            "make more documents",
        )
    return rows
