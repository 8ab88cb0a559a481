"""Item response models: results in, one figure out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ragkit.irt.result import IRTResult
from ragkit.report.figures import BLACK, BLUE, SPARE, VERMILION
from ragkit.report.plots.base import HARDER, axes, dots, facets, legend, lines, words
from ragkit.report.plots.questions import columns_of

_Z90 = 1.6448536269514722


def joint(result: IRTResult) -> Figure:
    """Draw difficulty against discrimination, with both distributions (LiveRAG, Figure 1).

    The cross in the corner is the median 90 % interval of an item. Flagged items are open.
    """
    items, signed = result.items, result.info["disc"] == "signed"
    disc, error = ("disc", "se_disc") if signed else ("log_disc", "se_log_disc")
    flagged = items["flag"] != ""
    fig, ((top, none), (ax, side)) = axes(
        "column", 3.3, 2, 2, width_ratios=[4, 1], height_ratios=[1, 4], sharex="col", sharey="row"
    )
    style = {"s": 14 if len(items) < 300 else 6, "rasterized": True, "ax": ax, "alpha": 0.8}
    sns.scatterplot(items[~flagged], x="diff", y=disc, color=BLUE, linewidth=0, **style)
    sns.scatterplot(
        items[flagged], x="diff", y=disc, facecolor="none", edgecolor=VERMILION, linewidth=0.6, **style
    )  # fmt: skip
    half = _Z90 * items["se_diff"].median(), _Z90 * items[error].median()
    x, y = items["diff"].max(), items[disc].max() + 1.2 * half[1]
    ax.errorbar(x - half[0], y, xerr=half[0], yerr=half[1], color=BLACK, lw=0.8)
    ax.set(xlabel=HARDER, ylabel="discrimination" if signed else "log discrimination")
    sns.histplot(items, x="diff", bins=30, color=BLUE, linewidth=0, alpha=1, ax=top)
    sns.histplot(items, y=disc, bins=30, color=BLUE, linewidth=0, alpha=1, ax=side)
    top.set_ylabel("items")
    side.set_xlabel("items")
    none.axis("off")
    marks = {"item": (BLUE, "o")} | ({"flagged": (VERMILION, "open o")} if flagged.any() else {})
    legend(fig, marks | {"median 90 % interval": (BLACK, "+")}, loc="upper center")
    return fig


def abilities(result: IRTResult, *, most: int = 40) -> Figure:
    """Draw subjects in the order of ability with 90 % intervals; at most `most`, evenly chosen."""
    ordered = result.subjects.sort_values("theta")
    if len(ordered) > most:
        ordered = ordered.iloc[np.linspace(0, len(ordered) - 1, most).round().astype(int)]
    half = _Z90 * ordered["se_theta"]
    shown = ordered.assign(low=ordered["theta"] - half, high=ordered["theta"] + half)
    shown["place"] = range(len(shown))
    fig, ax = axes("column", 2.4)
    dots(ax, shown, "place", value="theta", orient="v", markersize=3)
    ax.set(xlabel="subjects, in order of ability", ylabel="ability (better →), 90 % interval", xticks=[])  # fmt: skip
    return fig


def side_by_side(results: Mapping[str, IRTResult]) -> Figure:
    """Draw the first fit's difficulty and ability against every other's."""
    (name, first), *others = results.items()
    tables = {"difficulty": ("items", "diff"), "ability": ("subjects", "theta")}
    parts = {}
    for kind, (table, parameter) in tables.items():
        for other, result in others:
            pair = getattr(first, table)[parameter], getattr(result, table)[parameter]
            parts[kind, other] = pd.concat(pair, axis=1, join="inner", keys=["one", "two"])

    def draw(ax, rows):
        ends = [rows[["one", "two"]].min(axis=None), rows[["one", "two"]].max(axis=None)]
        ax.plot(ends, ends, color="0.7", lw=0.8)
        ax.plot(rows["one"], rows["two"], ".", color=BLUE, ms=3, rasterized=True)

    long = pd.concat(parts, names=["kind", "other"]).reset_index(["kind", "other"])
    fig, panels = facets(
        long, draw, row="kind", col="other", sharex=False, sharey=False, titles="", height=3.4,
        width="page" if len(others) > 1 else "column",
    )  # fmt: skip
    for (kind, other), ax in panels.items():
        r = np.corrcoef(parts[kind, other].to_numpy().T)[0, 1]
        ax.set_title(f"r = {r:.3f}", fontsize=7, fontweight="normal")
        ax.set(xlabel=f"{kind}, {name}", ylabel=f"{kind}, {other}")
    return fig


def over_bins(scores: pd.DataFrame, bins: pd.Series, *, systems: list[str], label: str) -> Figure:
    """Draw systems' mean scores over bins of difficulty, with 90 % intervals (Figures 2 and 3).

    `scores`: subject_id, item_id, score. `bins` are categories from easy to hard, indexed by item;
    `systems` the subjects to draw, best first.
    """
    own = scores[scores["subject_id"].isin(systems)].assign(bin=scores["item_id"].map(bins))
    found = own.groupby(["subject_id", "bin"], observed=True)["score"].agg(["mean", "sem"])
    found = found.reset_index().rename(columns={"mean": "value"})
    for end, sign in (("low", -1), ("high", 1)):
        found[end] = found["value"] + sign * _Z90 * found["sem"]
    marks = dict(zip(systems, SPARE[3:], strict=False))
    fig, ax = axes("column", 2.6)
    dots(ax, found, "bin", hue="subject_id", marks=marks, order=bins.cat.categories, orient="v")
    ax.set(xlabel="quartile of difficulty (harder →)", ylabel=label)
    ranks = {str(n): found for n, found in enumerate(marks.values(), start=1)}
    legend(fig, ranks, loc="upper center", title="system, by rank", title_fontsize=7)
    return fig


def boxes(diff: pd.Series, categories: pd.DataFrame) -> Figure:
    """Draw the difficulty of each category, with its number of items (LiveRAG, Figure 4)."""
    counts = {name: categories[name].nunique() for name in categories}
    fig, panels = columns_of(counts, HARDER)
    for name, ax in panels.items():
        rows = pd.DataFrame({"diff": diff, "kind": categories[name].astype(str)})
        groups, below = rows.groupby("kind")["diff"], ax.get_xlabel()
        order = groups.median().sort_values(ascending=False).index
        sns.boxplot(
            rows, x="diff", y="kind", order=order, color="white", linecolor=BLUE, linewidth=0.8, width=0.6,
            fliersize=2, medianprops={"color": VERMILION, "linewidth": 1.5}, ax=ax,
        )  # fmt: skip
        labels = [f"{words(kind)} ({groups.size()[kind]})" for kind in order]
        ax.set_yticks(range(len(order)), labels, fontsize=7)
        ax.tick_params(axis="y", length=0)
        ax.set(xlabel=below, ylabel="")
        ax.set_title(words(name), pad=3)
    return fig


def information(results: Mapping[str, IRTResult]) -> Figure:
    """Draw the error of an ability measured by each test, along the scale of ability."""
    curves = {name: result.information().sum(axis=1) ** -0.5 for name, result in results.items()}
    fig, ax = axes("column", 2.3)
    for (name, curve), (paint, _), line in zip(
        curves.items(), SPARE[3:], ("-", "--", ":"), strict=False
    ):
        sns.lineplot(x=curve.index, y=curve, color=paint, linestyle=line, label=name, legend=False, ax=ax)  # fmt: skip
    ax.set(xlabel="ability (better →)", ylabel="standard error of ability\n(lower is better)")
    ax.set_ylim(0)
    fig.legend(loc="outside upper center", ncols=len(curves))
    return fig


def coverage(table: pd.DataFrame) -> Figure:
    """Draw recovery: correlation and coverage of 90 % intervals per parameter over simulations."""
    fig, panels = axes("column", 2.0, 1, 2, sharey=True)
    labels = {"r": "correlation\nwith the truth →", "coverage": "90 % intervals\nthat cover"}
    shown = table.assign(parameter=table["parameter"].map(words))
    for ax, (column, label) in zip(panels, labels.items(), strict=True):
        sns.stripplot(
            shown, x=column, y="parameter", jitter=False, color=BLUE, size=4, alpha=0.5, ax=ax
        )
        means = shown.groupby("parameter", sort=False)[column].mean().reset_index()
        style = {"color": VERMILION, "markers": "|", "markersize": 12, "markeredgewidth": 1.2}
        dots(ax, means, "parameter", value=column, **style)
        ax.set_xlabel(label)
    panels[1].axvspan(0.85, 0.95, color="0.9", zorder=0)
    legend(fig, {"a simulation": (BLUE, "o"), "mean": (VERMILION, "|")}, loc="upper center")
    return fig


def likelihoods(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw how much better than another likelihood each predicts unseen scores.

    `tables` maps the name of a matrix to the table that compares likelihoods; drawn are the mean
    changes in per cent of its second row's error, with 90 % intervals.
    """
    rows = []
    for matrix, table in tables.items():
        base = table.iloc[1]
        units = {"squared error": ("mse", base["rmse"] ** 2), "CRPS": ("crps", base["crps"])}
        for label, (short, unit) in units.items():
            change = 100 * table[f"{short}_difference"] / unit
            half = _Z90 * 100 * table[f"se_{short}_difference"] / unit
            part = pd.DataFrame({"value": change, "low": change - half, "high": change + half})
            names = [str(name).replace(" ", "\n", 1) for name in table.index]
            rows.append(part.assign(likelihood=names, error=label, matrix=matrix))
    marks = dict(zip(tables, SPARE[3:], strict=False))

    def draw(ax, part):
        ax.axvline(0, color="0.7", lw=0.8, zorder=0)
        dots(ax, part, "likelihood", hue="matrix", marks=marks, order=names)
        ax.set_xlabel(f"{part['error'].iloc[0]},\n% change (← better)")

    fig, _ = facets(
        pd.concat(rows), draw, col="error", sharex=False, titles="", width="column", height=2.3
    )
    legend(fig, marks, loc="upper center")
    return fig


