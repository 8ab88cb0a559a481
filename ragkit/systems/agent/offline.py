"""The offline policy: what somebody patient would type, without a model.

It searches one keyword of the question after the other, weighs each by how few documents hold
it, narrows with pairs of neighbouring words, widens what is found nowhere to a shorter stem, reads
the titles of the best documents for names to follow, and looks at what lies beside them. All of
it goes through the sandbox, as command lines that a model could have written.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable

from ragkit.systems.agent.session import Session, Spent

K1, B = 1.2, 0.75  # saturation and length, as in BM25's usual setting
POOL = 60  # documents that are looked at more closely
KEYWORDS = 14  # at most
PHRASE, FOLLOWED, NAMED, BESIDE = 0.6, 0.25, 0.3, 0.05  # weights beside a keyword's own
KEPT = 0.4  # of the best document's score: less than that is not returned
_SHELL_LINE = 3_500
_SUFFIXES = ("ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ers", "er", "ed")
_SUFFIXES += ("es", "ly", "s", "e")
FUNCTION_WORDS = frozenset(
    """
    a about after all also am an and any are as at be because been before being between both but by
    can could did do does doing during each few for from further get gets got had has have having he
    her here hers him his how however i if in into is it its itself just many may me might more most
    much must my no nor not now of off on once one only or other our out over own per same shall she
    should since so some such than that the their them then there these they this those through to
    too under until up us use used using was we were what when where whether which while who whom
    whose why will with within without would yet you your did does name give list tell describe
    explain find please ours any every happened
    """.split()
)


def keywords(question: str) -> list[str]:
    """Return the words of a question that are worth a search, in its order, in lower case."""
    found: dict[str, None] = {}
    for word in re.findall(r"\w+(?:[-./]\w+)*", question.replace("\u2019", "'")):
        whole = any(char.isdigit() for char in word)
        for part in [word] if whole else re.split(r"[-./_]", word):
            part = part.lower()
            if part not in FUNCTION_WORDS and (len(part) > 2 or part.isdigit()):
                found.setdefault(part)
    return list(found)


def stem(word: str) -> str:
    """Return the beginning of `word` that its other forms share, at least four letters."""
    if not word.isalpha() or not word.isascii():
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            return word[: -len(suffix)]
    return word


def _expression(word: str) -> str:
    """Return the extended expression that finds a keyword and its other forms."""
    beginning = stem(word)
    if beginning.isalpha() and len(beginning) >= 4:
        return rf"\<{beginning}[[:alnum:]]*"
    literal = re.sub(r"([^\w])", r"[\1]", word)
    return rf"\<{literal}s?\>"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


class Offline:
    """One question's search.

    Parameters
    ----------
    session : Session
        Runs command lines, and raises `Spent` when the budget is.
    """

    def __init__(self, session: Session):
        self.run = session.run
        self.frequencies: dict[str, dict[str, int]] = {}  # keyword -> path -> how often
        self.weights: dict[str, float] = {}
        self.lengths: dict[str, int] = {}
        self.beside: dict[str, float] = defaultdict(float)
        self.total = 1

    def search(self, question: str) -> list[tuple[str, float]]:
        """Return (path, score), the best first: the documents worth returning."""
        words = keywords(question)
        try:
            self.total = max(int(self.run("find . -type f | wc -l").text.split()[0]), 1)
            self._keywords(words)
            self._phrases(words)
            self._names(words)
            self._lengths()
            self._follow(question)
            self._neighbours()
        except Spent:
            pass  # what was found until then is the result; the transcript says that it ended
        ranked = self._ranked()
        best = ranked[0][1] if ranked else 0.0
        return [(path, score) for path, score in ranked if score >= KEPT * best]

    def _keywords(self, words: list[str]) -> None:
        # What is likely rare comes first, in case the time does not suffice for all.
        words = sorted(words, key=lambda word: (word.isalpha(), -len(word)))
        for word in words[:KEYWORDS]:
            counts, documents = self._count(_expression(word))
            beginning = stem(word)
            while not documents and beginning.isalpha() and len(beginning) > 5:
                beginning = beginning[:-2]  # widen
                counts, documents = self._count(rf"\<{beginning}[[:alnum:]]*")
            self._weigh(word, counts, documents)

    def _count(self, expression: str) -> tuple[dict[str, int], int]:
        """Return path -> how often an expression is found, and how many documents hold it."""
        found = self.run(f"grep -r -i -o -E -e {_quoted(expression)} . | cut -d: -f1 | uniq -c")
        counts = {}
        for line in found.text.splitlines():
            number, _, path = line.strip().partition(" ")
            if number.isdigit() and path.startswith("./"):
                counts[path[2:]] = int(number)
        return counts, len(counts) + found.lines_left_out

    def _weigh(self, key: str, counts: dict[str, int], documents: int, share: float = 1.0) -> None:
        if counts:
            rest = self.total - documents + 0.5
            self.frequencies[key] = counts
            self.weights[key] = share * math.log(1 + max(rest, 0.5) / (documents + 0.5))

    def _phrases(self, words: list[str]) -> None:
        """Narrow: neighbouring words of the question that also stand together in documents."""
        pairs = [
            (first, second)
            for first, second in zip(words, words[1:], strict=False)
            if first in self.weights and second in self.weights
        ]
        pairs.sort(key=lambda pair: -(self.weights[pair[0]] + self.weights[pair[1]]))
        for first, second in pairs[:4]:
            counts, documents = self._count(
                _expression(first) + "[^[:alnum:]]+" + _expression(second)
            )
            self._weigh(f"{first} {second}", counts, documents, PHRASE)

    def _names(self, words: list[str]) -> None:
        """Find documents whose name or folder has a keyword."""
        known = [word for word in words if len(word) > 3 and word.isalnum()]
        if not known:
            return
        tests = " -o ".join(f"-ipath {_quoted(f'*{stem(word)}*')}" for word in known)
        found = self.run(f"find . -type f \\( {tests} \\)").text.splitlines()
        for word in known:
            named = {line[2:]: 1 for line in found if stem(word) in line.lower()}
            self._weigh(f"{word} in the path", named, len(named), NAMED)

    def _lengths(self) -> None:
        for line in self._over(self._pool(POOL), "wc -w --"):
            number, _, path = line.strip().partition(" ")
            if number.isdigit() and path != "total":
                self.lengths[path] = int(number)

    def _over(self, paths: Iterable[str], command: str) -> list[str]:
        """Return the output lines of a command over files, a few command lines long if need be."""
        lines, batch, size = [], [], 0
        for path in [*paths, None]:
            word = None if path is None else _quoted(path)
            if batch and (word is None or size + len(word) > _SHELL_LINE):
                lines += self.run(f"{command} {' '.join(batch)}").text.splitlines()
                batch, size = [], 0
            if word is not None:
                batch.append(word)
                size += len(word) + 1
        return lines

    def _follow(self, question: str) -> None:
        """Read the titles of the best documents and search for the rare names in them."""
        asked = set(map(stem, keywords(question)))
        names: dict[str, None] = {}
        for path in self._pool(3):
            title = self.run(f"head -n 1 -- {_quoted(path)}").text.strip()
            for word in re.findall(r"\w+(?:-\w+)*", title):
                distinct = any(char.isdigit() for char in word) or word[0].isupper()
                word = word.lower()
                if distinct and word in keywords(word) and stem(word) not in asked:
                    names.setdefault(word)
        for name in list(names)[:5]:
            counts, documents = self._count(_expression(name))
            if 1 < documents <= max(0.1 * self.total, 3):
                self._weigh(f"{name} (followed)", counts, documents, FOLLOWED)

    def _neighbours(self) -> None:
        """Look beside the best documents; a small folder speaks for what else is in it."""
        for path in self._pool(3):
            folder = path.rpartition("/")[0]
            if not folder:
                continue
            listed = self.run(f"ls -p -- {_quoted(folder)}")
            names = [name for name in listed.text.splitlines() if not name.endswith("/")]
            if not listed.truncated and 1 < len(names) <= 50:
                for name in names:
                    beside = f"{folder}/{name}"
                    if beside != path:
                        self.beside[beside] = max(self.beside[beside], BESIDE)

    def _ranked(self) -> list[tuple[str, float]]:
        average = sum(self.lengths.values()) / max(len(self.lengths), 1)
        scores: dict[str, float] = defaultdict(float)
        for key, counts in self.frequencies.items():
            for path, count in counts.items():
                relative = self.lengths[path] / average if path in self.lengths else 1.0
                norm = K1 * (1 - B + B * relative)
                scores[path] += self.weights[key] * count * (1 + K1) / (count + norm)
        best = max(scores.values(), default=0.0)
        for path, share in self.beside.items():
            if path in scores:
                scores[path] += share * best
        return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))

    def _pool(self, size: int) -> list[str]:
        return [path for path, _ in self._ranked()[:size]]
