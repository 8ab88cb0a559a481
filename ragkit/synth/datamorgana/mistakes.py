"""Spelling mistakes as people make them: slips of the finger and words spelt by ear."""

from __future__ import annotations

import re

from ragkit.synth.streams import Stream

# Share of words that get a mistake, of those long enough to have one.
SHARES = {"correct": 0.0, "mild-mistakes": 0.11, "severe-mistakes": 0.5}
ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
SHIFT = (0.0, 0.3, 0.8)  # how far a row is set to the right, in keys
EAR = (
    ("ough", "uff"), ("tion", "shun"), ("sion", "shun"), ("ight", "ite"), ("ture", "cher"),
    ("ph", "f"), ("ck", "k"), ("wh", "w"), ("kn", "n"), ("qu", "kw"), ("ch", "tch"), ("que", "k"),
    ("ei", "ie"), ("ie", "ei"), ("ee", "ea"), ("ea", "ee"), ("ou", "ow"), ("ai", "ay"), ("oa", "o"),
    ("ance", "ence"), ("ence", "ance"), ("able", "ible"), ("ent", "ant"), ("ant", "ent"),
    ("ce", "se"), ("ci", "si"), ("er", "ur"), ("ly", "lee"), ("ge", "je"), ("x", "ks"), ("au", "o"),
    ("ur", "er"), ("ey", "y"), ("dge", "ge"), ("sc", "s"), ("gh", "g"), ("age", "ige"), ("oo", "u"),
)  # fmt: skip
# Words that no slip of the finger may make.
_RUDE = re.compile(
    r"bitch|shit|fuck|cunt|dick|cock|\bass\b|tits?\b|whore|slut|rape|nazi|fag|porn", re.I
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def _neighbours() -> dict[str, str]:
    places = {
        letter: (i + SHIFT[row], row)
        for row, keys in enumerate(ROWS)
        for i, letter in enumerate(keys)
    }
    return {
        a: "".join(
            b
            for b, (x2, y2) in places.items()
            if b != a and abs(y2 - y) <= 1 and abs(x2 - x) <= (1 if y2 == y else 0.8)
        )
        for a, (x, y) in places.items()
    }


NEIGHBOURS = _neighbours()


def keyboard(word: str, stream: Stream) -> str:
    """Hit the key beside one of the letters."""
    places = [i for i in range(1, len(word)) if word[i] in NEIGHBOURS]
    if not places:
        return word
    i = stream.pick(places)
    return word[:i] + stream.pick(NEIGHBOURS[word[i]]) + word[i + 1 :]


def transpose(word: str, stream: Stream) -> str:
    """Swap two neighbouring letters, not the first."""
    places = [i for i in range(1, len(word) - 1) if word[i] != word[i + 1]]
    if not places:
        return word
    i = stream.pick(places)
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


def double(word: str, stream: Stream) -> str:
    """Write a letter twice, or a double letter once."""
    twice = [i for i in range(1, len(word)) if word[i] == word[i - 1]]
    if twice:
        i = stream.pick(twice)
        return word[:i] + word[i + 1 :]
    letters = [i for i in range(1, len(word)) if word[i].isalpha()]
    if not letters:
        return word
    i = stream.pick(letters)
    return word[:i] + word[i] + word[i:]


def drop(word: str, stream: Stream) -> str:
    """Leave out a letter inside."""
    if len(word) < 4:
        return word
    i = stream.between(1, len(word) - 2)
    return word[:i] + word[i + 1 :]


def by_ear(word: str, stream: Stream) -> str:
    """Write a part of the word as it sounds."""
    low = word.lower()
    found = [(low.index(a, 1), a, b) for a, b in EAR if a in low[1:]]
    if not found:
        return word
    i, a, b = stream.pick(found)
    return word[:i] + b + word[i + len(a) :]


SLIPS = (transpose, drop, double, keyboard)


def misspell(
    text: str, severity: str, stream: Stream, protected: frozenset[str] = frozenset()
) -> str:
    """Return `text` with spelling mistakes.

    Words with digits or of capitals are left alone: they are codes. So are `protected` ones (in
    small letters) unless the mistakes are severe, and then no more than one of them is hit.

    Parameters
    ----------
    severity : {"correct", "mild-mistakes", "severe-mistakes"}
    """
    share = SHARES[severity]
    if not share:
        return text
    severe = severity == "severe-mistakes"
    words = [
        m
        for m in _WORD.finditer(text)
        if len(m.group()) >= (3 if severe else 5)
        and not (m.group().isupper() and len(m.group()) > 1)
        and not _joined(text, m)
    ]
    names = [m for m in words if m.group().lower() in protected]
    plain = [m for m in words if m.group().lower() not in protected]
    count = max(2 if severe else 1, round(share * len(plain)))
    chosen = stream.sample(plain, count)
    if severe and names and (len(chosen) < 2 or stream.chance(0.3)):
        chosen.append(stream.pick(names))
    if not chosen:
        chosen = stream.sample(names, 1)
    out = text
    for m in sorted(chosen, key=lambda m: -m.start()):
        out = out[: m.start()] + _wrong(m.group(), severe, stream) + out[m.end() :]
    return out


def _wrong(word: str, severe: bool, stream: Stream) -> str:
    ways = (by_ear, by_ear, *SLIPS) if severe else (by_ear, *SLIPS)
    made = word
    for _ in range(2 if severe and len(word) > 7 and stream.chance(0.4) else 1):
        for _ in range(20):
            new = stream.pick(ways)(made, stream)
            if new not in (made, word) and not _RUDE.search(new):
                made = new
                break
    return made


def _joined(text: str, match: re.Match) -> bool:
    """Return whether a word is part of a code such as BN-4417 or 3.B05."""
    around = text[max(0, match.start() - 1) : match.start()] + text[match.end() : match.end() + 1]
    return any(c.isdigit() or c in "-_/@" for c in around)


def error_rate(correct: str, written: str) -> float:
    """Return edits for each character of the correct text: Damerau-Levenshtein distance / length.

    Returns
    -------
    float >= 0; 0 where nothing differs
    """
    if not correct:
        return 0.0 if not written else 1.0
    return distance(correct, written) / len(correct)


def distance(a: str, b: str) -> int:
    """Return the number of insertions, deletions, substitutions and swaps of neighbours."""
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, before2 = row, before
        row = [i] + [0] * len(b)
        for j, y in enumerate(b, 1):
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], before2[j - 2] + 1)
        before = last
    return row[-1]