def checks(table: pd.DataFrame) -> Figure:
    """Draw a posterior predictive check: observed statistics, and the model's 90 % range."""
    shown = table.assign(statistic=[words(name) for name in table.index])
    fig, ax = axes("column", 2.2)
    style = {"markers": "", "err_kws": {"linewidth": 4, "alpha": 0.5}}
    dots(ax, shown.assign(value=shown["mean"]), "statistic", **style)
    observed = shown.drop(columns=["low", "high"])
    dots(ax, observed, "statistic", value="observed", color=BLACK, markers="x", markersize=5)
    ax.set_xlabel("statistic of the scores on [0, 1]")
    legend(fig, {"model, 90 %": (BLUE, "-"), "observed": (BLACK, "x")}, loc="upper center")
    return fig


def short_forms(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw the error and the order of systems estimated from a few items, by way to choose them."""
    marks = dict(zip(table["method"].unique(), SPARE, strict=False))
    fig, panels = axes("page", 2.4, 1, 2)
    ends = {"mae": f"mean absolute error of {label}\n(← lower is better)", "tau": "Kendall's τ with\nthe full score (higher →)"}  # fmt: skip
    for ax, (column, text) in zip(panels, ends.items(), strict=True):
        lines(ax, table, "size", column, "method", marks)
        ax.set(xlabel="number of questions", ylabel=text, xticks=sorted(table["size"].unique()))
    legend(fig, marks, loc="upper center")
    return fig
