"""Pieces of a text: what stays whole, what is cut, and nothing gets lost."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from ragkit.systems.readers.pieces import join, split


def pieces(text, kind=None):
    return [text[p.start : p.end] for p in split(text) if kind in (None, p.kind)]


def test_a_broken_line_goes_on_and_a_new_paragraph_does_not():
    found = pieces("The ferry leaves\nat noon. It is\n\nLate")
    assert found == ["The ferry leaves\nat noon.", "It is", "Late"]


def test_items_headings_and_code():
    text = (
        "# Boats\n"
        "Moving a ticket\n"
        "To move it:\n"
        "1. Open Tides. Wait for it.\n"
        "2. Click\n"
        "   move.\n"
        "- all done\n"
        "```\nx = 1. Y = 2\n\nz\n```\n"
        "After it.\n"
    )
    assert pieces(text, "heading") == ["# Boats", "Moving a ticket"]
    assert pieces(text, "item") == [
        "1. Open Tides.",
        "Wait for it.",
        "2. Click\n   move.",
        "- all done",
    ]
    assert pieces(text, "code") == ["```\nx = 1. Y = 2\n\nz\n```"]
    assert pieces(text, "sentence") == ["To move it:", "After it."]


def test_indented_code_is_one_piece_and_indented_prose_is_not_code():
    text = "Run this:\n\n    x = 1.\n\n    y = 2.\n\nThen:\n\n    We went there and it was nice.\n"
    assert pieces(text, "code") == ["x = 1.\n\n    y = 2."]
    assert "We went there and it was nice." in pieces(text, "sentence")


def test_a_fence_left_open_ends_with_the_text_and_join_keeps_paragraphs_apart():
    assert pieces("```\nx. Y") == ["```\nx. Y"]
    assert join([("A.", 1), ("B.", 1), ("- c", 2)]) == "A. B.\n- c"
    assert join([]) == ""


TEXTS = st.text(
    alphabet=st.sampled_from(list("aAbZ.!?…。 \n\t-1#`\"')(:/@é\r\x0b\x1c\u2028")), max_size=80
)


@given(TEXTS)
@example("```\n```\n```")
@example("1.")
@example("- \n- x")
def test_pieces_are_in_order_and_leave_out_white_space_alone(text):
    found = split(text)
    at = 0
    for piece in found:
        assert at <= piece.start < piece.end
        assert text[at : piece.start].strip() == ""
        assert text[piece.start : piece.end] == text[piece.start : piece.end].strip()
        at = piece.end
    assert text[at:].strip() == ""
    assert [p.line for p in found] == sorted(p.line for p in found)
