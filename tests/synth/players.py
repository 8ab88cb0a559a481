"""Models that a loopback endpoint plays: one for a help centre on kayaks, one for lighthouses."""

from __future__ import annotations

import json
import re

from tests.llm.server import Reply, chat

TYPES = ("article", "feature_request", "known_issue")
PAGE = "# Paddle & Sons\n\nFolding kayaks since 1931.\n"


class Player:
    """Answers by prompt; `change` alters what is answered, whatever repair was asked for."""

    def __init__(self, play, change=lambda prompt, reply: reply):
        self.play, self.change = play, change

    def __call__(self, body, nth=0, digest=""):
        return Reply(chat(json.dumps(self.answer(body))))

    def answer(self, body: dict) -> dict:
        prompt = next(m["content"] for m in body["messages"] if m["role"] == "user")
        return self.change(prompt, self.play(prompt))


def kayaks(folder):
    """Write twelve articles, and return their folder."""
    texts = [
        f"Folding kayak {i}\nOpen bag {i}. Slot {i} takes it. " + "Mind it. " * 20
        for i in range(12)
    ]
    rows = [
        {"doc_id": f"a{i}", "title": f"Folding kayak {i}", "text": text, "source": TYPES[i % 3]}
        for i, text in enumerate(texts)
    ]
    return written(folder, rows)


def lighthouses(folder):
    """Write thirty documents, and return their folder."""
    rows = [
        {
            "doc_id": f"d{i}",
            "title": f"Lighthouse {i}",
            "text": f"Lighthouse {i} is {20 + i} metres high and was lit in {1800 + i}. "
            + f"Its keeper rows to harbour {i} for oil and bread. " * 5,
        }
        for i in range(30)
    ]
    return written(folder, rows)


def written(folder, rows):
    folder.mkdir(exist_ok=True)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "documents.jsonl").write_text(lines, "utf-8")
    return folder


def entry(block: str, n: int) -> dict:
    key = f"{block}-{n:02}"
    own = {"title": f"Kayak {key}", "slug": f"kayak-{key}", "area": "Kayaks"}
    return {"key": key, "type": TYPES[n % 3], **own}


def centre(prompt: str) -> dict:
    """Answer the stages of a help centre as a model that does as it is told."""
    bags = list(dict.fromkeys(re.findall(r"Open bag \d+\.", prompt.partition("[1]")[2])))
    item = re.findall("^Item: (.+)$", prompt, re.M)[0]
    if prompt.startswith("Write a conversation"):
        turns = [{"who": "user", "text": "It folds?"}, {"who": "bot", "text": " ".join(bags)}]
        return {"turns": turns}
    if prompt.startswith("Review"):
        needed = list(range(1, len(bags) + 1))
        return {"reason": "read", "clear": True, "answered": True, "needed": needed}
    if prompt.startswith("Below is a page"):
        block, count = item.split()[-1], int(re.search(r"the next (\d+) articles", prompt)[1])
        block = "articles-1" if block == "catalogue" else block
        return {"articles": [entry(block, n) for n in range(1, count + 1)]}
    if prompt.startswith("Write one article"):
        bag = int("".join(re.findall(r"\d+", item)))
        return {"contents": f"Open bag {bag}. " + "Take the kayak out. " * 100}
    kind = prompt.split()[0]
    return {"question": f"{kind}: how, {' '.join(bags)}", "answer": " ".join(bags), "facts": bags}


def morgana(prompt: str) -> dict:
    """Answer the stages of DataMorgana as a model that does as it is told."""
    if "subject areas" in prompt:
        return {"topics": ["lighthouses", "harbours"]}
    if prompt.startswith("Subject area"):
        return {"topics": ["lighthouse height", "keeper of the lighthouse"]}
    if prompt.startswith("Rate"):
        good = 1 if "Lighthouse 7\n" in prompt else 5
        names = ("factuality", "interest", "credibility", "freshness")
        return dict.fromkeys(names, good) | {"toxicity": 1, "sexuality": 1}
    if prompt.startswith("Read the document"):
        metres = re.search(r"(\d+) metres", prompt)[0]
        fact = {"subject": "the lighthouse", "attribute": "height", "value": metres}
        return {"facts": [fact | {"statement": f"It is {metres} high."}]}
    if prompt.startswith("You have one document"):
        return {"pairs": [{"question": "Which is higher?", "query": "lighthouse metres"}]}
    if prompt.startswith("A question of this kind"):
        return {"reason": "it fits", "number": 1}
    if prompt.startswith("Judge"):
        needed = [1, 2] if "\nDocument 2:" in prompt else [1]
        return {"reason": "seen", "answered": True, "needed": needed, "elsewhere": []}
    if prompt.startswith("Split"):
        return {"direct": ["It is high."], "useful": [], "useless": []}
    number = re.search(r"Lighthouse (\d+)", prompt)[1]
    marks = sum(map(ord, prompt)) % 10_000
    words = 5 if "short-search-query" in prompt else 12
    return {
        "question": f"lighthouse {number} {marks} " + "metres " * (words - 3),
        "answer": f"It is {20 + int(number)} metres high.",
        "facts": [1, 2] if "(document 2)" in prompt else [1],
    }
