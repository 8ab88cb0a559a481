"""Cards, tables whose best values are bold, and the one progress bar."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tqdm.auto
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from ragkit import display

FRAME = pd.DataFrame({"up": [1.0, 3.0, 3.0], "down": [5, 4, 6], "same": [1, 1, 1], "name": list("abc")})  # fmt: skip


def bold(styler) -> set[str]:
    """Return the texts of the bold cells, as a browser would find them."""
    soup = BeautifulSoup(styler.to_html(), "html.parser")
    rules = re.findall(r"([^{}]+)\{\s*font-weight: bold;\s*\}", soup.style.string)
    names = {name.strip().lstrip("#") for rule in rules for name in rule.split(",")}
    return {(tag["id"].rpartition("_")[2], tag.text) for tag in soup.find_all("td", id=names)}


def test_the_best_values_of_a_table_are_bold():
    shown = display.table(FRAME, high=["up", "same"], low=["down"])
    assert bold(shown) == {("col0", "3"), ("col1", "4")}
    assert bold(display.table(FRAME.head(0), high=["up"])) == set()
    lost = FRAME.assign(up=[float("nan"), 2.0, float("nan")])
    assert bold(display.table(lost, high=["up"])) == set()  # one value alone is not the best


def test_the_best_is_marked_within_groups_and_never_alone():
    frame = pd.DataFrame({"size": [5, 5, 9, 9, 20, None], "mae": [0.3, 0.1, None, 0.2, 0.4, 0.5]})
    frame["tau"] = [0.5, 0.5, 0.7, 0.9, 0.1, 0.2]
    marks = display.best(frame, high=["tau"], low=["mae"], within=["size"])
    # At 9 one of the two is missing, and at 20 and without a size there is one row.
    assert [tuple(place) for place in np.argwhere(marks)] == [(1, 1), (3, 2)]
    kinds = np.array(list("aabbbb"))
    assert np.argwhere(display.best(frame, low=["mae"], within=[kinds])).tolist() == [
        [1, 1],
        [3, 1],
    ]


@given(st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=6))
def test_the_best_is_the_greatest_of_at_least_two_different_values(values):
    frame = pd.DataFrame({"a": pd.Series(values, dtype="Int64"), "b": "text"})
    marks = display.best(frame, high=["a", "b"])
    known = [value for value in values if value is not None]
    several = len(set(known)) > 1
    assert marks[:, 0].tolist() == [several and value == max(known) for value in values]
    assert not marks[:, 1].any()


def test_a_table_without_rows_says_so():
    page = BeautifulSoup(
        display.table(FRAME.head(0), "None run", high=["up"]).to_html(), "html.parser"
    )
    assert [tag.text for tag in page.find_all("td")] == ["none"]
    assert page.caption.text == "None run"
    assert bold(display.table([])) == set()


def test_equal_tables_have_equal_bytes_and_others_ids_of_their_own():
    one, same = (display.table(FRAME, high=["up"]).to_html() for _ in range(2))
    other = display.table(FRAME.assign(up=0.5), high=["up"]).to_html()
    assert one == same
    (first,), (second,) = (set(re.findall(r'id="(T_\w{10})"', page)) for page in (one, other))
    assert first != second


def test_a_card_escapes_leaves_out_what_is_empty_and_shows_code():
    page = display.card("<b>", {"a": "", "b": None, "c": 0, "<i>": "<u>"}, after="Next: `x < 1`.")
    soup = BeautifulSoup(page, "html.parser")
    assert [tag.text for tag in soup.find_all("th")] == ["c", "<i>"]
    assert [tag.text for tag in soup.find_all("td")] == ["0", "<u>"]
    assert [tag.text for tag in soup.find_all("b")] == ["<b>"]
    assert soup.code.text == "x < 1"
    assert not {"i", "u"} & {tag.name for tag in soup.find_all()}


class Fake:
    """tqdm's bar, which remembers what it showed."""

    made: list = []

    def __init__(self, desc, total, initial, unit, unit_scale, leave, disable):
        assert unit_scale == (unit == "B")
        assert (leave, disable) == (False, None)
        self.what, self.total, self.n, self.closed = desc, total, initial, False
        self.made.append(self)

    def update(self, n):
        self.n += n

    def set_description(self, what, refresh):
        self.what = what

    def reset(self, total):
        self.total, self.n = total, 0

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    monkeypatch.setattr(tqdm.auto, "tqdm", Fake)
    monkeypatch.setattr(Fake, "made", [])
    monkeypatch.setattr(display, "SILENT", -1.0)
    return Fake.made


