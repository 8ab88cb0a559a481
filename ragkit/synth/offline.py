"""The offline author: documents from briefs, with one form for each source and phrase banks.

The forms are Jinja2 templates in `banks/forms`; they call the functions that `Offline.write` gives
them, which draw from the document's own stream.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from functools import cache, partial

import jinja2

from ragkit.synth import banks
from ragkit.synth.briefs import Brief, Point
from ragkit.synth.pen import CASE, GLUE, Pen, cap, stop
from ragkit.synth.streams import Stream
from ragkit.synth.world import MONTHS, WEEKDAYS, World, say_date, short_day


class Offline:
    """Write documents from forms and phrases: a pure function of world and brief."""

    def __init__(self, world: World):
        self.world = world

    def write(self, brief: Brief) -> dict:
        """Return the document: path, doc_id, source_type, title, its metadata, content."""
        stream = Stream(self.world.seed, "pen", brief.voice or brief.doc_id)
        pen = Pen(stream, slots(self.world, brief))
        metadata: dict = {}
        content = _form(brief.source).render(
            vars(brief)
            | {
                "company": self.world.company,
                "ordinary": bool(brief.topic and brief.subject),
                "goods": _goods(brief.subject.label) if brief.subject else None,
                "of": lambda *roles: [p for p in brief.points if p.role in roles],
                "told": partial(_told, pen, brief.points),
                "say": pen.say,
                "fill": pen.fill,
                "choose": lambda rule: pen.choose(rule, GLUE[rule]),
                "exchange": lambda rule: pen.say(rule).split(" | "),
                "several": lambda rule, count: [pen.say(rule) for _ in range(count)],
                "talk": partial(_Talk, stream),
                "comments": partial(_comments, brief, pen),
                "headings": partial(_headings, bool(brief.topic and brief.subject)),
                "parts_table": partial(_parts_table, brief.facts),
                "meta": metadata.update,
                **{name: getattr(stream, name) for name in _DRAWS},
            }
        )
        metadata = {
            name: value.isoformat() if isinstance(value, date) else value
            for name, value in metadata.items()
        }
        title, content = situate(brief, brief.title, content.strip())
        head = {"path": brief.path, "doc_id": brief.doc_id, "source_type": brief.source}
        return {**head, "title": title, **metadata, **brief.metadata, "content": content}


_DRAWS = "below between chance pick sample weighted".split()


def slots(world: World, brief: Brief) -> dict:
    """Return what the phrases may refer to in a document."""
    people, subject, topic = brief.people, brief.subject, brief.topic
    thing = statement = None
    if topic:
        title = brief.title.lower()
        thing = next((t for t in topic.things if t.lower() in title), topic.things[0])
        statement = brief.facts[0].statement if brief.facts else None
    values = {
        "s": subject.phrase(brief.scope) if subject and topic else None,
        "n": subject.name if subject else None,
        "nick": subject.nick if subject else None,
        "thing": thing,
        "contact": subject.contact if subject else None,
        "company": world.company,
        "product": world.product,
        "date": lambda pen: say_date(brief.day - timedelta(days=pen.stream.between(2, 40))),
        "fact": statement,
        "fact2": stop(statement) if statement else None,
        "to_first": people[1].split()[0] if len(people) > 1 else "all",
        "_talk": topic.talk if topic else GLUE["plain talk"],
        **_SLOTS,
        **{f"p{i + 1}": people[i % len(people)].split()[0] for i in range(4)},
        **dict.fromkeys(CASE),
        **{point.role: point.text for point in reversed(brief.points) if point.role in CASE},
    }
    for name in ("thing", "fact", *CASE):
        values[cap(name)] = cap(values[name]) if values[name] else None
    values["Fix2"] = values["Fix"]
    return values


def _clock(pen: Pen) -> str:
    return f"{pen.stream.between(5, 22):02d}:{pen.stream.below(60):02d}"


def _few(pen: Pen) -> str:
    return str(pen.stream.between(2, 9))


_SLOTS = {
    "few": _few,
    "few2": _few,
    "many": lambda pen: str(pen.stream.between(14, 96)),
    "clock": _clock,
    "clock2": _clock,
    "weekday": lambda pen: pen.stream.pick(WEEKDAYS[:5]),
    "month": lambda pen: pen.stream.pick(MONTHS),
    "codeword": lambda pen: pen.stream.pick(banks.words("codewords")).lower(),
    "talk": lambda pen: pen.choose("talk", pen.slots["_talk"]),
    "wrong": lambda pen: pen.choose("wrong", GLUE["wrong"]),
    "question": lambda pen: pen.choose("question", GLUE["question"]),
    "question2": lambda pen: pen.say("question2"),
}


def situate(brief: Brief, title: str, content: str) -> tuple[str, str]:
    """Name the place that a document is about where no phrase of it has: facts hold for a place."""
    if not (brief.scope and brief.subject):
        return title, content
    if brief.scope.lower() in f"{title}\n{content}".lower():
        return title, content
    # Not before an apostrophe: the place would own what is the subject's.
    name = re.compile(re.escape(brief.subject.name) + r"(?!['’\w])")
    whole = brief.subject.phrase(brief.scope)
    if name.search(title):
        return name.sub(lambda _: whole, title, count=1), content
    if name.search(content):
        return title, name.sub(lambda _: whole, content, count=1)
    return f"{title} ({whole})", content


# What the forms call


def _told(pen: Pen, points: Sequence[Point]):
    """Yield the points; problem, cause and fix mean those of the case that was begun last."""
    for i, point in enumerate(points):
        pen.focus(points, i)
        yield point


class _Talk:
    """The lines of a conversation; who speaks is not the one before, unless told."""

    def __init__(self, stream: Stream, cast: Sequence[str]):
        self.stream, self.cast = stream, cast
        self.last, self.lines = "", 0

    def __call__(self, text: str, who: str | None = None) -> str:
        self.last = who or self.stream.pick([p for p in self.cast if p != self.last])
        self.lines += 1
        return f"{self.last}: {text}"


def _comments(brief: Brief, pen: Pen, count: int, texts: Sequence[str]) -> list[str]:
    """Return comments by the people of the brief, the given texts among them."""
    said, at = [pen.say("ticket.comment") for _ in range(count)], 0
    for text in texts:
        at = pen.stream.between(at, len(said))
        said.insert(at, text)
        at += 1
    day, who, lines = brief.day, "", []
    for text in said:
        day += timedelta(days=pen.stream.between(0, 4))
        who = pen.stream.pick([p for p in brief.people if p != who])
        lines.append(f"{who}, {short_day(day)}: {stop(text)}")
    return lines


def _headings(ordinary: bool, style: int):
    """Return a function that numbers, marks or capitalizes headings, parts with parts below."""
    count, below = 0, -1  # headings so far, and those under a part's own heading if there is one

    def head(text: str, *, part: bool = False, last: bool = False) -> str:
        nonlocal count, below
        inside = below >= 0 and not part and not last
        count, below = (count, below + 1) if inside else (count + 1, -1 if last else below)
        number = f"{count}.{below} " if inside else f"{count}. "
        if part and ordinary:
            below = 0
        if style == 4:
            return text if inside else text.upper()
        return (number if style < 2 else "### " if inside else "## ") + text

    return head


def _parts_table(facts) -> str:
    """Return the facts of a sheet as a table of parts by attributes."""
    names = list(dict.fromkeys(fact.attribute for fact in facts))
    lines = ["| part | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for scope in dict.fromkeys(fact.scope for fact in facts):
        cells = {fact.attribute: fact.value for fact in facts if fact.scope == scope}
        lines.append(f"| {scope or 'in general'} | " + " | ".join(cells[n] for n in names) + " |")
    return "\n".join(lines)


def _plain(point: Point) -> str:
    """Return a finished point as the author leaves it."""
    return point.text if point.role in ("table", "head") else stop(point.text)


def _goods(label: str) -> str:
    return next((row[3] for row in banks.rows("segments") if row[0] == label), "things")


def _handle(name: str) -> str:
    given, family = name.split()[:2]
    return f"{given.lower()}-{family[0].lower()}"


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n"))


class _Context(jinja2.runtime.Context):
    """Calls functions as they are: the forms call dozens for each document."""

    def call(self, function, *args, _loop_vars=None, _block_vars=None, **options):
        return function(*args, **options)


@cache
def _form(source: str) -> jinja2.Template:
    """Return the form of a source's documents."""
    forms = jinja2.Environment(
        loader=jinja2.FileSystemLoader(banks.FOLDER / "forms"),
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
        extensions=["jinja2.ext.do"],
    )
    forms.context_class = _Context
    forms.filters |= {"plain": _plain, "stop": stop, "handle": _handle}
    forms.globals |= {
        "CASE": CASE,
        "MONTHS": MONTHS,
        "cap": cap,
        "stop": stop,
        "plain": _plain,
        "quote": _quote,
        "say_date": say_date,
        "short_day": short_day,
        "name": lambda person: person.split()[0],
        "later": lambda day, days: day + timedelta(days=days),
    }
    return forms.get_template(f"{source}.txt")
