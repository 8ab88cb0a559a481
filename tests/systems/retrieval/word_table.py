"""Where the table of character classes comes from: every code point, tried on Lucene.

`python -m tests.systems.retrieval.word_table` writes ragkit/systems/retrieval/word_break.toml anew.
"""

from __future__ import annotations

from pathlib import Path

from tests.systems.retrieval import lucene

TABLE = Path(__file__).resolve().parents[3] / "ragkit" / "systems" / "retrieval" / "word_break.toml"
# Each character, as @, is tried in these surroundings.
TRIED = ("@", "e@e", "7@7", "ラ@ラ", "@e", "e.@e", "@@", "@\u200d@", '@"ש', "@\U0001f3fd", "👍@")
HEAD = """\
# Classes of characters for Unicode's word boundaries (UAX #29), in hexadecimal ranges, as the
# standard tokenizer of Lucene 8 has them: Unicode 9.0, with pictographs of Emoji 11. Fixed here,
# so that a newer Unicode in Python or elsewhere never changes a ranking.
# Made by: python -m tests.systems.retrieval.word_table
"""


def code_points() -> list[int]:
    return [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]


def classes(step: int = 60_000) -> dict[str, list[int]]:
    """Return class -> code points, in order, by what Lucene makes of each of them."""
    found: dict[str, list[int]] = {name: [] for name in ORDER}
    points = code_points()
    for start in range(0, len(points), step):
        part = points[start : start + step]
        texts = ["\n".join(around.replace("@", chr(p)) for around in TRIED) for p in part]
        for point, tokens in zip(part, lucene.tokens(texts), strict=True):
            for name in _names(chr(point), tokens):
                found[name].append(point)
    return found


ORDER = (
    ("letter", "hebrew", "number", "katakana", "joins_words", "joins_letters", "joins_numbers")
    + ("extend", "southeast_asian", "single", "pictograph", "pictograph_base", "modifier")
    + ("regional",)
)


def _names(character: str, tokens: list[str]):
    small = "i" if character == "İ" else character.replace("Σ", "σ").lower()
    shown = set(tokens)
    here = [around.replace("@", small) in shown for around in TRIED]
    alone, letters, numbers, katakana, first, dotted, double, zwj, quoted, modified, modifies = here
    if letters and numbers and katakana and dotted:
        yield "extend"
        if alone:
            yield "southeast_asian"
    elif letters and numbers and katakana:
        yield "joins_words"
    elif letters and numbers and alone:
        yield "number" if not dotted else "hebrew" if quoted else "letter"
    elif katakana:
        yield "katakana"
    elif letters or numbers:
        if letters:
            yield "joins_letters"
        if numbers:
            yield "joins_numbers"
    elif alone and double:
        yield "southeast_asian"
    elif alone and zwj:
        yield "pictograph"
        if modified:
            yield "pictograph_base"
        if modifies:
            yield "modifier"
    elif alone:
        yield "single"
    elif double:
        yield "regional"


def write(found: dict[str, list[int]]) -> str:
    lines = [HEAD]
    for name in ORDER:
        lines.append(f'{name} = """')
        line = ""
        for low, high in ranges(found[name]):
            text = f"{low:x}-{high:x}" if low < high else f"{low:x}"
            if len(line) + len(text) > 96:
                lines.append(line + " \\")
                line = ""
            line = f"{line} {text}".strip()
        lines.append(line + '"""')
    return "\n".join(lines) + "\n"


def ranges(points: list[int]):
    out: list[list[int]] = []
    for point in points:
        if out and point == out[-1][1] + 1:
            out[-1][1] = point
        else:
            out.append([point, point])
    return out


if __name__ == "__main__":
    TABLE.write_text(write(classes()), "utf-8")
