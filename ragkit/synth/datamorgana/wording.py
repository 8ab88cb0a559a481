"""From a material to a question: phrasing, premise, courtesy, answer style, spelling."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

from ragkit.synth import banks
from ragkit.synth.datamorgana import words
from ragkit.synth.datamorgana.materials import AREAS, Material
from ragkit.synth.datamorgana.mistakes import misspell
from ragkit.synth.pen import cap
from ragkit.synth.streams import Stream
from ragkit.synth.world import MONTHS, WEEKDAYS

SHORT = 9  # most words of a concise natural question, a name as one, without what stands around it
BRIEF = 11  # most words of it, names and all
# Most words that are put around a concise question to say who asks, courteously, and for what.
PREMISE, COURTESY, STYLE = 5, 3, 3
QUERY = 6  # most words of a short search query
LIMIT = 24  # most words of a search query
# Shares of a question's words, names apart, that stand in its documents.
SIMILAR = 0.5
DISTANT = 0.34
POLITE = re.compile(
    r"\b(please|thank(?:s| you)|grateful|kind(?:ly)?|appreciate\w*|would you mind|sorry|excuse me|may i (?:kindly )?ask|don't mind|too much trouble|might i)\b",
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


@cache
def phrases() -> dict:
    return tomllib.loads((Path(__file__).parent / "phrases.toml").read_text(encoding="utf-8"))


class Refused(Exception):
    """A material cannot be put into words of these categories; the message says why."""


class Writer:
    """Put materials into words; every phrase has its turn before one comes up again.

    Parameters
    ----------
    texts : mapping of str to str
        Documents by id, for the measure of common words.
    """

    def __init__(self, texts):
        self.texts = texts
        self.used: Counter[str] = Counter()
        self.joined: dict[tuple[str, ...], str] = {}

    def write(
        self,
        material: Material,
        categories: dict[str, str],
        stream: Stream,
        *,
        spare: bool = False,
    ) -> tuple[str, str]:
        """Return the question as it is asked, and as it would be without spelling mistakes.

        Parameters
        ----------
        material : Material
        categories : dict of str to str
        stream : Stream
        spare : bool
            Whether a search query may be put in the material's spare keywords, too.

        Raises
        ------
        Refused
        """
        search = categories["Phrasing"].endswith("query")
        if search:
            text = self._query(material, categories, stream, spare)
        else:
            text = self._natural(material, categories, stream)
        if any(g.lower() in f" {text.lower()} " for g in material.given if len(g) > 2):
            raise Refused("it gives its answer away")
        if categories["Politeness"] == "neutral" and POLITE.search(text):
            raise Refused("it is polite by itself")
        written = misspell(text, categories["Linguistic Correctness"], stream, material.names)
        if written == text and categories["Linguistic Correctness"] != "correct":
            raise Refused("no word of it can be misspelt")
        return written, text

    # Choosing

    def _near_or_far(self, material, options, near: bool) -> list[str]:
        """Return the options whose words agree with the documents as much as is wanted."""
        document = self._together(material.documents)
        kept = []
        for option in dict.fromkeys(options):
            share = words.overlap(option, document, material.names)
            if share >= SIMILAR if near else share <= DISTANT:
                kept.append(option)
        if not kept:
            raise Refused("too few words in common" if near else "too many words in common")
        return kept

    def _together(self, doc_ids: tuple[str, ...]) -> str:
        if doc_ids not in self.joined:
            self.joined[doc_ids] = " ".join(self.texts[d] for d in doc_ids)
        return self.joined[doc_ids]

    def _rarest(self, options, stream: Stream, key=lambda option: option) -> str:
        fewest = min(self.used[key(o)] for o in options)
        choice = stream.pick([o for o in options if self.used[key(o)] == fewest])
        self.used[key(choice)] += 1
        return choice

    # Natural questions

    def _natural(self, material: Material, categories: dict[str, str], stream: Stream) -> str:
        near = categories["Linguistic Variation"] == "similar-to-document"
        options = self._near_or_far(material, material.near if near else material.far, near)
        polite = categories["Politeness"] == "polite"
        options = [o for o in options if not POLITE.search(o)]
        persona, brief = categories["User Persona"], categories["Phrasing"] == "concise-and-natural"
        if brief:
            options = [
                o
                for o in options
                if words.count(o, material.names) <= SHORT and len(o.split()) <= BRIEF
            ]
            if not options:
                raise Refused("too many words for a concise question")
        elif not options:
            raise Refused("no plain wording")
        if not brief:
            # An order does not go well behind a phrase, a longer question needs none.
            longer = [o for o in options if words.count(o, material.names) > SHORT]
            asked = [o for o in options if _WHOLE.match(o)]
            options = longer if longer and (stream.chance(0.7) or not asked) else asked
            if not options:
                raise Refused("no plain wording")
        # A template counts without its names, so that it has its turn whoever it is about.
        text = self._rarest(options, stream, lambda o: _template(o, material.names))
        text = _chosen(text, stream)
        slots = self._slots(material, near, stream)
        if not brief and words.count(text, material.names) <= SHORT:
            frame = self._rarest(self._fitting(phrases()["frames"][persona], near), stream)
            text = _fill(frame, text, material.names, slots, stream)
        if polite:
            text = self._politely(text, material, stream, brief)
        style = categories["Answer Style"]
        if style != "unspecified":
            frames = phrases()["style"][style]["natural"]
            if brief:
                frames = _shortest(frames, STYLE)
            # A colon or an order inside does not go with a phrase before it.
            if polite or ":" in text:
                frames = [f for f in frames if f.startswith("{q}")]
            frame = self._rarest(frames, stream)
            text = _fill(frame, text, material.names, slots, stream)
        if categories["Premise"] == "with-premise":
            lines = self._fitting(phrases()["premises"][persona], near)
            premise = self._rarest(_shortest(lines, PREMISE) if brief else lines, stream)
            text = f"{_fill(premise, '', material.names, slots, stream)} {cap(text)}"
        return cap(text)

    def _fitting(self, lines: list[str], near: bool) -> list[str]:
        """Return the lines that fit; far from the document, none that names a thing of it."""
        return [line for line in lines if near or "{thing}" not in line]

    def _slots(self, material: Material, near: bool, stream: Stream) -> dict[str, str]:
        topic = material.topic
        heads, tails = banks.words("place heads"), banks.words("place tails")
        slots = {
            "years": str(stream.between(4, 19)),
            "first": stream.pick(banks.words("given names")),
            "place": stream.pick(heads) + stream.pick(tails),
            "weekday": stream.pick(WEEKDAYS),
            "month": stream.pick(MONTHS),
            "clock": f"{stream.between(6, 22)}:{stream.pick(('00', '15', '30', '45'))}",
        }
        if near:
            return slots | {"title": topic.title, "thing": stream.pick(topic.things)}
        return slots | {"title": AREAS.get(topic.area, "this matter"), "thing": ""}

    def _politely(self, text: str, material: Material, stream: Stream, brief: bool) -> str:
        bank = phrases()["polite"]
        if brief:
            bank = {place: _shortest(lines, COURTESY) for place, lines in bank.items()}
        orders, plain = _ORDERS.match(text), text.endswith("?") and text.count("?") == 1
        if orders:
            lines = bank["imperative"]
            end = "?" if text.endswith(".") else ""
            line = self._rarest(lines, stream)
            out = _fill(line, text, material.names, {}, stream)
            asks = not line.startswith(("Please", "I'd", "Kindly"))
            return out[:-1] + "?" if end and asks else out
        if plain and _ASKS.match(text) and not _AUXILIARY.search(text) and stream.chance(0.7):
            line = self._rarest(bank["indirect"], stream)
            out = _fill(line, text, material.names, {}, stream)
            plain = line.startswith(("I would", "Please", "Kindly"))
            return out[:-1] + "." if plain else out
        lines = (
            bank["after"]
            if ":" in text or not plain or not _WHOLE.match(text)
            else bank["before"] + bank["after"]
        )
        return _fill(self._rarest(lines, stream), text, material.names, {}, stream)

    # Search queries

    def _query(
        self, material: Material, categories: dict[str, str], stream: Stream, spare: bool
    ) -> str:
        near = categories["Linguistic Variation"] == "similar-to-document"
        short = categories["Phrasing"] == "short-search-query"
        keys = material.near_keys if near else material.far_keys
        keys += material.spare_keys if spare else ()
        options = self._near_or_far(material, keys, near)
        extra = []
        style = categories["Answer Style"]
        if style != "unspecified":
            extra.append(self._rarest(phrases()["style"][style]["keywords"], stream))
        lead = ""
        if categories["Premise"] == "with-premise":
            lead = self._rarest(phrases()["keywords"][categories["User Persona"]], stream)
        made = []
        for option in options:
            text = _keywords(" ".join([lead, option, *extra]))
            if words.count(text) <= QUERY if short else QUERY < words.count(text) <= LIMIT:
                made.append(text)
        if not made:
            raise Refused("no search query of this length")
        return stream.pick(made)


def _fill(frame: str, text: str, names: frozenset[str], slots: dict, stream: Stream) -> str:
    """Fill a phrase; of `[a|b]` one is chosen."""
    out = _chosen(frame, stream).replace("{q2}", words.small(text, names)).replace("{q}", cap(text))
    for name, value in slots.items():
        out = out.replace("{" + name + "}", value)
    return out


def _chosen(text: str, stream: Stream) -> str:
    return re.sub(r"\[([^\[\]]*\|[^\[\]]*)\]", lambda m: stream.pick(m[1].split("|")), text)


def _shortest(lines: list[str], most: int) -> list[str]:
    """Return the phrases that add no more than `most` words, whichever are chosen."""
    return [line for line in lines if _added(line) <= most]


@cache
def _added(line: str) -> int:
    """Return the most words that a phrase adds; a slot of a title counts as three."""
    longest = re.sub(
        r"\[([^\[\]]*\|[^\[\]]*)\]",
        lambda m: max(m[1].split("|"), key=lambda part: len(part.split())),
        line,
    )
    longest = re.sub(r"\{q2?\}", "", longest)
    return len(re.sub(r"\{(title|thing)\}", "a b c", longest).split())


def _template(text: str, names: frozenset[str]) -> str:
    return " ".join(w for w in words.words(text) if w not in names)


def _keywords(text: str) -> str:
    """Return a text without punctuation, in small letters; numbers and codes keep theirs."""
    text = re.sub(r"(?<!\d)[.,:;!?'’\"()]+|[.,:;!?'’\"()]+(?!\d)", " ", text.lower())
    return " ".join(text.replace(" & ", " ").split())
