"""What the figures share: values with intervals, lines, boxes, panels, legends, labels.

>>> table = pd.DataFrame({"system": ["one", "two"], "value": [0.4, 0.6], "size": [10, 100]})
>>> table = table.assign(low=table["value"] - 0.1, high=table["value"] + 0.1)
>>> figures = [forest(table, "system", "recall (higher is better)")]
>>> figures += [trends(table, "size", "value", "recall", hue="system", log=True, height=2.0)]
>>> fig, ax = axes("page", 2.0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from textwrap import wrap

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ragkit.report.figures import BLUE, GREY, MARKS, NAMES, marks_of, size

HARDER = "difficulty (harder →)"
Z90 = 1.6448536269514722


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


def interval(value: pd.Series, error: pd.Series) -> pd.DataFrame:
    """Return the columns value, low and high: 90 % intervals from standard errors.

    >>> interval(pd.Series([1.0]), pd.Series([0.1])).round(2)
       value   low  high
    0    1.0  0.84  1.16
    """
    return pd.DataFrame({"value": value, "low": value - Z90 * error, "high": value + Z90 * error})


def spread(table: pd.DataFrame, by: str, column: str) -> pd.DataFrame:
    """Return the columns low, value and high for each category: quartiles and median.

    >>> spread(pd.DataFrame({"type": [*"aab"], "score": [0.0, 1.0, 0.5]}), "type", "score")
           low  value  high
    type
    a     0.25    0.5  0.75
    b     0.50    0.5  0.50
    """
    found = table.groupby(by, sort=False)[column].quantile([0.25, 0.5, 0.75]).unstack()
    return found.set_axis(["low", "value", "high"], axis=1)


def second(ax: Axes, table: pd.DataFrame, at: str, name: str, **options) -> None:
    """Draw the column `name` without intervals, with the mark of that name (`figures.MARKS`)."""
    paint, shape = MARKS[name]
    style = {"markersize": 9, "markeredgewidth": 1.6} if shape == "|" else {"markersize": 4.5}
    bare = table.drop(columns=["low", "high"], errors="ignore")
    dots(ax, bare, at, value=name, **({"color": paint, "markers": shape, "zorder": 5} | style | options))  # fmt: skip


def forest(
    table: pd.DataFrame,
    at: str,
    label="",
    *,
    hue: str | None = None,
    marks: Mapping[str, tuple[str, str]] | None = None,
    order: Iterable | None = None,
    also: str = "",
    lines=None,
    ends=None,
    log=False,
    notes: Iterable[str] = (),
    panels: Mapping | None = None,
    height: float | None = None,
    width: str = "column",
    **options,
) -> Figure:
    """Draw values with their intervals, a category below the other, in one panel or several.

    `table`, `at`, `hue`, `marks`, `order` and `options` are those of `dots`; `also` is a column of
    `table` with a second value. `panels` are options of `facets`, such as `col`.
    `label` (of the values), `lines` (a dashed line, or from low to high a grey band), `ends` (of the
    axis) and `log` (its scale) hold for all panels, or are given by panel. `notes` stand below the
    figure; `height` is that of the figure, in inches.
    """
    order = list(dict.fromkeys(table[at] if order is None else order))
    if table[at].dtype == object:
        table, order = table.assign(**{at: table[at].map(words)}), [words(name) for name in order]
    marks = marks or (marks_of(table[hue].unique()) if hue else {})

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        dots(ax, rows, at, hue=hue, marks=marks, order=order, **options)
        if also:
            second(ax, rows, at, also, order=order, orient=options.get("orient", "h"))

    letters = 52 if width == "column" else 110
    told_below = sum(len(wrap(note, letters)) for note in notes if note)
    high = 0.9 + 0.24 * len(order) + 0.13 * told_below + (0.2 if hue or also else 0)
    arranged = {"sharex": False, "titles": "", "height": height or high}
    fig, drawn = facets(table, draw, width=width, **(arranged | dict(panels or {})))
    vertical = options.get("orient") == "v"
    for key, ax in drawn.items():
        told, line, limits, scaled = (
            given.get(key) if isinstance(given, Mapping) else given
            for given in (label, lines, ends, log)
        )
        ax.set(**{"ylabel" if vertical else "xlabel": told or ""})
        if isinstance(line, tuple):
            ax.axvspan(*line, color=GREY, alpha=0.25, linewidth=0, zorder=0)
        elif line is not None:
            ax.axvline(line, color=GREY, linewidth=0.9, linestyle="--", zorder=1)
        if scaled:
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:,g}")
            ax.xaxis.set_minor_formatter("")
        if limits:  # an end that is left open has room for a marker
            ends_of = ax.set_ylim if vertical else ax.set_xlim
            low, high = ends_of(limits)
            ends_of(low, high if limits[1] is not None else high + 0.04 * (high - low))
    below(fig, *filter(None, notes), width=letters)
    if also:
        marks = dict(marks or {"measured": MARKS["measured"]}) | {also: MARKS[also]}
    if marks:
        legend(fig, marks)
    return fig


def lines(ax: Axes, table: pd.DataFrame, x: str, value: str, hue: str, marks: Mapping) -> None:
    """Draw a line for each level of `hue`, with the band from low to high, or over repeats."""
    given = "low" in table
    sns.lineplot(
        _with_ends(table, value) if given else table.assign(drawn=table[value]), x=x, y="drawn",
        **palette(hue, marks), estimator="median" if given else "mean", errorbar=("pi", 100), dashes=False,
        err_kws={"alpha": 0.15, "linewidth": 0}, markersize=4, markeredgewidth=0, ax=ax,
    )  # fmt: skip
    ax.set(xlabel="", ylabel="")


def trends(
    table: pd.DataFrame,
    x: str,
    value: str,
    label: str,
    *,
    hue: str,
    log: bool = False,
    line: float | None = None,
    ylabel: str = "",
    **options,
) -> Figure:
    """Draw `lines` along `x` in panels (`facets`); `line` is a value of x to mark, `log` is for sizes."""
    marks = marks_of(table[hue].unique())

    def draw(ax: Axes, rows: pd.DataFrame) -> None:
        lines(ax, rows, x, value, hue, marks)
        ax.grid(axis="y")
        if line is not None:
            ax.axvline(line, color=GREY, linewidth=0.6, linestyle="--")
        if log:
            sizes(ax, table[x], few=True)

    fig, panels = facets(table, draw, **options)
    letters = 96 // options.get("col_wrap", len(panels))
    for name, ax in panels.items() if "col" in options else ():
        ax.set_title(words(name, letters), fontsize=7, fontweight="normal")
    fig.supxlabel(label, fontsize=8)
    fig.supylabel(ylabel, fontsize=8)
    legend(fig, marks, loc="upper center")
    return fig


def boxes(ax: Axes, table: pd.DataFrame, value: str, at: str, order: Iterable, **options) -> None:
    """Draw a box of each category's values: quartiles and median."""
    style = {"color": "white", "linecolor": GREY, "width": 0.6, "linewidth": 0.8, "fliersize": 2}
    style["medianprops"] = {"color": BLUE, "linewidth": 1.6}
    sns.boxplot(table, x=value, y=at, order=list(order), ax=ax, **(style | options))
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="", ylabel="")


