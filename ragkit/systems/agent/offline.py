"""The offline policy: a fixed strategy of keyword searches, without a model and without a shell.

It searches the question's keywords one by one, weighs each by how few documents hold it, widens
a word that is found nowhere to a shorter beginning, narrows with pairs of neighbouring words,
follows names in the titles of the best documents, and looks at what lies beside them.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

from ragkit import text

K1, B = 1.2, 0.75  # saturation and length, as in BM25's usual setting
KEYWORDS = 14  # at most
PHRASE, FOLLOWED, NAMED, BESIDE = 0.6, 0.25, 0.3, 0.05  # weights beside a keyword's own
KEPT = 0.4  # of the best document's score: less than that is not returned
SHORTEST = 4  # letters of a beginning
CROWD = 50  # files of a folder that no longer says much about one of them
WORD = re.compile(r"\w+(?:[-./]\w+)*")


def terms(string: str) -> list[str]:
    """Return what is searched for: stems, and identifiers such as `inc-212` whole.

    >>> terms("Which pumps leaked after inc-212?")
    ['pump', 'leak', 'inc-212']
    """
    found = []
    for word in WORD.findall(string.lower().replace("\u2019", "'")):
        if any(char.isdigit() for char in word):
            found.append(word)
        else:
            parts = re.split(r"[-./_]", word)
            found += [p for p in parts if len(p) > 2 and p not in text.STOP_WORDS]
    return text.stems(found)


class Offline:
    """An index of the terms of a corpus, from path to title and text, and the search in it.

    `log` holds what the last search looked for, and how many documents it found.
    """

    def __init__(self, titles: Mapping[str, str], texts: Mapping[str, str]):
        self.titles = dict(titles)
        self.terms = {path: terms(f"{titles[path]}\n{body}") for path, body in texts.items()}
        self.postings: dict[str, dict[str, int]] = defaultdict(dict)
        for path, found in self.terms.items():
            for term, count in Counter(found).items():
                self.postings[term][path] = count
        self.vocabulary = sorted(self.postings)
        self.beside: dict[str, list[str]] = defaultdict(list)
        for path in self.titles:
            self.beside[path.rpartition("/")[0]].append(path)
        self.average = sum(map(len, self.terms.values())) / max(len(self.terms), 1)
        self.log: list[tuple[str, int]] = []

    def search(self, question: str) -> list[tuple[str, float]]:
        """Return (path, score), the best first."""
        self.log, self.scores = [], defaultdict(float)
        words = list(dict.fromkeys(terms(question)))[:KEYWORDS]
        weights = {word: self._score(word, self._find(word)) for word in words}
        self._phrases([word for word in words if weights[word]], weights)
        for word in words:
            if len(word) >= SHORTEST and word.isalnum():
                named = {path: 1 for path in self.titles if word in path.lower()}
                self._score(f"{word} in the path", named, NAMED)
        best = self._ranked()[:3]
        self._follow(best, set(words))
        self._look_beside(best)
        ranked = [(path, self.scores[path]) for path in self._ranked()]
        return [(path, score) for path, score in ranked if score >= KEPT * ranked[0][1]]

    def _find(self, word: str) -> Mapping[str, int]:
        found = self.postings.get(word, {})
        while not found and word.isalpha() and len(word) > SHORTEST:
            word = word[:-1]
            found = Counter()
            for term in self.vocabulary[bisect_left(self.vocabulary, word) :]:
                if not term.startswith(word):
                    break
                found.update(self.postings[term])
        return found

    def _score(self, what: str, found: Mapping[str, int], share: float = 1.0) -> float:
        """Add to the scores of the documents found; return the weight of the search."""
        self.log.append((what, len(found)))
        if not found:
            return 0.0
        rest = max(len(self.titles) - len(found) + 0.5, 0.5)
        weight = share * math.log(1 + rest / (len(found) + 0.5))
        for path, count in found.items():
            norm = K1 * (1 - B + B * len(self.terms[path]) / max(self.average, 1e-9))
            self.scores[path] += weight * count * (1 + K1) / (count + norm)
        return weight

    def _phrases(self, words: list[str], weights: Mapping[str, float]) -> None:
        pairs = sorted(pairwise(words), key=lambda pair: -(weights[pair[0]] + weights[pair[1]]))
        for pair in pairs[:4]:
            one, other = (self.postings.get(word, {}).keys() for word in pair)
            found = {path: list(pairwise(self.terms[path])).count(pair) for path in one & other}
            found = {path: found[path] for path in sorted(found) if found[path]}
            self._score(" ".join(pair), found, PHRASE)

    def _follow(self, best: list[str], asked: set[str]) -> None:
        """Search the rare names in the titles of the best documents."""
        names = dict.fromkeys(
            term
            for path in best
            for word in WORD.findall(self.titles[path])
            if word[0].isupper() or any(char.isdigit() for char in word)
            for term in terms(word)
            if term not in asked
        )
        for name in list(names)[:5]:
            found = self.postings.get(name, {})
            if 1 < len(found) <= max(0.1 * len(self.titles), 3):
                self._score(f"{name} (followed)", found, FOLLOWED)

    def _look_beside(self, best: list[str]) -> None:
        """A small folder with a good document speaks for what else is in it."""
        highest = max(self.scores.values(), default=0.0)
        near = set()
        for path in best:
            folder = path.rpartition("/")[0]
            if folder and len(self.beside[folder]) <= CROWD:
                near |= {*self.beside[folder]} & self.scores.keys() - {path}
        for path in near:
            self.scores[path] += BESIDE * highest

    def _ranked(self) -> list[str]:
        return sorted(self.scores, key=lambda path: (-self.scores[path], path))
