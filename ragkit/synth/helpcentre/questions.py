"""The three question sets: what is asked, and an answer made of what the gold articles state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from ragkit.errors import UsageError
from ragkit.synth import banks
from ragkit.synth.helpcentre.articles import Article, Desk, Fact
from ragkit.synth.helpcentre.product import an, kinds, phrases, words
from ragkit.synth.pen import cap
from ragkit.synth.streams import Stream

# How often a user says it without the product's own noun.
LAY = {"expertwritten": 0.12, "simulated": 1.0}
FORMAL = 0.6  # how often an expert-written question is put in the words of the product
FREE = ("basic", "chain", "link")  # groups whose facts can be asked for on their own
DAYS = ("Monday", "Tuesday", "Thursday", "Friday", "Saturday", "1 April", "the 15th")


@dataclass(frozen=True)
class Question:
    """A question with its answer, the articles that give it, and the facts that it is made of.

    Parameters
    ----------
    text, answer : str
    articles : tuple of Article
    facts : tuple of Fact
        Their statements stand in the answer and in the articles, word for word.
    dialogue : tuple of (str, str)
        Who said what before, for a simulated question.
    """

    text: str
    answer: str
    articles: tuple[Article, ...]
    facts: tuple[Fact, ...]
    dialogue: tuple[tuple[str, str], ...] = ()

    def row(self) -> dict:
        """Return the question in the layout of the benchmark."""
        return {
            "question": self.text,
            "answer": self.answer,
            "article_ids": [article.id for article in self.articles],
        }


class Asker:
    """Asks about the articles of one help centre.

    Parameters
    ----------
    desk : Desk
    articles : sequence of Article
        Written.
    """

    def __init__(self, desk: Desk, articles: Sequence[Article]):
        self.desk = desk
        self.articles = articles
        stated = Counter(fact.statement for a in articles for fact in (*a.steps, *a.facts))
        self.places = [f" {line}" if line[0] != "," else line for line in phrases("where", "asks")]
        self.unique = {statement for statement, n in stated.items() if n == 1}

    # What is asked

    def ask(self, article: Article, draw: Stream, kind: str, noun: dict[str, str]) -> str:
        """Return a user's words for what the article is about, without a closing mark."""
        topic, pen = article.topic, article.pen
        if topic.kind == "request":
            lines = banks.alternatives(phrases("request.lay")[0])
            return pen.fill(draw.pick(lines), {**noun, "reqlay": pen.slots["req"]}).rstrip(".?")
        formal = kind == "expertwritten" and draw.chance(FORMAL)
        if topic.kind in ("setting", "trouble", "known") and not formal:
            text = pen.fill(draw.pick(topic.item.lay), noun)
            if noun["lay"] not in text:
                text = pen.fill(draw.pick(phrases("noun", "asks")), {**noun, "ask": text})
            return text
        lines = kinds()["trouble" if topic.kind == "known" else topic.kind].lines
        if formal:
            small = {"setting": pen.slots.get("setting", "").lower()}
            text = pen.fill(draw.pick(lines["ask"][0]), small).rstrip("?")
            return text[:1].lower() + text[1:]
        return pen.fill(draw.pick(lines["lay"][0]), noun)

    def expert(self, articles: tuple[Article, ...], draw: Stream) -> Question:
        """Return a question as users type it, and an answer as an expert writes it."""
        nouns = self.desk.lay(articles[0], draw, LAY["expertwritten"])
        asks = [self.ask(article, draw, "expertwritten", nouns) for article in articles]
        wanted: list[Fact] = []
        first = articles[0]
        if len(articles) > 1:
            line = draw.pick(phrases("join", "asks"))
            text = first.pen.fill(line, {"first": asks[0], "second": asks[1]})
        else:
            text = asks[0]
            if draw.chance(0.4):
                text += first.pen.fill(draw.pick(self.places))
            if first.topic.group in FREE and draw.chance(0.3):
                wanted.append(draw.pick(first.facts))
                text += draw.pick(("? ", " and ", ". Also ", ", and ")) + wanted[0].lay
        if draw.chance(0.42 if len(articles) == 1 and not wanted else 0.15):
            text = f"{self._context(draw)} {text}"
        if draw.chance(0.35):
            tails = "tail request" if first.topic.kind == "request" else "tail"
            text += draw.pick((". ", "? ", " - ", ", ")) + draw.pick(phrases(tails, "asks"))
        elif draw.chance(0.5):
            text += draw.pick(("?", "??", "?", ".", "!"))
        if draw.chance(0.45):
            text = cap(text)
        if draw.chance(0.35):
            text = misspell(text, draw, draw.between(1, 2))
        answer, used = self._expert_answer(articles, wanted, draw)
        return Question(text, answer, articles, tuple(used))

    def _context(self, draw: Stream) -> str:
        line = draw.pick(phrases("context", "asks"))
        shop = draw.pick(words("shop", "asks"))
        for name, word in (("shop", shop), ("a_shop", an(shop)), ("day", draw.pick(DAYS))):
            line = line.replace(f"{{{name}}}", word)
        return line.replace("{n}", str(draw.between(2, 14)))

    def _expert_answer(self, articles, wanted, draw) -> tuple[str, list[Fact]]:
        used: list[Fact] = []
        blocks: list[str] = []
        if len(articles) > 1:
            blocks.append(draw.pick(phrases("open two", "asks")))
        elif articles[0].steps:
            blocks.append(draw.pick(phrases("open", "asks")))
        for number, article in enumerate(articles):
            if number:
                blocks.append(draw.pick(phrases("second", "asks")))
            facts = [f for f in wanted if f in article.facts] or self._own(article, draw)
            more = [f for f in self._own(article, draw) if f not in facts]
            facts = (facts + more)[: 1 if len(articles) > 1 else draw.between(2, 4)]
            if not article.steps:
                facts = article.facts
                blocks.append(" ".join(fact.statement for fact in facts))
            else:
                if article.topic.group == "trouble" and all(f.attribute != "cause" for f in facts):
                    facts = [*facts, *(f for f in article.facts if f.attribute == "cause")]
                blocks.append(numbered(article.steps))
                rules = draw.pick(phrases("rules", "asks"))
                if len(articles) == 1 and draw.chance(0.8):
                    facts = [*facts, article.remedy]
                if facts:
                    told = "\n".join(f"- {fact.statement}" for fact in facts)
                    blocks.append(f"{rules}\n{told}")
                used += article.steps
            used += facts
        if draw.chance(0.5):
            blocks.append(draw.pick(phrases("close", "asks")))
        return "\n\n".join(blocks), list(dict.fromkeys(used))

    def _own(self, article: Article, draw: Stream) -> list[Fact]:
        """Return the facts that no other article states, in random order."""
        own = [fact for fact in article.facts if fact.statement in self.unique]
        return draw.sample(own, len(own))

    def simulated(self, articles: tuple[Article, ...], draw: Stream) -> Question:
        """Return a short question and answer, distilled from a dialogue that is kept beside it."""
        nouns = self.desk.lay(articles[0], draw, LAY["simulated"])
        said: list[tuple[str, str]] = []
        texts, answers, used = [], [], []
        for article in articles:
            text, facts = self._short(article, draw, nouns, len(articles) == 1)
            rough = self.ask(article, draw, "simulated", nouns)
            said.append(("user", misspell(rough, draw, 1)))
            said.append(("bot", draw.pick(phrases("bot", "asks"))))
            said.append(("user", text))
            answers.append(" ".join(fact.statement for fact in facts))
            said.append(("bot", answers[-1]))
            texts.append(text.rstrip("?."))
            used += facts
        if len(texts) > 1:
            text = "? ".join(texts)
        else:
            text = texts[0]
        return Question(f"{text}?", " ".join(answers), articles, tuple(used), tuple(said))

    def _short(self, article, draw, noun, alone) -> tuple[str, list[Fact]]:
        topic, pen = article.topic, article.pen
        if topic.kind == "request":
            text = pen.fill(draw.pick(phrases("simulated.request", "asks")), noun)
            return text, article.facts[:3]
        own = self._own(article, draw)
        named = {"object": noun["lay"], "objects": noun["lays"], "a": noun["a_lay"].split(" ")[0]}
        if topic.kind in ("trouble", "known"):
            if draw.chance(0.3):
                ask = pen.fill(topic.item.symptom, named)
                text = pen.fill(draw.pick(phrases("simulated.trouble", "asks")), {"ask": ask})
            else:
                more = {**noun, "ask": pen.fill(draw.pick(topic.item.lay), noun)}
                text = cap(pen.fill(draw.pick(phrases("simulated.said", "asks")), more))
            facts = {fact.attribute: fact for fact in article.facts}
            return text, [f for name, f in facts.items() if name in ("cause", "why", "fix", "time")]
        if topic.kind == "setting":
            what = pen.fill(topic.item.what, named)
            text = pen.fill(draw.pick(phrases("simulated.setting", "asks")), {"what": what})
            steps = article.steps[:2]
            return text, [*steps, *(f for f in own if f.attribute == "preset")]
        gerund, verb = banks.fields(kinds()[topic.kind].lines["short"][0][0])
        if own and draw.chance(0.42):
            fact = own[0]
            more = {**noun, "when": pen.fill(gerund, noun), "ask": fact.ask}
            text = pen.fill(draw.pick(phrases("simulated.fact", "asks")), more)
            return text, own[: 2 if alone else 1]
        more = {**noun, "verb": pen.fill(verb, noun)}
        text = pen.fill(draw.pick(phrases("simulated.how", "asks")), more)
        return text, article.steps[: draw.between(3, 4) if alone else 2] + own[: 0 if alone else 1]

    def synthetic(self, article: Article, draw: Stream) -> Question:
        """Return a question in the article's words, and what the article says."""
        topic, pen = article.topic, article.pen
        if topic.type != "article":
            lines = banks.alternatives(phrases(f"{topic.kind}.ask")[0])
            text = pen.fill(draw.pick(lines))
            answer = " ".join(fact.statement for fact in article.facts)
            return Question(text, answer, (article,), tuple(article.facts))
        facts = draw.sample(article.facts, len(article.facts))
        # What is asked beside the remedy should not be the remedy.
        facts.sort(key=lambda fact: fact.attribute in ("cause", "fix", "what", "is"))
        fact, *others = facts
        ask = pen.fill(draw.pick(kinds()[topic.kind].lines["ask"][0])).rstrip("?")
        more = {"ask": ask, "ask_l": ask[:1].lower() + ask[1:], "more": fact.ask}
        more["where"] = draw.pick((topic.thing.area, self.desk.product))
        text = pen.fill(draw.pick(phrases("synthetic", "asks")), more)
        facts = [fact, *others[: draw.between(1, 3)]]
        if draw.chance(0.6):
            facts.append(article.remedy)
        told = " ".join(fact.statement for fact in facts)
        how = numbered(article.steps)
        answer = f"{how}\n\n{told}" if draw.chance(0.6) else f"{told}\n\n{how}"
        return Question(text, answer, (article,), (*article.steps, *facts))

    # The sets

    def make_set(self, name: str, count: int, multi: int, draw: Stream) -> list[Question]:
        """Return `count` different questions, `multi` of them about two articles.

        Raises
        ------
        UsageError
            If the articles do not suffice.
        """
        make: Callable = self.expert if name == "expertwritten" else self.simulated
        pairs = self._pairs(draw)
        pool = self._pool(draw)
        jobs = [pairs, pool]
        wanted = [multi, count - multi]
        made: list[Question] = []
        seen: set[str] = set()
        for candidates, number in zip(jobs, wanted, strict=True):
            left = number
            for round_ in range(4):
                for articles in candidates if left else ():
                    ids = "+".join(article.topic.name for article in articles)
                    question = make(articles, self.desk.stream(name, ids, round_))
                    if question.text.lower() not in seen and self._needed(question):
                        seen.add(question.text.lower())
                        made.append(question)
                        left -= 1
                        if not left:
                            break
            if left:
                raise UsageError(
                    f"{len(self.articles):,} articles cannot carry {count:,} {name} questions, "
                    f"{multi:,} of them about two articles",
                    "ask for fewer questions or make more articles",
                )
        return draw.sample(made, len(made))

    def _needed(self, question: Question) -> bool:
        """Return whether each article states something of the answer that no other states."""
        sole = {fact.fact_id for fact in question.facts if fact.statement in self.unique}
        return all(
            any(fact.fact_id in sole for fact in (*article.steps, *article.facts))
            for article in question.articles
        )

    def _pool(self, draw: Stream) -> list[tuple[Article, ...]]:
        """Return single articles in the order of use, mostly tutorials."""
        by_type = defaultdict(list)
        for article in self.articles:
            by_type[article.topic.type].append(article)
        pools = [draw.sample(by_type[t], len(by_type[t])) for t in sorted(by_type)]
        plain = [a for a in pools[0] if a.topic.group != "chain"]
        plain += [a for a in pools[0] if a.topic.group == "chain"]
        rest = [article for pool in pools[1:] for article in pool]
        order: list[Article] = []
        while plain or rest:
            order += plain[:12]
            order += rest[:1]
            plain, rest = plain[12:], rest[1:]
        return [(article,) for article in order]

    def _pairs(self, draw: Stream) -> list[tuple[Article, ...]]:
        """Return pairs about one thing that need both: each says what the other does not."""
        by_thing = defaultdict(list)
        for article in self.articles:
            if article.steps and article.topic.group != "chain":
                by_thing[article.topic.thing.name].append(article)
        pairs = []
        for group in by_thing.values():
            some = draw.sample(group, 24)
            possible = [(a, b) for a, b in combinations(some, 2) if a.topic.kind != b.topic.kind]
            pairs += draw.sample(possible, 40)
        return draw.sample(pairs, len(pairs))


def numbered(steps: Sequence[Fact]) -> str:
    return "\n".join(f"{number}. {fact.statement}" for number, fact in enumerate(steps, 1))


def misspell(text: str, draw: Stream, count: int) -> str:
    """Return the text as somebody in a hurry types it, with up to `count` slips."""
    known = dict(line.split(" ") for line in phrases("typos", "asks"))
    parts = text.split(" ")
    hit = [i for i, word in enumerate(parts) if word.lower() in known]
    long = [i for i, word in enumerate(parts) if len(word) > 4 and word.isalpha() and i not in hit]
    for i in [*draw.sample(hit, count), *draw.sample(long, count)][:count]:
        word = parts[i]
        if word.lower() in known:
            parts[i] = known[word.lower()]
            continue
        at = draw.between(1, len(word) - 3)
        slip = draw.below(3)
        if slip == 2 and word[at] in "aeiouy":
            slip = 0
        if slip == 0:
            parts[i] = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        elif slip == 1:
            parts[i] = word[:at] + word[at + 1 :]
        else:
            parts[i] = word[: at + 1] + word[at:]
    return " ".join(parts)
