"""What the figures share: values with intervals, panels, legends, labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from textwrap import wrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ragkit.report.figures import BLUE, MARKS, mark, size

HARDER = "difficulty (harder →)"


def axes(width: str = "column", height: float | None = None, rows=1, columns=1, **options):
    """Return a figure of a named width, and its axes."""
    return plt.subplots(rows, columns, figsize=size(width, height), **options)


def dots(
    ax: Axes,
    table: pd.DataFrame,
    at: str,
    *,
    value: str = "value",
    hue: str | None = None,
    marks: Mapping[str, tuple[str, str]] | None = None,
    order: Iterable | None = None,
    orient: str = "h",
    dodge: float = 0.5,
    **options,
) -> None:
    """Draw values with their intervals, one for each category and colour.

    `table` has the categories `at`, `value`, and perhaps low and high. The levels of the column
    `hue` get the colours and markers of `marks`, in that order, `dodge` apart; by default the fixed
    ones. Values lie along the horizontal axis ("h") or the vertical one ("v"). `options` are
    seaborn's for `pointplot`.
    """
    parts = _with_ends(table, value)
    style = {"color": BLUE, "markersize": 3.6, "linestyle": "none", "err_kws": {"linewidth": 1}}
    style |= options
    if hue:
        marks = dict(marks or marks_of(table[hue].unique()))
        style.pop("color")
        style |= {"hue": hue, "hue_order": list(marks), "legend": False}
        style |= {"palette": {name: paint for name, (paint, _) in marks.items()}}
        style |= {"markers": [shape for _, shape in marks.values()]}
        style["dodge"] = dodge if len(marks) > 1 else False
    place = {"x": "drawn", "y": at} if orient == "h" else {"x": at, "y": "drawn"}
    sns.pointplot(
        parts, **place, order=order, orient=orient, estimator="median", errorbar=("pi", 100), ax=ax, **style
    )  # fmt: skip
    ax.set(xlabel="", ylabel="")
    ax.tick_params(axis="y" if orient == "h" else "x", length=0)
    ax.grid(axis="x" if orient == "h" else "y")


def column(
    table: pd.DataFrame,
    at: str,
    height: float,
    *notes: str,
    marks: Mapping | None = None,
    **options,
) -> tuple[Figure, Axes]:
    """Draw `dots` on a figure of one column, over `notes` and under the legend of `marks`.

    `height` is that of the figure, in inches; `options` are those of `dots`.
    """
    fig, ax = axes("column", height)
    dots(ax, table, at, marks=marks, **options)
    if any(notes):
        below(fig, *notes)
    if marks:
        legend(fig, marks)
    return fig, ax


def lines(ax: Axes, table: pd.DataFrame, x: str, value: str, hue: str, marks: Mapping) -> None:
    """Draw a line for each level of `hue`, with the band from low to high, or over repeats."""
    given = "low" in table
    sns.lineplot(
        _with_ends(table, value) if given else table.assign(drawn=table[value]), x=x, y="drawn",
        **palette(hue, marks), estimator="median" if given else "mean", errorbar=("pi", 100), dashes=False,
        err_kws={"alpha": 0.15, "linewidth": 0}, markersize=4, markeredgewidth=0, ax=ax,
    )  # fmt: skip
    ax.set(xlabel="", ylabel="")


def palette(hue: str, marks: Mapping[str, tuple[str, str]]) -> dict:
    """Return seaborn's options for a column whose levels have these colours and markers."""
    paints = {name: paint for name, (paint, _) in marks.items()}
    shapes = {name: shape.replace("x", "X") for name, (_, shape) in marks.items()}
    return {"hue": hue, "style": hue, "palette": paints, "markers": shapes, "legend": False}


def _with_ends(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return three rows for one: seaborn draws their median, the value, and their whole range."""
    low, high = (table[end] if end in table else table[value] for end in ("low", "high"))
    ends = (table[value], np.fmin(low, table[value]), np.fmax(high, table[value]))
    return pd.concat([table.assign(drawn=end.astype(float)) for end in ends], ignore_index=True)


def facets(
    table: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], None],
    *,
    height: float,
    width: str = "page",
    titles: str = "{col_name}",
    small: bool = False,
    **options,
) -> tuple[Figure, dict]:
    """Draw a panel for each level of a column; return the figure, and its panels by level.

    `draw` is given the axes and the rows of a panel; `height` is that of the figure, in inches;
    with `small`, titles are small and not bold. `options` are seaborn's for `FacetGrid`.
    """
    # The grid arranges itself with another layout engine first.
    with plt.rc_context({"figure.constrained_layout.use": False}):
        grid = sns.FacetGrid(table, **options)
        grid.map_dataframe(lambda *_, data, color=None, label=None: draw(plt.gca(), data))
        grid.set_titles(titles, **({"fontsize": 7, "fontweight": "normal"} if small else {}))
    grid.figure.set_size_inches(size(width, height))
    grid.figure.set_layout_engine("constrained")
    return grid.figure, grid.axes_dict


def legend(fig: Figure, marks: Mapping[str, tuple[str, str]], *, loc="upper right", **options):
    """Put a legend outside of the panels: a name, colour and marker (or line style) each."""
    lines = {"-", "--", ":"}
    handles = [
        plt.Line2D([], [], color=paint, linestyle=shape, linewidth=1.2, label=name)
        if shape in lines
        else plt.Line2D(
            [], [], color=paint, marker=shape[-1], linestyle="none", markersize=4, label=name,
            **({"markerfacecolor": "none"} if shape.startswith("open ") else {}),
        )
        for name, (paint, shape) in marks.items()
    ]  # fmt: skip
    options = {"ncols": len(handles), "columnspacing": 1, "handletextpad": 0.4} | options
    return fig.legend(handles=handles, loc=f"outside {loc}", **options)


def marks_of(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return a colour and a marker for each name: the fixed one, else one that is not taken."""
    found = {name: MARKS.get(name) for name in names}
    for name, fixed in found.items():
        found[name] = fixed or mark(name, besides=found.values())
    return found


def words(name: str, width: int = 0) -> str:
    """Return a name with blanks for underscores, broken into lines of at most `width` letters."""
    text = str(name).replace("_", " ")
    return "\n".join(wrap(text.replace("/", "/ "), width)).replace("/ ", "/") if width else text


def below(fig: Figure, *lines: str, width: int = 52) -> None:
    """Put lines of text below a figure, each broken where it is too long for a column."""
    broken = [part for line in lines for part in (wrap(line, width) or [])]
    fig.supxlabel("\n".join(broken), fontsize=7)


def sizes(ax: Axes, numbers, *, few: bool = False) -> None:
    """Label each size on a logarithmic axis; with `few` only the first, middle and last."""
    shown = sorted(set(numbers))
    if few and len(shown) > 3:
        shown = [shown[0], shown[len(shown) // 2], shown[-1]]
    ax.set_xscale("log")
    ax.set_xticks(shown, [f"{n / 1000:,.10g}k" if n >= 1000 else f"{n:g}" for n in shown])
    ax.minorticks_off()
    ax.set_xlim(min(numbers) / 1.25, max(numbers) * 1.25)