def test_a_bar_counts_and_goes(bars):
    for number in display.progress(range(3), "steps"):
        if number:
            (shown,) = bars
            assert (shown.what, shown.total, shown.n, shown.closed) == ("steps", 3, number, False)
    assert (shown.n, shown.closed) == (3, True)


def test_what_is_quick_shows_no_bar(bars, monkeypatch):
    monkeypatch.setattr(display, "SILENT", 60.0)
    assert list(display.progress("ab", "steps")) == ["a", "b"]
    assert bars == []


def test_there_is_one_bar_at_a_time_and_none_is_left_behind(bars):
    def fails():
        with display.Bar("inner", 1) as inner:
            inner.update()
            raise ValueError

    with display.Bar("outer", 2) as outer:
        with pytest.raises(ValueError):
            fails()
        outer.update()
    assert [shown.what for shown in bars] == ["outer"]
    next(display.progress(range(9), "left"))  # an iterator that is dropped
    with display.Bar("next", 2) as following:
        following.update()
    assert [shown.what for shown in bars] == ["outer", "next"]
    assert all(shown.closed for shown in bars)


def test_no_bar_appears_when_all_is_done(bars):
    with display.Bar("one", 1) as made:
        made.update()
    assert bars == []


def test_the_one_bar_is_this_one():
    package = Path(display.__file__).parent
    own = {path.name for path in package.rglob("*.py") if "tqdm" in path.read_text("utf-8")}
    assert own == {"display.py"}


def test_a_note_stands_in_a_line_of_stderr(capsys):
    display.note("waiting")
    assert capsys.readouterr() == ("", "waiting\n")


def test_a_bar_goes_through_stages(bars):
    with display.Bar() as made:
        for stage, done, total in (("plan", 1, 2), ("plan", 2, 2), ("write", 3, 9)):
            made.stage(stage, done, total)
            (shown,) = bars
            assert (shown.what, shown.n, shown.total) == (stage, done, total)


# What works inside, and is no result: what fits, generates or searches while others wait.
INSIDE = {"Bar", "Graded", "LSA", "Leads", "Noise", "Pen", "Sandbox", "Writer"}


def test_what_public_functions_return_shows_itself():
    """No cell of a notebook ends in `<ragkit... object at 0x...>`."""
    package = Path(display.__file__).parent
    trees = [ast.parse(path.read_text("utf-8")) for path in package.rglob("*.py")]
    classes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    known = {one.name: [node for node in classes if node.name == one.name] for one in classes}
    own = [node for node in (*trees, *classes) if not getattr(node, "name", "").startswith("_")]
    given = [f for node in own for f in node.body if isinstance(f, ast.FunctionDef) and f.returns]
    given = [ast.unparse(f.returns) for f in given if not f.name.startswith("_")]
    returned = {name for words in given for name in re.findall(r"\w+", words)} & set(known)
    assert {"IRTResult", "Sweep", "Dataset", "Review", "Evaluation", "Plan"} <= returned

    def shown(name: str) -> bool:
        return name == "NamedTuple" or any(map(shows_itself, known.get(name, ())))

    def shows_itself(node: ast.ClassDef) -> bool:
        parts = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
        made = [ast.unparse(part) for part in node.decorator_list]
        by_itself = {"__repr__", "_repr_html_", "_repr_mimebundle_"} & set(parts)
        bases = [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        return bool(by_itself) or any("dataclass" in one for one in made) or any(map(shown, bases))

    assert {name for name in returned if not (name.startswith("_") or shown(name))} <= INSIDE
