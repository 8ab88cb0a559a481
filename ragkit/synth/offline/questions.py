"""The question types that facts can hold, each by its own flow, and validated against the documents.

EnterpriseRAG-Bench, appendix C. A flow proposes drafts; a draft becomes a question when what its type
demands holds in the documents as they are written. What fails is counted and replaced.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from ragkit.errors import UsageError
from ragkit.synth.layout import SOURCES, TYPES, printed, shares
from ragkit.synth.offline import packs
from ragkit.synth.offline.documents import Brief
from ragkit.synth.offline.grammar import Pen, cap
from ragkit.synth.offline.packs import Attribute
from ragkit.synth.offline.plan import Plan
from ragkit.synth.offline.stories import Draft
from ragkit.synth.offline.world import MONTHS, PARTS, WEEKDAYS, Fact, say_date
from ragkit.synth.streams import Stream
from ragkit.text import STOP_WORDS

SEMANTIC_OVERLAP = 0.5  # most content words that a semantic question may share with its document
BASIC_OVERLAP = 0.25  # fewest that a basic one shares
DISTANCE = 250  # characters between the halves of an intra-document answer, at least
NAMED = 0.5  # of the semantic questions name their subject, the others describe it
LOOKS = 2000  # documents of a source that are looked at before another source gives the question
ASKING = {"team": "team/business", "office": "office"}
Make = Callable[[Stream, Brief], Draft | None]


class Asker:
    """Makes the questions of a plan; `rejected` counts the drafts that failed, by type and reason."""

    def __init__(self, plan: Plan):
        self.plan, self.world, self.pack = plan, plan.world, packs.read("questions")
        self.rejected: Counter[str] = Counter()
        self.written: dict[str, dict] = {}  # documents that drafts are about, by id
        self.updated = frozenset(plan.originals)
        self.taken = set(plan.originals)  # volume documents that an update changes, or asked about

    def questions(self) -> list[dict]:
        """Return validated questions in ERB's fields, with `pattern` and `distractor_doc_ids`."""
        flows: dict[str, Iterator[Draft]] = {
            "basic": self._single("basic", self._basic),
            "semantic": self._single("semantic", self._semantic),
            "intra_document_reasoning": self._single("intra_document_reasoning", self._intra),
            "project_related": self._stories("project"),
            "constrained": self._single("constrained", self._constrained),
            "conflicting_info": self._conflicting(),
            "completeness": self._stories("cluster"),
            "miscellaneous": self._miscellaneous(),
            "info_not_found": self._single("info_not_found", self._missing),
        }
        rows: list[dict] = []
        for kind in (kind for kind in TYPES if self.plan.questions.get(kind)):
            count, seen = self.plan.questions[kind], set()
            for draft in flows[kind]:
                if draft.text not in seen and self._valid(draft):
                    rows.append(self._row(f"qst_{len(rows) + 1:04d}", draft))
                    seen.add(draft.text)
                if len(seen) == count:
                    break
            _enough(kind, len(seen), count)
        return rows

    # -- one document

    def _single(self, kind: str, make: Make) -> Iterator[Draft]:
        """Yield a valid draft for each turn of a gold source; none is about a document twice."""
        volume, count = self.plan.volume, self.plan.questions[kind]
        known = self.pack["sources"].get(kind) or printed("10", "questions_with_source", kind)
        known = {s: known.get(s, 0) for s in SOURCES if volume[s]}
        stream, turns = Stream(self.world.seed, "questions", kind), shares(count, known)
        for source in [source for source, turn in turns.items() for _ in range(turn)]:
            for look in range(30 * LOOKS):
                if look > LOOKS:  # a small source may have none left
                    source = stream.pick(list(known))
                at = source, stream.below(volume[source])
                if at not in self.taken:
                    draft = make(stream, self.plan.brief(*at))
                    if draft and self._valid(draft):
                        self.taken.add(at)
                        yield draft
                        break

    def _basic(self, stream: Stream, brief: Brief) -> Draft:
        fact = stream.pick(brief.facts)
        ask = stream.pick(_attribute(brief, fact).ask).replace("{s}", fact.subject)
        return self._about("basic", self._lead(stream, ask), brief, fact)

    def _semantic(self, stream: Stream, brief: Brief) -> Draft | None:
        """Ask in other words about a customer, who is described or named."""
        if not brief.subject.described:
            return None
        fact, named = stream.pick(brief.facts), stream.chance(NAMED)
        words = map(stream.pick, brief.subject.described)
        name = brief.subject.name if named else f"the {' '.join(words)}"
        text = stream.pick(_attribute(brief, fact).far).replace("{f}", name)
        if self._siblings(brief):  # other parts have values of their own
            text += f" {stream.pick(self.pack['part']).format(part=brief.part)}"
        pattern = "named" if named else "described"
        return self._about("semantic", self._lead(stream, text), brief, fact, pattern)

    def _intra(self, stream: Stream, brief: Brief) -> Draft | None:
        if not (split := brief.split):
            return None
        slots = split.slots | {"s": brief.subject.phrase(brief.part)}
        ask = stream.pick(self.pack[split.kind]).format_map(slots)
        text, answer, facts = self._lead(stream, ask), *self._told(split.kind, slots)
        needed = {self._write(brief): split.passages}
        kind = "intra_document_reasoning"
        return Draft(kind, text, answer, facts, needed, pattern=split.kind)

    def _constrained(self, stream: Stream, brief: Brief) -> Draft | None:
        """Ask for one part of a subject where other parts have other values."""
        fact, rivals = stream.pick(brief.facts), {}
        for other in self._siblings(brief):
            rival = next(one for one in other.facts if one.key == fact.key)
            if rival.value != fact.value and other.name not in self.updated:
                rivals[self._write(other)] = rival
        if not rivals:
            return None
        ask = cap(stream.pick(_attribute(brief, fact).ask).replace("{s}", fact.entity))
        slots = {"q": ask, "part": brief.part, "n": fact.entity}
        text = cap(stream.pick(self.pack["only"]).format_map(slots))
        draft = self._about("constrained", text, brief, fact, f"{len(rivals)} distractors")
        ban, few = self.pack["facts"]["only"], list(rivals.values())[:3]
        bans = (ban.format(value=one.value, s=one.subject) for one in few)
        return replace(draft, facts=(*draft.facts, *bans), distractors=tuple(rivals))

    def _missing(self, stream: Stream, brief: Brief) -> Draft | None:
        """Ask for an attribute of a part that nobody states, though another one is stated."""
        subject, part, half = self._cell(brief)
        if self.plan.stating(brief.topic, subject, part, 1 - half):
            return None
        attributes = brief.topic.attributes
        attribute = stream.pick(attributes[:1] if half else attributes[1:])
        slots = {"name": attribute.name, "s": brief.subject.phrase(brief.part)}
        text = self._lead(stream, stream.pick(attribute.ask).format_map(slots))
        near = (self._write(brief),)
        return Draft("info_not_found", text, *self._told("missing", slots), {}, near, "absent")

    def _cell(self, brief: Brief) -> tuple[int, int, int]:
        pool, subject = self.world.pool(brief.topic), brief.subject
        half = int(brief.facts[0].key != brief.topic.attributes[0].key)
        return pool.index(subject), subject.parts.index(brief.part), half

    def _siblings(self, brief: Brief) -> list[Brief]:
        """Return the briefs that state the same attributes of other parts of the subject."""
        subject, own, half = self._cell(brief)
        parts = (part for part in range(PARTS) if part != own)
        found = (self.plan.stating(brief.topic, subject, part, half) for part in parts)
        return [self.plan.brief(*at) for at in found if at]

    # -- several documents, and the noise

    def _stories(self, kind: str) -> Iterator[Draft]:
        """Yield the questions of projects or clusters, one of each before the next."""
        stories = [self.plan.stories.story(kind, i) for i in range(self.plan.numbers[kind])]
        for story in stories:
            for brief in story.briefs:
                self._write(brief)
        for turn in range(max((len(story.drafts) for story in stories), default=0)):
            for i, story in enumerate(stories):
                yield story.drafts[(turn + 3 * i) % len(story.drafts)]

    def _conflicting(self) -> Iterator[Draft]:
        stream = Stream(self.world.seed, "questions", "conflict")
        for i in range(self.plan.numbers["update"]):
            later, old, new, original = self.plan.update(i)
            slots = {"s": new.subject, "name": new.attribute, "old": old.value, "new": new.value}
            slots |= {"day": say_date(later.day), "olddate": say_date(original.day)}
            ask = cap(stream.pick(_attribute(original, old).ask).format_map(slots))
            text = stream.pick(self.pack["conflict"]).format(q=ask)
            needed = {self._write(original): (old.value,), self._write(later): (new.value,)}
            told = self._told("conflict", slots)
            yield Draft("conflicting_info", text, *told, needed, pattern="superseded")

    def _miscellaneous(self) -> Iterator[Draft]:
        stream = Stream(self.world.seed, "questions", "informal")
        for i in range(self.plan.numbers["informal"]):
            brief = self.plan.informal(i)
            fact = brief.facts[0]
            attribute = _attribute(brief, fact)
            ask = stream.pick(attribute.ask + attribute.far).replace("{thing}", brief.things[0])
            yield self._about("miscellaneous", self._lead(stream, ask), brief, fact, "informal")

    def metadata(self) -> list[dict]:
        """Return questions whose answers stand in the metadata alone, as in ERB's extra questions."""
        stream, volume = Stream(self.world.seed, "questions", "metadata"), self.plan.volume
        rows, asked, count = [], set(), self.plan.settings.metadata_questions
        filled = [source for source in SOURCES if volume[source]]
        for _ in range(200 * count):
            if len(rows) == count:
                break
            source = stream.pick(filled)
            brief = self.plan.brief(source, stream.below(volume[source]))
            document = self.plan.author.write(brief, metadata=True)
            name, phrase = stream.pick(list(self.pack["metadata"][source].items()))
            value, title = document[name], document["title"]
            text = phrase.format(title=title, date=brief.day.isoformat(), key=brief.key)
            if value not in _visible(document) and value not in text and not asked & {text, title}:
                asked |= {text, title}
                slots = {"name": name.replace("_", " "), "value": value}
                needed, told = {self._write(brief): ()}, self._told("metadata", slots)
                draft = Draft("metadata", text, *told, needed, pattern=name)
                rows.append(self._row(f"ext_{len(rows) + 1:04d}", draft))
        _enough("metadata", len(rows), count)
        return rows

    # -- what all flows use

    def _about(self, kind: str, text: str, brief: Brief, fact: Fact, pattern: str = "") -> Draft:
        """Return a draft whose answer is one fact of one document."""
        answer = self.pack["answers"]["fact"].format(s=fact.subject, say=fact.statement)
        needed = {self._write(brief): (fact.value,)}
        return Draft(kind, text, answer, (cap(str(fact)),), needed, pattern=pattern)

    def _told(self, kind: str, slots: dict[str, str]) -> tuple[str, tuple[str, ...]]:
        """Return the answer and the facts that a kind of question has in the pack."""
        answer, facts = (self.pack[part][kind] for part in ("answers", "facts"))
        return cap(answer.format_map(slots)), tuple(cap(line.format_map(slots)) for line in facts)

    def _lead(self, stream: Stream, ask: str) -> str:
        """Return a question as people ask it: with who asks, or what for."""
        subjects = self.world.subjects
        slots = {"person": stream.pick(self.world.staff), "q": cap(ask)}
        slots |= {name: stream.pick(subjects[group]).name for name, group in ASKING.items()}
        slots |= {"weekday": stream.pick(WEEKDAYS), "month": stream.pick(MONTHS)}
        return cap(Pen(stream, slots).fill(stream.pick(self.pack["lead"])))

    def _write(self, brief: Brief) -> str:
        """Write a document, once; return its id."""
        doc_id = self.plan.author.document_id(brief)
        if doc_id not in self.written:
            self.written[doc_id] = self.plan.author.write(brief)
        return doc_id

    def _valid(self, draft: Draft) -> bool:
        """Whether a draft holds what its type demands; if not, count why."""
        if reason := self._fault(draft):
            self.rejected[f"{draft.kind}: {reason}"] += 1
        return not reason

    def _fault(self, draft: Draft) -> str:
        for doc_id, strings in draft.needed.items():
            text = _visible(self.written[doc_id]).lower()
            if any(one.lower() not in text for one in strings):
                return "a gold document does not say it"
        if draft.kind in ("basic", "semantic"):
            shared = overlap(draft.text, self.written[next(iter(draft.needed))])
            if draft.kind == "semantic" and shared > SEMANTIC_OVERLAP:
                return "too many words in common"
            if draft.kind == "basic" and shared < BASIC_OVERLAP:
                return "too few words in common"
        if draft.kind == "intra_document_reasoning":
            ((doc_id, (rule, place)),) = draft.needed.items()
            content = self.written[doc_id]["content"]
            if content.index(place) - content.index(rule) - len(rule) < DISTANCE:
                return "answerable from one passage"
        return ""

    def _row(self, question_id: str, draft: Draft) -> dict:
        sources = {self.written[doc_id]["source_type"] for doc_id in draft.needed}
        return {
            "question_id": question_id,
            "question_type": draft.kind,
            "source_types": [s for s in SOURCES if s in sources],
            "question": draft.text,
            "expected_doc_ids": list(draft.needed),
            "gold_answer": draft.answer,
            "answer_facts": list(draft.facts),
            "pattern": draft.pattern,
            "distractor_doc_ids": list(draft.distractors),
        }


def _enough(kind: str, made: int, count: int) -> None:
    if made < count:
        raise UsageError(
            f"the documents carry {made:,} questions of type {kind!r}, not {count:,}",
            "ask for fewer questions or make more documents",
        )


def overlap(question: str, document: dict) -> float:
    """Return the share of a question's content words that stand in its document."""
    asked = _content_words(question)
    return len(asked & _content_words(_visible(document))) / max(1, len(asked))


def _content_words(text: str) -> set[str]:
    return {w for w in re.findall(r"[^\W_]{3,}", text.lower()) if w not in STOP_WORDS}


def _visible(document: dict) -> str:
    """Return title and content: what a retrieval system is given."""
    return f"{document['title']}\n\n{document['content']}"


def _attribute(brief: Brief, fact: Fact) -> Attribute:
    return next(one for one in brief.topic.attributes if one.key == fact.key)
