"""Item response models: results in, one figure out.

>>> from ragkit import irt
>>> simulated = irt.simulate(20, 50, seed=1)
>>> result = irt.fit(simulated.scores)
>>> figures = [joint(result), wright(result), curves(result, simulated.scores)]
>>> figures += [item_fit(irt.item_fit(result).assign(matrix="simulated"))]
>>> figures += [side_by_side({"2pl": result, "1pl": irt.fit(simulated.scores, "1pl")})]
>>> figures += [information({"50 items": result}), checks(irt.posterior_predictive(result, draws=19))]
>>> bins = pd.qcut(result.items["diff"], 2, labels=["easy", "difficult"])
>>> figures += [over_bins(simulated.scores, bins, systems=[*result.subjects.index[:2]], label="score")]
>>> figures += [over_categories(result.items["diff"], bins.astype(str).to_frame("half"))]
>>> levels = irt.nearest(irt.simulate(40, 30, seed=1).scores, [0, 0.5, 1])
>>> figures += [categories(irt.fit(levels, likelihood="graded"))]
>>> linked = irt.link(result, result)  # of one group of subjects and another
>>> figures += [differential(linked.items, groups=("these", "the same"))]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from scipy.special import expit, ndtr

from ragkit.errors import DataError
from ragkit.irt.result import IRTResult
from ragkit.measures import stats
from ragkit.report.figures import BLACK, BLUE, SPARE, VERMILION
from ragkit.report.plots import base

ABILITY = "ability (better →)"


def _ends(*values: pd.Series) -> tuple[float, float]:
    """Return ends of an axis that a few far values do not decide."""
    lows, highs = [], []
    for one in values:
        low, high = one.quantile([0.05, 0.95])
        lows.append(max(one.min(), low - (high - low)))
        highs.append(min(one.max(), high + (high - low)))
    pad = 0.04 * (max(highs) - min(lows))
    return min(lows) - pad, max(highs) + pad


def _beyond(label: str, values: pd.Series, ends: tuple[float, float]) -> str:
    """Return a label that says how many values lie beyond the ends of the axis."""
    outside = int((~values.dropna().between(*ends)).sum())
    return f"{label}\n{outside} of {len(values)} lie beyond the axis" if outside else label


def _spread(values: pd.Series, most: int) -> list:
    """Return at most `most` labels, evenly chosen in the order of the values."""
    ordered = values.sort_values(kind="stable").index
    places = np.linspace(0, len(ordered) - 1, min(most, len(ordered)))
    return list(ordered[places.round().astype(int)])


def joint(result: IRTResult | pd.DataFrame) -> Figure:
    """Draw difficulty against discrimination, with both distributions (LiveRAG, Figure 1).

    The cross in the corner is the median 90 % interval of an item. Flagged items are open. Published
    values, a frame with diff and disc, have neither.
    """
    if isinstance(result, pd.DataFrame):
        items, signed = result.assign(se_diff=np.nan, se_disc=np.nan, flag=""), True
    else:
        items, signed = result.items, result.info["disc"] == "signed"
    disc, error = ("disc", "se_disc") if signed else ("log_disc", "se_log_disc")
    flagged, across, up = items["flag"] != "", _ends(items["diff"]), _ends(items[disc])
    fig, ((top, none), (ax, side)) = base.axes(
        "column", 3.3, 2, 2, width_ratios=[4, 1], height_ratios=[1, 4], sharex="col", sharey="row"
    )
    style = {"s": 14 if len(items) < 300 else 6, "rasterized": True, "ax": ax, "alpha": 0.8}
    sns.scatterplot(items[~flagged], x="diff", y=disc, color=BLUE, linewidth=0, **style)
    sns.scatterplot(
        items[flagged], x="diff", y=disc, facecolor="none", edgecolor=VERMILION, linewidth=0.6, **style
    )  # fmt: skip
    marks = {"item": (BLUE, "o")} | ({"flagged": (VERMILION, "open o")} if flagged.any() else {})
    wide, high = half = base.Z90 * items[["se_diff", error]].median()
    ax.set(xlim=across, ylim=up)
    if np.isfinite(half).all():  # a fit that failed has no errors
        corner = max(across[1] - wide, np.mean(across)), up[1] + 1.2 * high
        ax.errorbar(*corner, xerr=wide, yerr=high, color=BLACK, lw=0.8)
        ax.set_ylim(up[0], corner[1] + 1.2 * high)
        marks["median 90 % interval"] = (BLACK, "+")
    label = "discrimination" if signed else "log discrimination"
    ax.set_xlabel(_beyond(base.HARDER, items["diff"], across))
    ax.set_ylabel(_beyond(label, items[disc], up))
    bars = {"bins": 30, "color": BLUE, "linewidth": 0, "alpha": 1}
    sns.histplot(items, x="diff", binrange=across, ax=top, **bars)
    sns.histplot(items, y=disc, binrange=up, ax=side, **bars)
    top.set_ylabel("items")
    side.set_xlabel("items")
    none.axis("off")
    base.legend(fig, marks, loc="upper center")
    return fig


def wright(result: IRTResult) -> Figure:
    """Draw subjects and items on one scale: a Wright map."""
    theta, diff = result.subjects["theta"], result.items["diff"]
    ends = _ends(theta, diff)
    fig, (left, right) = base.axes("column", 3.0, 1, 2, sharey=True)
    for ax, values, paint in ((left, theta, BLUE), (right, diff, VERMILION)):
        sns.histplot(y=values, bins=30, binrange=ends, color=paint, linewidth=0, alpha=1, ax=ax)
        ax.axhline(values.median(), color=BLACK, linewidth=0.8, linestyle="--")
        ax.xaxis.get_major_locator().set_params(integer=True)
    left.invert_xaxis()
    left.set(xlabel=f"{len(theta)} subjects", ylabel="ability and difficulty", ylim=ends)
    right.set_xlabel(_beyond(f"{len(diff)} items", diff, ends))
    marks = {"abler ↑": (BLUE, "s"), "harder ↑": (VERMILION, "s"), "median": (BLACK, "--")}
    base.legend(fig, marks, loc="upper center")
    return fig


def _panels(long: pd.DataFrame, draw, result: IRTResult, grid: np.ndarray) -> tuple[Figure, dict]:
    """Return a panel for each item, named by its parameters, over a band where the subjects are."""

    def over(ax: Axes, rows: pd.DataFrame) -> None:
        theta = result.subjects["theta"]
        ax.axvspan(theta.min(), theta.max(), color="0.93", linewidth=0, zorder=0)
        draw(ax, rows)

    columns = min(3, long["item_id"].nunique())
    deep = -(-long["item_id"].nunique() // columns)
    size = {"height": 0.8 + 1.4 * deep, "small": True}
    fig, panels = base.facets(long, over, col="item_id", col_wrap=columns, **size)
    for item, ax in panels.items():
        row = result.items.loc[item]
        ax.set_title(
            f"{base.words(item)[:24]}: a = {row['disc']:.2f}, b = {row['diff']:.2f}", size=7
        )
        ax.set(xlim=(grid[0], grid[-1]), xlabel="", ylabel="")
    fig.supxlabel(f"{ABILITY}; grey: abilities of the subjects", fontsize=8)
    return fig, panels


def curves(
    result: IRTResult, scores: pd.DataFrame, *, items: Iterable | None = None, bins: int = 5
) -> Figure:
    """Draw items' characteristic curves, and the mean scores of subjects in bins of ability.

    `scores` are those of the fit: subject_id, item_id, score. By default six items, evenly chosen
    by difficulty. A bin's mean has a 90 % interval.
    """
    chosen = list(_spread(result.items["diff"], 6) if items is None else items)
    theta = result.subjects["theta"]
    groups = pd.qcut(theta.rank(method="first"), min(bins, len(theta)), labels=False)
    seen = scores[scores["item_id"].isin(chosen)]
    by = [seen["item_id"], seen["subject_id"].map(groups).rename("bin")]
    seen = seen.assign(theta=seen["subject_id"].map(theta)).groupby(by)
    seen = seen.agg(theta=("theta", "mean"), mean=("score", "mean"), sem=("score", "sem"))
    grid = np.linspace(min(-3, theta.min()), max(3, theta.max()), 121)
    expected = result.characteristic_curves(grid)[chosen]

    def draw(ax, rows):
        item = rows["item_id"].iloc[0]
        ax.plot(grid, expected[item], color=BLUE, linewidth=1.2)
        ax.errorbar(rows["theta"], rows["mean"], base.Z90 * rows["sem"].fillna(0), fmt="o", color=BLACK, ms=3, lw=0.8)  # fmt: skip

    long = seen.loc[[item for item in chosen if item in seen.index]].reset_index()
    fig, _ = _panels(long, draw, result, grid)
    fig.supylabel("score (higher is better)", fontsize=8)
    marks = {"expected": (BLUE, "-"), "mean of a bin of subjects, 90 %": (BLACK, "o")}
    base.legend(fig, marks, loc="upper center")
    return fig


def categories(result: IRTResult, *, items: Iterable | None = None) -> Figure:
    """Draw the probability of each level of the score along ability, for items of a graded model.

    By default three items, evenly chosen by difficulty. `DataError` if the model is not graded.
    """
    if "levels" not in result.info:
        raise DataError("only a graded model has category curves", "fit likelihood='graded'")
    chosen = list(_spread(result.items["diff"], 3) if items is None else items)
    thresholds = result.items.loc[chosen].filter(regex=r"^threshold_\d+$")
    far = np.clip([thresholds.min(axis=None) - 1, thresholds.max(axis=None) + 1], -8, 8)
    grid = np.linspace(min(-3, far[0]), max(3, far[1]), 121)
    levels, tables = [f"{level:.3g}" for level in result.info["levels"]], []
    for item in chosen:
        slope, at = result.items.loc[item, "disc"], thresholds.loc[item].to_numpy()
        above = np.pad(expit(slope * (grid[:, None] - at)), ((0, 0), (1, 0)), constant_values=1)
        share = above - np.pad(above[:, 1:], ((0, 0), (0, 1)))
        tables.append(pd.DataFrame(share, grid, levels).assign(item_id=item))
    shades = sns.color_palette("viridis_r", len(levels)).as_hex()

    def draw(ax, rows):
        for level, paint in zip(levels, shades, strict=True):
            ax.plot(rows.index, rows[level], color=paint, linewidth=1.2)

    fig, _ = _panels(pd.concat(tables), draw, result, grid)
    fig.supylabel("probability of the level", fontsize=8)
    base.legend(fig, {level: (paint, "-") for level, paint in zip(levels, shades, strict=True)})
    return fig


def item_fit(table: pd.DataFrame) -> Figure:
    """Draw items' infit against outfit, a panel a matrix; dashed: 0.7 and 1.3, the usual limits.

    `table` holds rows of `ragkit.irt.item_fit`: matrix, infit, outfit.
    """

    def draw(ax, rows):
        for end in (0.7, 1.3):
            ax.axhline(end, color="0.7", linewidth=0.8, linestyle="--")
            ax.axvline(end, color="0.7", linewidth=0.8, linestyle="--")
        pair = rows["infit"], rows["outfit"]
        ends = [(min(0.5, one.min()) - 0.04, max(1.5, one.quantile(0.98))) for one in pair]
        _against(ax, *pair, [f"{one.name} (1: as expected)" for one in pair], ends)

    style = {"col": "matrix", "sharex": False, "sharey": False, "height": 2.8}
    fig, panels = base.facets(table, draw, **style)
    for name, ax in panels.items():
        near = (table.loc[table["matrix"] == name, ["infit", "outfit"]] < 0.05).all(axis=1)
        ax.set_title(f"{name}: {len(near)} items" + f", {near.sum()} near 0" * bool(near.any()))
    return fig


def _against(ax: Axes, one: pd.Series, two: pd.Series, labels: Sequence[str], ends=None) -> None:
    """Draw a number against another; without given ends of the axes, and the line of equality."""
    if ends is None:
        ends = _ends(one), _ends(two)
        ax.axline((0, 0), slope=1, color="0.7", linewidth=0.8, zorder=0)
    ax.plot(one, two, ".", color=BLUE, ms=4, rasterized=True)
    ax.set(xlim=ends[0], ylim=ends[1])
    ax.set_xlabel(_beyond(labels[0], one, ends[0]))
    ax.set_ylabel(_beyond(labels[1], two, ends[1]))


def differential(items: pd.DataFrame, *, groups: tuple[str, str]) -> Figure:
    """Draw items' difficulty in one group of subjects against another, on one scale.

    `items` is that of `ragkit.irt.link` of the fits of both groups: diff, linked_diff, z. An item
    that is marked functions differently: it is harder for one of the groups than for equally able
    subjects of the other. As many items are tested, at most 5 % of those marked are expected to be
    false (`ragkit.measures.stats.false_discovery`).
    """
    away = items[stats.false_discovery(2 * ndtr(-items["z"].abs())) < 0.05]
    fig, ax = base.axes("column", 3.3)
    _against(ax, items["diff"], items["linked_diff"], [f"difficulty, {group}" for group in groups])
    ax.plot(away["diff"], away["linked_diff"], "D", color=VERMILION, ms=3.5)
    marks = {f"{len(items) - len(away)} items": (BLUE, "o")}
    base.legend(fig, marks | {f"{len(away)} differ (Benjamini-Hochberg, 5 %)": (VERMILION, "D")})
    return fig


def side_by_side(results: Mapping[str, IRTResult]) -> Figure:
    """Draw the first fit's difficulty and ability against every other's."""
    (name, first), *others = results.items()
    width = "page" if len(others) > 1 else "column"
    fig, panels = base.axes(width, 3.4, 2, len(others), squeeze=False)
    tables = {"difficulty": ("items", "diff"), "ability": ("subjects", "theta")}
    for row, (kind, (table, parameter)) in zip(panels, tables.items(), strict=True):
        for ax, (other, result) in zip(row, others, strict=True):
            pair = getattr(first, table)[parameter], getattr(result, table)[parameter]
            pair = pd.concat(pair, axis=1, join="inner", keys=["one", "two"])
            _against(ax, pair["one"], pair["two"], (f"{kind}, {name}", f"{kind}, {other}"))
            r = pair["one"].corr(pair["two"])
            ax.set_title(f"r = {r:.3f}", fontsize=7, fontweight="normal")
    return fig


def over_bins(scores: pd.DataFrame, bins: pd.Series, *, systems: list[str], label: str) -> Figure:
    """Draw systems' mean scores over bins of difficulty, with 90 % intervals (Figures 2 and 3).

    `scores`: subject_id, item_id, score. `bins` are categories from easy to hard, indexed by item;
    `systems` the subjects to draw, best first.
    """
    ranks = {system: str(n) for n, system in enumerate(systems, start=1)}
    own = scores.assign(bin=scores["item_id"].map(bins), rank=scores["subject_id"].map(ranks))
    found = own.groupby(["rank", "bin"], observed=True)["score"].agg(["mean", "sem"])
    found = base.interval(found["mean"], found["sem"]).reset_index()
    marks = dict(zip(ranks.values(), SPARE[3:], strict=False))
    style = {"order": bins.cat.categories, "orient": "v", "height": 2.6}
    fig = base.forest(found, "bin", label, hue="rank", marks=marks, **style)
    fig.axes[0].set_xlabel("quartile of difficulty (harder →)\nmean and 90 % interval")
    fig.legends[0].set_title("system, by rank", {"size": 7})
    return fig


def over_categories(diff: pd.Series, categories: pd.DataFrame) -> Figure:
    """Draw the difficulty of each category, with its number of items (LiveRAG, Figure 4)."""
    fig, panels = base.stacks(
        {name: categories[name].nunique() for name in categories}, base.HARDER
    )
    for name, ax in panels.items():
        rows = pd.DataFrame({"diff": diff, "kind": categories[name].astype(str)})
        groups = rows.groupby("kind")["diff"]
        order = groups.median().sort_values(ascending=False).index
        medians = {"color": VERMILION, "linewidth": 1.5}
        base.boxes(ax, rows, "diff", "kind", order, linecolor=BLUE, medianprops=medians)
        labels = [f"{base.words(kind)} ({groups.size()[kind]})" for kind in order]
        ax.set_yticks(range(len(order)), labels, fontsize=7)
    return fig


def information(results: Mapping[str, IRTResult]) -> Figure:
    """Draw the information of tests along ability, and the error of an ability measured by them.

    Ticks above the axis are the subjects' abilities.
    """
    fig, (left, right) = base.axes("page", 2.4, 1, 2)
    lines = zip([paint for paint, _ in SPARE[3:]], ("-", "--", ":"), strict=False)
    marks = dict(zip(results, lines, strict=False))
    for name, (paint, line) in marks.items():
        total = results[name].information().sum(axis=1)
        for ax, value in ((left, total), (right, total**-0.5)):
            ax.plot(value, color=paint, linestyle=line)
            theta = results[name].subjects["theta"]
            sns.rugplot(x=theta, color=paint, height=0.03, alpha=0.5, ax=ax)
            ax.set(xlabel=ABILITY, xlim=(-4, 4))
    left.set(ylabel="information of the test\n(higher is better)", yscale="log")
    left.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    left.yaxis.set_major_formatter("{x:,g}")
    left.minorticks_off()
    right.set(ylabel="standard error of ability\n(lower is better)", ylim=(0, None))
    base.legend(fig, marks, loc="upper center")
    return fig


def checks(table: pd.DataFrame) -> Figure:
    """Draw a posterior predictive check: observed statistics, and the model's 90 % range.

    Each statistic has an axis of its own, in the units of the scores on [0, 1]. `DataError` if the
    model has no range, as where errors are missing.
    """
    if table[["mean", "low", "high"]].isna().any(axis=None):
        raise DataError("the model generates no scores", "the fit lacks errors: use another model")
    shown = table.assign(value=table["mean"], statistic=[base.words(name) for name in table.index])

    def draw(ax, rows):
        row = rows.iloc[0]
        ax.plot([row["low"], row["high"]], [0, 0], "-|", color=BLUE, lw=3, ms=8, solid_capstyle="butt")  # fmt: skip
        ax.plot(row["observed"], 0, "x", color=BLACK, ms=5, mew=1.4, zorder=3)
        ax.set_ylabel(row["statistic"], rotation=0, ha="right", va="center")
        ax.set(yticks=[], ylim=(-1, 1))
        ax.margins(x=0.15)
        ax.locator_params(axis="x", nbins=4)
        ax.spines["left"].set_visible(False)

    style = {"titles": "", "width": "column", "height": 0.6 + 0.42 * len(table)}
    fig, _ = base.facets(shown, draw, row="statistic", sharex=False, **style)
    fig.supxlabel("statistic of the scores on [0, 1]", fontsize=8)
    base.legend(fig, {"model, 90 %": (BLUE, "-"), "observed": (BLACK, "x")}, loc="upper center")
    return fig
