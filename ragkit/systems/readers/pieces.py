"""Texts in pieces that can be quoted: sentences, list items, headings, blocks of code."""

from __future__ import annotations

import re
from typing import NamedTuple

from ragkit.text import sentence_spans

_FENCE = re.compile(r"\s*(```|~~~)")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦·–]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])\s+(?=\S)")
_HASHES = re.compile(r"\s{0,3}#{1,6}\s+\S")
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_WORDY = re.compile(r"\b[a-z]{2,}\b.*\b[a-z]{2,}\b.*\b[a-z]{2,}\b")


class Piece(NamedTuple):
    """A piece of a text: `text[start:end]`, and what it is.

    `kind` is "sentence", "item" (a whole list item or a sentence of one), "heading" or "code".
    `line` counts the paragraphs, so that pieces of one paragraph can be joined by a space.
    """

    start: int
    end: int
    kind: str
    line: int


def split(text: str) -> list[Piece]:
    """Cut a text into sentences, list items, headings and blocks of code.

    A line that begins in lower case continues the line before it, unless that ended a sentence.
    Where a sentence ends is told by `ragkit.text.sentence_spans`. A short line without a stop that
    stands before other text is a heading, as is one with `#`. Fenced and indented code is one
    piece.

    The pieces are in order and do not overlap; only white space is left out.

    >>> text = "# Pumps\\nReset it. Then wait.\\n- one\\n"
    >>> [(text[piece.start : piece.end], piece.kind) for piece in split(text)]
    [('# Pumps', 'heading'), ('Reset it.', 'sentence'), ('Then wait.', 'sentence'), ('- one', 'item')]
    """
    pieces: list[Piece] = []
    for number, (kind, start, end) in enumerate(_blocks(text)):
        if kind in ("heading", "code"):
            pieces.append(Piece(start, end, kind, number))
            continue
        mark = _ITEM.match(text, start, end)
        for first, last in sentence_spans(text, mark.end() if mark else start, end):
            pieces.append(Piece(start if mark else first, last, kind, number))
            mark = None
    return pieces


def join(pieces: list[tuple[str, int]]) -> str:
    """Return (text, paragraph) pairs as one text: a space within a paragraph, else a line end.

    >>> join([("Reset it.", 0), ("Then wait.", 0), ("Call us.", 1)])
    'Reset it. Then wait.\\nCall us.'
    """
    out = ""
    for number, (text, paragraph) in enumerate(pieces):
        if number:
            out += " " if paragraph == pieces[number - 1][1] else "\n"
        out += text
    return out


def _blocks(text: str) -> list[tuple[str, int, int]]:
    """Return (kind, start, end) of paragraphs, items, headings and code, trimmed."""
    blocks: list[tuple[str, int, int]] = []
    fence, blank, at = None, True, 0
    for line in text.splitlines(keepends=True):
        start, at = at, at + len(line)
        trimmed = start + len(line) - len(line.lstrip()), start + len(line.rstrip())
        mark = _FENCE.match(line)
        if fence is not None:
            if trimmed[0] < trimmed[1]:
                blocks[-1] = ("code", blocks[-1][1], trimmed[1])
            if mark and mark[1] == fence:
                fence, blank = None, True
            continue
        if trimmed[0] >= trimmed[1]:
            blank = True
            continue
        last = blocks[-1] if blocks else None
        if mark:
            fence = mark[1]
            blocks.append(("code", *trimmed))
        elif _HASHES.match(line):
            blocks.append(("heading", *trimmed))
        elif _ITEM.match(line):
            blocks.append(("item", *trimmed))
        elif _INDENTED.match(line) and not _WORDY.search(line) and (blank or last[0] == "code"):
            if last and last[0] == "code" and not _FENCE.match(text, last[1]):
                blocks[-1] = ("code", last[1], trimmed[1])
            else:
                blocks.append(("code", *trimmed))
        elif last and not blank and _continues(text, last, trimmed):
            blocks[-1] = (last[0], last[1], trimmed[1])
        else:
            blocks.append(("sentence", *trimmed))
        blank = False
    return [
        ("heading", start, end)
        if kind == "sentence" and number + 1 < len(blocks) and _is_heading(text[start:end])
        else (kind, start, end)
        for number, (kind, start, end) in enumerate(blocks)
    ]


def _continues(text: str, last: tuple[str, int, int], line: tuple[int, int]) -> bool:
    """Return whether a line belongs to the block before it: its line break has no meaning."""
    kind, start, end = last
    if kind not in ("sentence", "item") or text[end - 1] in ".!?…:":
        return False
    # A long line was broken at a margin, whatever begins the next one.
    first = text.rfind("\n", start, end) + 1 or start
    return text[line[0]].islower() or 60 <= end - first <= 100


def _is_heading(line: str) -> bool:
    short = len(line.split()) <= 10 and len(line) <= 80
    return short and line[-1] not in ".!?…:;,。！？" and len(sentence_spans(line)) == 1
