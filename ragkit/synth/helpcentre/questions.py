"""The three question sets: what is asked, and an answer made of what the gold articles state."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

from ragkit.synth import banks
from ragkit.synth.helpcentre.articles import Article, Desk, Fact
from ragkit.synth.helpcentre.product import an, kinds, phrases, words
from ragkit.synth.helpcentre.sets import Draft
from ragkit.synth.pen import cap
from ragkit.synth.stages import Check, Rejected, Task
from ragkit.synth.streams import Stream

# How often a user says it without the product's own noun.
LAY = {"expertwritten": 0.12, "simulated": 1.0}
FORMAL = 0.6  # how often an expert-written question is put in the words of the product
FREE = ("basic", "chain", "link")  # groups whose facts can be asked for on their own
DAYS = ("Monday", "Tuesday", "Thursday", "Friday", "Saturday", "1 April", "the 15th")


class Asker:
    """The offline author of the question sets: asks about the articles of one help centre.

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

    def answer(
        self, stage: str, tasks: Sequence[Task], check: Check | None = None
    ) -> list[dict | Rejected]:
        """Return the data of each task of a stage, as a model would."""
        found = []
        for task in tasks:
            data = getattr(self, stage)(task.given)
            reason = check(task, data) if check else ""
            found.append(Rejected(stage, task.item, reason) if reason else data)
        return found

    def _stream(self, draft: Draft) -> Stream:
        ids = "+".join(article.topic.name for article in draft.articles)
        return self.desk.stream(draft.name, ids, draft.turn)

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

    def expert(self, draft: Draft) -> dict:
        """Return a question as users type it, and an answer as an expert writes it."""
        articles, draw = draft.articles, self._stream(draft)
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
        return {"question": text, "answer": answer, "facts": used}

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

    def dialogue(self, draft: Draft) -> dict:
        """Return a dialogue, and the short question and answer that it is distilled to."""
        articles, draw = draft.articles, self._stream(draft)
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
        turns = [{"who": who, "text": line} for who, line in said]
        short = {"question": f"{text}?", "answer": " ".join(answers), "facts": used}
        return {"turns": turns, "short": short}

    def distill(self, draft: Draft) -> dict:
        return draft.data["short"]

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

    def extract(self, draft: Draft) -> dict:
        """Return a question in the article's words, and what the article says."""
        (article,) = draft.articles
        topic, pen = article.topic, article.pen
        draw = self.desk.stream("synthetic", topic.name)
        if topic.type != "article":
            lines = banks.alternatives(phrases(f"{topic.kind}.ask")[0])
            text = pen.fill(draw.pick(lines))
            answer = " ".join(fact.statement for fact in article.facts)
            return {"question": text, "answer": answer, "facts": article.facts}
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
        return {"question": text, "answer": answer, "facts": [*article.steps, *facts]}

    def review(self, draft: Draft) -> dict:
        """Return which articles state something of the answer that no other article states."""
        sole = {f.fact_id for f in draft.data["facts"] if f.statement in self.unique}
        needed = [
            n
            for n, article in enumerate(draft.articles, 1)
            if draft.name == "synthetic"  # which has a question for every article
            or any(fact.fact_id in sole for fact in (*article.steps, *article.facts))
        ]
        return {"clear": True, "answered": bool(needed), "needed": needed, "reason": ""}

    # The sets

    def singles(self, draw: Stream) -> list[tuple[Article, ...]]:
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

    def pairs(self, draw: Stream) -> list[tuple[Article, ...]]:
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
