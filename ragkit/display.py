"""How results are shown: as a card in a notebook, and a bar while they are computed."""

from __future__ import annotations

import hashlib
import html
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import parent_process
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeVar

from ragkit.text import plain

if TYPE_CHECKING:
    import pandas as pd

SILENT = 2.0  # seconds before a bar is shown
_Item = TypeVar("_Item")
_open: list[Bar] = []  # under way: only the outermost is shown


def escaped(text: Any) -> str:
    """Return a text for an HTML page.

    >>> escaped("a < b")
    'a &lt; b'
    """
    return html.escape(plain(str(text)))


def escaped_frame(frame: pd.DataFrame, escape: Callable[[str], str] = escaped) -> pd.DataFrame:
    """Return a frame whose cells, labels and names are escaped text, or numbers."""
    import pandas as pd

    def text(value):
        if value is None or isinstance(value, Number) or value is pd.NA or value is pd.NaT:
            return value
        return escape(plain(str(value)))

    return frame.map(text).rename(index=text, columns=text).rename_axis(index=text, columns=text)


def table(
    rows: pd.DataFrame | list[dict],
    caption: str = "",
    *,
    high: Sequence[str] = (),
    low: Sequence[str] = (),
    digits: int = 6,
):
    """Return rows for display, as pandas' Styler: text escaped, numbers to so many digits.

    Of the columns `high` the highest value is bold, of `low` the lowest. Equal frames give equal
    bytes.
    """
    import pandas as pd

    frame = pd.DataFrame(rows)
    shown = escaped_frame(frame)
    texts = shown.map(lambda value: isinstance(value, str)).all()
    number = lambda cell: f"{cell:,.{digits}g}" if isinstance(cell, float) else cell  # noqa: E731
    styler = shown.style.format(number, na_rep="")
    styler = styler.set_table_styles([{"selector": "caption", "props": "text-align: left"}])
    styler = styler.set_properties(subset=list(texts.index[texts]), **{"text-align": "left"})
    for columns, mark in ((high, styler.highlight_max), (low, styler.highlight_min)):
        places = [frame.columns.get_loc(name) for name in columns if frame[name].nunique() > 1]
        mark(subset=list(shown.columns[places]), props="font-weight: bold")
    if isinstance(frame.index, pd.RangeIndex):
        styler = styler.hide(axis="index")
    # A page may hold several tables: each has an id of its own, which is no random one.
    known = hashlib.sha256(f"{caption}{shown.to_csv()}".encode("utf-8", "replace"))
    styler = styler.set_uuid(known.hexdigest()[:10])
    return styler.set_caption(escaped(caption)) if caption else styler


def card(title: str, facts: Mapping[str, Any], *tables, after: str = "") -> str:
    """Return a result as HTML: its name, what is known of it, tables, and what to do next.

    Facts that are empty are left out. `tables` are those of `table`. In `after`, what stands
    between backticks is shown as code.
    """
    rows = "".join(
        f'<tr><th style="text-align: left">{escaped(name)}</th>'
        f'<td style="text-align: left">{escaped(fact)}</td></tr>'
        for name, fact in facts.items()
        if fact not in ("", None)
    )
    parts = [f"<p><b>{escaped(title)}</b></p>", f"<table>{rows}</table>" if rows else ""]
    parts += [one.to_html() for one in tables]
    parts.append(re.sub(r"`([^`]+)`", r"<code>\1</code>", f"<p>{escaped(after)}</p>"))
    return "".join(parts)


class Bar:
    """A progress bar that appears after two seconds, on a terminal and in a notebook.

    A bar inside another one never appears: there is one at a time. It goes when all is done.
    """

    def __init__(self, what: str, total: int | None = None, unit: str = "step"):
        self.what, self.total, self.unit = what, total, unit
        self.done, self._began, self._shown = 0, time.monotonic(), None

    def update(self, steps: int = 1) -> None:
        """Say that so many more steps are done."""
        self.stage(self.what, self.done + steps, self.total)

    def stage(self, what: str, done: int, total: int | None) -> None:
        """Say what is being done, how many of its steps are done, and how many there are."""
        changed = (what, total) != (self.what, self.total)
        self.what, self.done, self.total = what, done, total
        late, alone = time.monotonic() > self._began + SILENT, _open[:1] == [self]
        # A worker's bar would stand beside that of the process that waits for it.
        if self._shown is None and late and alone and parent_process() is None:
            from tqdm.auto import tqdm

            # None: not where there is no terminal and no notebook.
            options = {"unit": self.unit, "leave": False, "disable": None}
            self._shown = tqdm(desc=what, total=total, initial=done, **options)
        if self._shown is not None:
            if changed:
                self._shown.set_description(what, refresh=False)
                self._shown.reset(total)
            self._shown.update(done - self._shown.n)

    def close(self) -> None:
        if self._shown is not None:
            self._shown.close()


@contextmanager
def bar(what: str = "", total: int | None = None, unit: str = "step") -> Iterator[Bar]:
    """Yield a `Bar` to be updated."""
    made = Bar(what, total, unit)
    _open.append(made)
    try:
        yield made
    finally:
        _open.remove(made)
        made.close()


def progress(items: Iterable[_Item], what: str, total: int | None = None) -> Iterator[_Item]:
    """Yield items under a `bar`; `total` is how many there are, if `items` has no length."""
    total = len(items) if total is None and hasattr(items, "__len__") else total
    with bar(what, total) as made:
        for item in items:
            yield item
            made.update()
