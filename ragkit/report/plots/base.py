"""What the figures share: values with intervals, panels, legends, labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragkit.report.figures import BLUE, MARKS, mark, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HARDER = "difficulty (harder →)"


def axes(width: str = "column", height: float | None = None, rows=1, columns=1, **options):
    """Return a figure of a named width, and its axes."""
    import matplotlib.pyplot as plt

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

    Parameters
    ----------
    ax : Axes
    table : DataFrame
        The columns `at`, `hue` and `value`; perhaps low and high, the ends of the intervals.
    at : str
        The column of categories.
    value : str, default="value"
    hue : str, optional
        A column whose levels get a colour and marker each.
    marks : dict of str to (colour, marker), optional
        Of the levels of `hue`, in their order; by default the fixed ones.
    order : iterable, optional
        The categories, from the top or from the left.
    orient : {"h", "v"}
        Whether values lie along the horizontal or the vertical axis.
    dodge : float, default=0.5
        How far the levels of a category are set apart.
    **options
        For `seaborn.pointplot`.
    """
    import seaborn as sns

    low, high = (table[end] if end in table else table[value] for end in ("low", "high"))
    # The median of value and ends is the value; their whole range is the interval.
    ends = (table[value], np.fmin(low, table[value]), np.fmax(high, table[value]))
    parts = pd.concat([table.assign(drawn=end.astype(float)) for end in ends], ignore_index=True)
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

    Parameters
    ----------
    table : DataFrame
    draw : callable
        Draws the rows of a panel on its axes.
    height : float
        Of the figure, in inches.
    width : {"page", "column"}
    titles : str, default="{col_name}"
    small : bool, default=False
        Whether the titles are small and not bold.
    **options
        For `seaborn.FacetGrid`, such as col, row, col_wrap, sharex.
    """
    import matplotlib.pyplot as plt
    import seaborn as sns

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
    import matplotlib.pyplot as plt

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