def heat(ax: Axes, grid: pd.DataFrame, **options) -> None:
    """Draw a table of numbers in colours."""
    sns.heatmap(grid, ax=ax, rasterized=True, **{"cmap": "viridis", **options})
    ax.set_yticks(np.arange(len(grid)) + 0.5, map(words, grid.index), rotation=0)
    ax.set(xlabel="", ylabel="")
    ax.tick_params(length=0)


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
    with `small`, titles are small and not bold. `options` are seaborn's for `FacetGrid`; without a
    column of panels there is one.
    """
    # The grid arranges itself with another layout engine first.
    with plt.rc_context({"figure.constrained_layout.use": False}):
        grid = sns.FacetGrid(table, **options)
        grid.map_dataframe(lambda *_, data, color=None, label=None: draw(plt.gca(), data))
        grid.set_titles(titles, **({"fontsize": 7, "fontweight": "normal"} if small else {}))
    grid.figure.set_size_inches(size(width, height))
    grid.figure.set_layout_engine("constrained")
    return grid.figure, grid.axes_dict or {None: grid.ax}


def stacks(
    heights: Mapping[str, int], label: str = "", *, space: float = 1.3, sharex: bool = True
) -> tuple[Figure, dict[str, Axes]]:
    """Return a page of panels in two columns of about equal height, each as high as its rows.

    `heights` are the rows of each panel, whose name is its title; `label` is that of the horizontal
    axes, which the panels of a column share; `space` is that between panels, in rows.
    """
    names = list(heights)
    ends = np.cumsum([heights[name] + space for name in names])
    half = int(np.argmin(np.abs(2 * ends - ends[-1]))) + 1 if len(names) > 2 else len(names)
    columns = [part for part in (names[:half], names[half:]) if part]
    tallest = max(sum(heights[name] + space for name in part) for part in columns)
    fig = plt.figure(figsize=size("page", 0.155 * tallest + 0.75))
    panels = {}
    halves = np.atleast_1d(fig.subfigures(1, len(columns)))
    for side, part in zip(halves, columns, strict=True):
        rows = {"height_ratios": [heights[name] for name in part]}
        made = side.subplots(len(part), 1, sharex=sharex, squeeze=False, gridspec_kw=rows)[:, 0]
        side.supxlabel(label, fontsize=8)
        panels |= dict(zip(part, made, strict=True))
    for name, ax in panels.items():
        ax.set_title(words(name), pad=3)
    return fig, panels


def legend(fig: Figure, marks: Mapping[str, tuple[str, str]], *, loc="upper right", **options):
    """Put a legend outside of the panels: a name, colour and marker (or line style) each.

    Names that are too long for one line of the figure take two.
    """
    handles, letters = [], sum(len(name) + 4 for name in marks)
    rows = 2 if letters > 16 * fig.get_figwidth() else 1
    for name, (paint, shape) in marks.items():
        style = {"color": paint, "label": name, "linewidth": 1.2, "markersize": 4}
        if shape in ("-", "--", ":"):
            style["linestyle"] = shape
        else:
            style |= {"linestyle": "none", "marker": shape[-1]}
            style |= {"markerfacecolor": "none"} if shape.startswith("open ") else {}
        handles.append(plt.Line2D([], [], **style))
    style = {"ncols": -(-len(handles) // rows), "columnspacing": 1, "handletextpad": 0.4}
    return fig.legend(handles=handles, loc=f"outside {loc}", **(style | options))


def words(name: str, width: int = 0) -> str:
    """Return a name as a reader knows it, broken into lines of at most `width` letters.

    >>> words("first_gold_rank"), words("first_gold_rank", 6), words("token_f1")
    ('first gold rank', 'first\\ngold\\nrank', 'token F1')
    """
    text = NAMES.get(name, str(name).replace("_", " "))
    return "\n".join(wrap(text.replace("/", "/ "), width)).replace("/ ", "/") if width else text


def below(fig: Figure, *lines: str, width: int = 52) -> None:
    """Put lines of text below a figure, each broken where it is too long for a column."""
    broken = [part for line in lines for part in wrap(line, width)]
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
