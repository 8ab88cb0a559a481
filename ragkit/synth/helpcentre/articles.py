"""Articles: facts of a topic, and the page that states them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from ragkit.synth import banks
from ragkit.synth.briefs import slug
from ragkit.synth.helpcentre.product import Topic, an, kinds, phrases, plural, title, words
from ragkit.synth.pen import Pen, cap
from ragkit.synth.streams import Stream

# The remarks that may follow a step, by its first word.
VERBS = {
    "after open": frozenset("open go find in visit unfold".split()),
    "after press": frozenset("press click confirm finish test hit tap".split()),
    "after choose": frozenset(
        "choose pick select set tick decide under drag add mark match".split()
    ),
    "after type": frozenset("type enter fill write give overwrite name change".split()),
    "after read": frozenset("read look check compare go filter leave".split()),
}
# Steps that need no remark, whatever their first word.
BARE = (
    *("Go from", "Go through", "Look for", "Look whether", "Find the", "In your"),
    *("Select the file", "Pick the file", "Enter a first day"),
)
_VALUES = re.compile(r"<([^<>]*)>")


@dataclass(frozen=True)
class Fact:
    """Something that is so, and the one sentence in which an article states it.

    Parameters
    ----------
    fact_id : str
        Thing, kind and name, such as `booking/import/rows`.
    subject, attribute : str
    values : tuple of str
        What was drawn for it.
    statement : str
        As it stands in the article.
    ask, lay : str
        What is asked about it, in the words of the product and of a user; empty for a step.
    """

    fact_id: str
    subject: str
    attribute: str
    values: tuple[str, ...]
    statement: str
    ask: str = ""
    lay: str = ""


@dataclass
class Article:
    """A page of the help centre with the facts that it states.

    Parameters
    ----------
    topic : Topic
    title, url : str
    pen : Pen
        Knows the names of the thing; questions are written with it.
    steps, facts : list of Fact
    remedy : Fact, optional
        What helps if the steps do not.
    contents : str
        Empty until written.
    """

    topic: Topic
    title: str
    url: str
    pen: Pen
    steps: list[Fact] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    remedy: Fact | None = None
    contents: str = ""

    @property
    def id(self) -> str:
        return sha256(self.url.encode()).hexdigest()

    @property
    def type(self) -> str:
        return self.topic.type

    def row(self) -> dict[str, str]:
        """Return the article in the layout of the benchmark."""
        return {
            "id": self.id,
            "url": self.url,
            "contents": self.contents,
            "article_type": self.topic.type,
            "title": self.title,
        }


def listed(items: Sequence[str], word: str = "and") -> str:
    return f"{', '.join(items[:-1])} {word} {items[-1]}" if len(items) > 1 else items[0]


class Desk:
    """Where the articles of one help centre are written.

    Parameters
    ----------
    seed : int
    product : str
    """

    def __init__(self, seed: int, product: str):
        self.seed = seed
        self.product = product

    def stream(self, *names: object) -> Stream:
        return Stream(self.seed, "helpcentre", *names)

    def slots(self, topic: Topic) -> dict[str, str]:
        """Return what `{name}` stands for in phrases about a topic."""
        thing = topic.thing
        draw = self.stream("slots", topic.name)
        roles = self.stream("roles", thing.name)
        fields = [thing.fields[0], *draw.sample(thing.fields[1:], 3)]
        states = thing.states
        slots = {
            "product": self.product,
            "object": thing.name,
            "objects": thing.plural,
            "Object": title(thing.name),
            "Objects": title(thing.plural),
            "a": an(thing.name).split(" ")[0],
            "A": cap(an(thing.name).split(" ")[0]),
            "A_Object": an(title(thing.name)),
            "area": thing.area,
            "menu": thing.menu,
            "is": thing.purpose,
            "role": roles.pick(words("roles")),
            "role2": roles.pick(words("chiefs")),
            "fieldlist": listed(thing.fields),
            "statelist": listed(states),
            "nstates": "four",
            **{f"field{i or ''}": name for i, name in enumerate(fields, 1) if i > 1},
            **{f"state{i}": name for i, name in enumerate(states, 1) if i > 1},
            "field": fields[0],
            "state": states[0],
        }
        pen = Pen(draw, slots)
        if topic.kind == "setting":
            option = topic.item
            what = pen.fill(option.what)
            slots |= {
                "setting": option.name,
                "Setting": option.name,
                "what": what,
                "What": cap(what),
                "values": listed(option.values, "or"),
                "valuelist": ";".join(option.values),
            }
        elif topic.kind in ("trouble", "known"):
            fault = topic.item
            for name in ("symptom", "cause", "fix"):
                slots[name] = pen.fill(getattr(fault, name))
            slots["Symptom"] = cap(slots["symptom"])
        elif topic.kind == "chain":
            line, state = topic.item
            name, action, lay, step = banks.fields(line)
            slots |= {
                "Action": name,
                "action": action,
                "actlay": lay,
                "State": state,
                "state_l": state.lower(),
            }
            slots["actstep"] = pen.fill(step)
        elif topic.kind == "link":
            name, text, lay = banks.fields(topic.item)
            slots |= {"Partner": name, "ptext": text, "partlay": lay}
            slots["way"] = pen.fill(draw.pick(phrases("ways")))
        elif topic.kind == "request":
            name, work = (pen.fill(text) for text in topic.item)
            slots |= {"Req": name, "req": _lower(name), "work": work, "Work": cap(work)}
        return slots

    def begin(self, topic: Topic) -> Article:
        """Return an article with its facts, not yet written."""
        slots = self.slots(topic)
        pen = Pen(self.stream("pen", topic.name), slots)
        if topic.type == "article":
            lines = kinds()[topic.kind].lines
            heading = pen.fill(pen.choose("title", lines["title"][0]))
        else:
            heading = pen.fill(pen.choose("title", phrases(f"{topic.kind}.title")))
        heading = cap(heading)
        host = slug(self.product)
        url = f"https://help.{host}.example/en/article/{slug(heading, 120)}"
        article = Article(topic, heading, url, pen)
        self._state(article)
        return article

    def _state(self, article: Article) -> None:
        topic, pen = article.topic, article.pen
        if topic.type == "article":
            kind = kinds()[topic.kind]
            if "table" in kind.lines:
                self._table(article, kind)
            for number, options in enumerate(kind.lines["step"], 1):
                step = self._fact(article, f"step{number}", options)
                article.steps.append(replace(step, statement=self._comment(step.statement, pen)))
            trouble = " ".join(banks.fields(kind.lines["trouble"][0][0]))
            article.remedy = self._fact(article, "remedy", (trouble,))
            for name, options, ask, lay in kind.facts:
                article.facts.append(self._fact(article, name, options, ask, lay))
            return
        draw = self.stream("parts", topic.name)
        if topic.kind == "request":
            done = draw.chance(0.15)
            parts = ["done"] if done else ["status", "work"]
            if not done:
                parts += draw.sample(["votes", "planned", "why"], draw.between(1, 3))
        else:
            parts = ["intro", "who", "why", "fix", "state"]
        names = {"status": "status open"}
        for name in parts:
            section = f"{topic.kind}.{names.get(name, name)}"
            article.facts.append(self._fact(article, name, phrases(section)))

    def _fact(self, article, name, options, ask="", lay="") -> Fact:
        """Return a fact whose values depend on its id alone, however it is worded."""
        topic, pen = article.topic, article.pen
        draw = self.stream("fact", topic.name, name)
        drawn: list[str] = []

        def value(match: re.Match) -> str:
            choices = match[1].split(";")
            drawn.append(choices[draw.below(len(choices))].strip())
            return drawn[-1]

        text = pen.choose(name, options)
        text = text.replace("{valuelist}", pen.slots.get("valuelist", ""))
        statement = _sentence(pen.fill(_VALUES.sub(value, text)))
        return Fact(
            f"{topic.name}/{name}",
            topic.thing.name,
            name,
            tuple(map(pen.fill, drawn)),
            statement,
            pen.fill(ask),
            pen.fill(lay),
        )

    def _comment(self, step: str, pen: Pen) -> str:
        """Return a step, sometimes with a remark that fits its verb."""
        verb = step.split(" ")[0].strip(",.;:").lower()
        if step.startswith(BARE):
            return step
        section = next((name for name, verbs in VERBS.items() if verb in verbs), None)
        if section is None or not pen.stream.chance(0.88):
            return step
        return f"{step} {pen.fill(pen.choose(section, phrases(section, 'kinds')))}"

    def _table(self, article: Article, kind) -> None:
        """Draw the numbers of a table, so that statements can use them."""
        draw = self.stream("fact", article.topic.name, "table")
        rows = [banks.fields(row) for row in kind.lines["table"][0][0].split("||")]
        for number, row in enumerate(rows[2:], 1):
            choices = row[1].strip("<>").split(";")
            row[1] = choices[draw.below(len(choices))]
            article.pen.slots[f"v{number}"] = row[1]
        text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        article.pen.slots["table"] = article.pen.fill(text)

    def write(self, article: Article, related: Sequence[Article]) -> None:
        """Write the page; `related` are the articles to which it may link."""
        topic, pen = article.topic, article.pen
        draw = self.stream("layout", topic.name)
        links = ""
        if related:
            names = listed([f"[{other.title}]({other.url})" for other in related])
            line = pen.choose("links", phrases("linkheads", "kinds"))
            links = pen.fill(line, {"links": names})
        if topic.type != "article":
            parts = [fact.statement for fact in article.facts]
            if topic.kind == "request":
                done = any(fact.attribute == "done" for fact in article.facts)
                closes = phrases("request.close done" if done else "request.close")
                for _ in range(draw.between(1, 3)):
                    parts.append(_sentence(pen.fill(pen.choose("close", closes))))
            cut = draw.between(1, max(1, len(parts) - 1))
            blocks = [article.title, " ".join(parts[:cut]), " ".join(parts[cut:]), links]
            article.contents = "\n".join(block for block in blocks if block)
            return
        lines = kinds()[topic.kind].lines
        intro = [pen.fill(pen.choose("intro", lines["intro"][0]))]
        size = draw.weighted((0, 1, 2), (1, 2, 1))
        if size == 2 or draw.chance(0.3):
            intro.append(pen.fill(pen.choose("intro", lines["intro"][0])))
        before = phrases("before", "kinds")
        for _ in range(draw.between(size, size + 2)):
            intro.append(pen.fill(pen.choose("before", before)))
        steps = "\n".join(f"{i}. {fact.statement}" for i, fact in enumerate(article.steps, 1))
        steps = f"\n{self._head(pen, 'stepheads')}\n{steps}"
        facts = draw.sample(article.facts, len(article.facts))
        if draw.chance(0.6):
            told = "\n".join(f"- {fact.statement}" for fact in facts)
            told = f"\n{self._head(pen, 'factheads')}\n{told}"
        else:
            told = "\n" + " ".join(fact.statement for fact in facts)
        if "table" in pen.slots:
            told += f"\n\n{pen.slots['table']}"
        trouble = f"\n{self._head(pen, 'troubleheads')}\n{article.remedy.statement}"
        examples = [
            "\n" + pen.fill(pen.choose("example", phrases("example", "kinds")))
            for _ in range(draw.between(size, size + 1))
        ]
        tips = [
            pen.fill(pen.choose("tips", phrases("tips", "kinds")))
            for _ in range(draw.between(2 * size, 3 * size + 1))
        ]
        if tips:
            head = self._head(pen, "tipheads")
            tips = [f"\n{head}\n" + "\n".join(f"- {tip}" for tip in tips)]
        middle = [steps, told] if draw.chance(0.7) else [told, steps]
        rest = [trouble, *examples, *tips]
        rest = draw.sample(rest, len(rest))
        blocks = [article.title, " ".join(intro), *middle, *rest]
        if links:
            blocks.append(f"\n{links}")
        article.contents = "\n".join(blocks)

    def _head(self, pen: Pen, name: str) -> str:
        return pen.choose(name, phrases(name, "kinds"))

    def lay(self, article: Article, draw: Stream, share: float) -> dict[str, str]:
        """Return the words a user has for the thing: with chance `share` not the product's."""
        thing = article.topic.thing
        noun = draw.pick(thing.lay) if draw.chance(share) else thing.name
        many = plural(noun) if noun != thing.name else thing.plural
        small = {n: article.pen.slots[n].lower() for n in ("field", "field2", "field3")}
        return {"lay": noun, "lays": many, "a_lay": an(noun), **small}


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text[-1] in ".?!" else text + "."


def _lower(name: str) -> str:
    """Return a wish in the middle of a sentence."""
    keep = {"Braille", "Pocket", "Attic"}
    small = [
        w if w in keep or w.isupper() and len(w) > 1 else w[:1].lower() + w[1:]
        for w in name.split()
    ]
    return " ".join(small)
