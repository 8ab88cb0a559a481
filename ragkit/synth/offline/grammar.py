"""The one renderer: phrases with choices and slots, and a Jinja2 form for each source.

In a phrase `[a|b]` is a choice and `{name}` a slot; `{Name}` is the same text with a capital
letter. Every draw comes from the stream of the document or question that is written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import product

import jinja2

from ragkit.errors import DataError
from ragkit.synth.offline import packs
from ragkit.synth.streams import Stream

MOST = 600  # wordings of one phrase


class Slots(dict):
    """Values of `{name}`, and of `{Name}` with a capital letter."""

    def __missing__(self, name: str) -> str:
        if name[:1].islower() or name[:1].lower() + name[1:] not in self:
            raise DataError(f"a phrase has the unknown slot {{{name}}}")
        self[name] = cap(self[name[:1].lower() + name[1:]])
        return self[name]


@cache
def wordings(phrase: str) -> tuple[str, ...]:
    """Return every wording of a phrase: its choices multiplied out."""
    parts = [part.split("|") for part in re.split(r"\[([^\[\]]*)\]", phrase)]
    parts = [part if i % 2 else ["|".join(part)] for i, part in enumerate(parts)]
    found = tuple(map("".join, product(*parts)))
    if len(found) > MOST:
        raise DataError(f"a phrase has {len(found):,} wordings, and {MOST} are the most: {phrase}")
    return found


@cache
def rule(name: str) -> tuple[tuple[str, ...], ...]:
    """Return the phrases of a rule such as `slack.open`, each with its wordings."""
    source, _, own = name.partition(".")
    return tuple(map(wordings, packs.read("phrases")[source][own]))


class Pen:
    """Writes phrases with the slots and the draws of one document."""

    def __init__(self, stream: Stream, slots: dict[str, str]):
        self.stream, self.slots = stream, Slots(slots)

    def say(self, name: str, **more: str) -> str:
        """Return a phrase of a rule, filled."""
        phrase = self.stream.pick(self.stream.pick(rule(name)))
        return phrase.format_map(Slots(self.slots | more) if more else self.slots)

    def several(self, name: str, count: int) -> list[str]:
        """Return different phrases of a rule, filled."""
        picked = self.stream.sample(rule(name), count)
        return [self.stream.pick(phrase).format_map(self.slots) for phrase in picked]

    def fill(self, phrase: str) -> str:
        """Return a phrase of a pack, filled."""
        return self.stream.pick(wordings(phrase)).format_map(self.slots)


class Talk:
    """The lines of a conversation; who speaks is not the one before, unless told."""

    def __init__(self, stream: Stream, cast: Sequence[str]):
        self.stream, self.cast, self.last = stream, cast, ""

    def __call__(self, text: str, who: str = "") -> str:
        self.last = who or self.stream.pick([name for name in self.cast if name != self.last])
        return f"{self.last}: {text}"


def cap(text: str) -> str:
    return text[:1].upper() + text[1:]


class _Context(jinja2.runtime.Context):
    """Calls functions as they are: a form calls dozens for each document."""

    def call(self, function, *args, _loop_vars=None, _block_vars=None, **options):
        return function(*args, **options)


@cache
def form(source: str) -> jinja2.Template:
    """Return the form of a source's documents."""
    forms = jinja2.Environment(
        loader=jinja2.FileSystemLoader(packs.FOLDER / "forms"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    forms.context_class = _Context
    forms.globals |= {"cap": cap, "quote": lambda text: re.sub("^", "> ", text, flags=re.M)}
    return forms.get_template(f"{source}.txt")
