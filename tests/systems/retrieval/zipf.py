"""Made documents of any number: words by Zipf's law, lengths around 300, the same for a seed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

VOCABULARY = 200_000
LETTERS = "etaoinshrdlcumwfgypbvkxjqz"


def documents(count: int, seed: int = 0, words: int = 300, block: int = 100) -> Iterator[dict]:
    """Yield `count` documents with doc_id, title and text."""
    rng = np.random.default_rng(seed)
    vocabulary = np.fromiter(map(word, range(VOCABULARY)), dtype="S4", count=VOCABULARY)
    for start in range(0, count, block):
        lengths = rng.lognormal(np.log(words), 0.4, min(block, count - start)).astype(int) + 1
        # Log-uniform ranks have a frequency of 1 / rank.
        ranks = np.exp(rng.random(lengths.sum()) * np.log(VOCABULARY)).astype(int) - 1
        parts = np.split(vocabulary[ranks], np.cumsum(lengths)[:-1])
        for number, part in enumerate(parts, start=start):
            text = b" ".join(part.tolist()).decode()
            yield {"doc_id": f"d{number}", "title": text.split(" ", 1)[0], "text": text}


def queries(texts: list[str], count: int, words: int = 8, seed: int = 1) -> list[str]:
    """Return runs of words of random documents, frequent words among them."""
    rng, out = np.random.default_rng(seed), []
    for number in rng.integers(len(texts), size=count):
        tokens = texts[number].split()
        start = int(rng.integers(max(1, len(tokens) - words)))
        out.append(" ".join(tokens[start : start + words]))
    return out


def word(number: int) -> str:
    """Return the word of a rank: short for the frequent ones."""
    out = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, len(LETTERS))
        out = LETTERS[letter] + out
    return out
