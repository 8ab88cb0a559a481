"""How results are shown: as a card in a notebook, and a bar while they are computed."""

from __future__ import annotations

import hashlib
import html
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing import parent_process
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeVar

from ragkit.text import plain

if TYPE_CHECKING:
    import numpy as np
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


def best(
    frame: pd.DataFrame, high: Sequence = (), low: Sequence = (), within: Sequence = ()
) -> np.ndarray:
    """Return which cells hold the best value of their column: Booleans of the frame's shape.

    Of the columns `high` that is the highest value, of `low` the lowest, among the rows that are
    alike in `within`, names of columns or arrays of labels. A missing value is never best, nor is
    one that is alone or that all the others equal.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"size": [5, 5, 9, 9], "error": [0.3, 0.1, 0.2, None]})
    >>> best(frame, low=["error"], within=["size"])[:, 1].tolist()
    [False, True, False, False]
    """
    import numpy as np
    import pandas as pd

    marks = np.zeros(frame.shape, bool)
    keys = [frame[key] if isinstance(key, str) else key for key in within] or [np.zeros(len(frame))]
    for names, end in ((high, "max"), (low, "min")):
        for name in names:
            values = pd.to_numeric(frame[name], errors="coerce").astype(float)
            alike = values.groupby(keys, dropna=False)
            found = (values == alike.transform(end)) & (alike.transform("nunique") > 1)
            marks[:, frame.columns.get_loc(name)] = found
    return marks


def table(
    rows: pd.DataFrame | list[dict],
    caption: str = "",
    *,
    high: Sequence = (),
    low: Sequence = (),
    within: Sequence = (),
    digits: int = 6,
):
    """Return rows for display, as pandas' Styler: text escaped, numbers to so many digits.

    The `best` values of the columns `high` and `low` are bold; without rows there is the word none.
    Equal frames give equal bytes.
    """
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame(rows)
    if frame.empty:
        frame, high, low, within = pd.DataFrame({"": ["none"]}), (), (), ()
    marks = best(frame, high, low, within)
    shown = escaped_frame(frame)
    texts = shown.map(lambda value: isinstance(value, str)).all()
    number = lambda cell: f"{cell:,.{digits}g}" if isinstance(cell, float) else cell  # noqa: E731
    styler = shown.style.format(number, na_rep="")
    styler = styler.set_table_styles([{"selector": "caption", "props": "text-align: left"}])
    styler = styler.set_properties(subset=list(texts.index[texts]), **{"text-align": "left"})
    if marks.any():
        styler = styler.apply(lambda _: np.where(marks, "font-weight: bold", ""), axis=None)
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

    It is a context manager, and goes at the end of the block. A bar inside another one never
    appears: there is one at a time.
    """

    def __init__(self, what: str = "", total: int | None = None, unit: str = "step"):
        self.what, self.total, self.unit = what, total, unit
        self.done, self._began, self._shown = 0, time.monotonic(), None

    def __enter__(self) -> Bar:
        _open.append(self)
        return self

    def __exit__(self, *error) -> None:
        _open.remove(self)
        if self._shown is not None:
            self._shown.close()

    def update(self, steps: int = 1) -> None:
        """Say that so many more steps are done."""
        self.stage(self.what, self.done + steps, self.total)

    def stage(self, what: str, done: int, total: int | None) -> None:
        """Say what is being done, how many of its steps are done, and how many there are."""
        changed = (what, total) != (self.what, self.total)
        self.what, self.done, self.total = what, done, total
        late = time.monotonic() > self._began + SILENT and done != total
        # A worker's bar would stand beside that of the process that waits for it.
        if self._shown is None and late and _open[:1] == [self] and parent_process() is None:
            from tqdm.auto import tqdm

            # None: not where there is no terminal and no notebook.
            options = {"unit": self.unit, "leave": False, "disable": None}
            options["unit_scale"] = self.unit == "B"
            self._shown = tqdm(desc=what, total=total, initial=done, **options)
        if self._shown is not None:
            if changed:
                self._shown.set_description(what, refresh=False)
                self._shown.reset(total)
            self._shown.update(done - self._shown.n)


def progress(items: Iterable[_Item], what: str, total: int | None = None) -> Iterator[_Item]:
    """Yield items under a `Bar`; `total` is how many there are, if `items` has no length."""
    total = len(items) if total is None and hasattr(items, "__len__") else total
    with Bar(what, total) as bar:
        for item in items:
            yield item
            bar.update()


def note(text: str) -> None:
    """Print a line to stderr, above the bar if there is one."""
    from tqdm.auto import tqdm

    tqdm.write(text, file=sys.stderr)
