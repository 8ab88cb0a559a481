"""Figures of item response models: results in, matplotlib figures out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragkit.irt.result import IRTResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Z90 = 1.6448536269514722
_COLUMN, _PAGE = 3.3, 6.9  # inches
_MARKERS = "osD^vPX"
_HARDER = "difficulty (harder →)"


def joint(result: IRTResult) -> Figure:
    """Draw difficulty against discrimination, with both distributions (the paper's Figure 1).

    A cross in the corner is the median 90 % interval of an item. Flagged items are open.
    """
    import matplotlib.pyplot as plt

    items = result.items
    signed = result.info["disc"] == "signed"
    fig, axes = plt.subplots(
        2,
        2,
        figsize=(_COLUMN, _COLUMN),
        width_ratios=[4, 1],
        height_ratios=[1, 4],
        sharex="col",
        sharey="row",
    )
    ax = axes[1, 0]
    disc = items["disc"] if signed else items["log_disc"]
    error = items["se_disc"] if signed else items["se_log_disc"]
    flagged = items["flags"] != ""
    small = 10 if len(items) < 300 else 4
    for mask, style in ((~flagged, {"c": "C0"}), (flagged, {"facecolors": "none", "ec": "C1"})):
        label = "flagged" if style.get("ec") else "item"
        ax.scatter(
            items["diff"][mask],
            disc[mask],
            s=small,
            lw=0.6,
            alpha=0.8,
            label=label,
            rasterized=True,
            **style,
        )
    half = _Z90 * items["se_diff"].median(), _Z90 * error.median()
    x, y = items["diff"].quantile(0.995), disc.max() + 1.15 * half[1]
    ax.errorbar(x - half[0], y, xerr=half[0], yerr=half[1], color="black", lw=0.8)
    ax.annotate(
        "median 90 %\ninterval",
        (x - half[0], y),
        xytext=(-6, 3),
        textcoords="offset points",
        ha="right",
        fontsize=6,
    )
    ax.set_xlabel(_HARDER)
    ax.set_ylabel("discrimination" if signed else "log discrimination")
    if flagged.any():
        ax.legend(loc="best", fontsize=6)
    axes[0, 0].hist(items["diff"], bins=30, color="C0")
    axes[1, 1].hist(disc, bins=30, color="C0", orientation="horizontal")
    axes[0, 0].set_ylabel("items")
    axes[1, 1].set_xlabel("items")
    axes[0, 1].axis("off")
    return fig


def abilities(result: IRTResult, *, most: int = 40) -> Figure:
    """Draw subjects in the order of ability with 90 % intervals; at most `most`, evenly chosen."""
    import matplotlib.pyplot as plt

    ordered = result.subjects.sort_values("theta")
    if len(ordered) > most:
        ordered = ordered.iloc[np.linspace(0, len(ordered) - 1, most).round().astype(int)]
    fig, ax = plt.subplots(figsize=(_COLUMN, 2.4))
    places = np.arange(len(ordered))
    ax.errorbar(places, ordered["theta"], _Z90 * ordered["se_theta"], fmt="o", ms=2.5, lw=0.8)
    ax.set_xlabel("subjects, in order of ability")
    ax.set_ylabel("ability (better →), 90 %")
    ax.set_xticks([])
    return fig


def side_by_side(results: Mapping[str, IRTResult]) -> Figure:
    """Draw the first fit's difficulty and ability against every other's."""
    import matplotlib.pyplot as plt

    names = list(results)
    first, others = results[names[0]], names[1:]
    fig, axes = plt.subplots(
        2, len(others), figsize=(min(_PAGE, 1.75 * max(2, len(others))), 3.4), squeeze=False
    )
    for column, name in enumerate(others):
        for row, (kind, parameter) in enumerate((("items", "diff"), ("subjects", "theta"))):
            ax = axes[row, column]
            one, two = getattr(first, kind)[parameter], getattr(results[name], kind)[parameter]
            shared = one.index.intersection(two.index)
            ends = [min(one.min(), two.min()), max(one.max(), two.max())]
            ax.plot(ends, ends, color="0.7", lw=0.8)
            ax.plot(one[shared], two[shared], ".", ms=3, rasterized=True)
            ax.set_title(f"{name}: r = {np.corrcoef(one[shared], two[shared])[0, 1]:.3f}", size=7)
            ax.set_xlabel(f"{'difficulty' if row == 0 else 'ability'}, {names[0]}")
            if column == 0:
                ax.set_ylabel("difficulty" if row == 0 else "ability")
    return fig


def over_bins(scores: pd.DataFrame, bins: pd.Series, *, systems: list[str], label: str) -> Figure:
    """Draw systems' mean scores over bins of difficulty, with 90 % intervals (Figures 2 and 3).

    Parameters
    ----------
    scores : pandas.DataFrame
        Long.
    bins : pandas.Series of categories
        Indexed by item, easy to hard or hard to easy.
    systems : list of subject ids
    label : str
        Of the score, with direction.
    """
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(_COLUMN, 2.6))
    levels = list(bins.cat.categories)
    part = scores.assign(bin=scores["item_id"].map(bins))
    shift = np.linspace(-0.25, 0.25, len(systems)) if len(systems) > 1 else [0.0]
    for k, system in enumerate(systems):
        own = part[part["subject_id"] == system].groupby("bin", observed=False)["score"]
        mean, error = own.mean().reindex(levels), own.sem().reindex(levels)
        ax.errorbar(
            np.arange(len(levels)) + shift[k],
            mean,
            _Z90 * error,
            fmt=_MARKERS[k % len(_MARKERS)],
            color=f"C{k % 7}",
            ms=3,
            lw=0.8,
            label=str(k + 1),
        )
    ax.set_xticks(range(len(levels)), levels)
    ax.set_xlabel("quartile of difficulty")
    ax.set_ylabel(label)
    ax.legend(
        title="system, by rank",
        ncols=len(systems),
        fontsize=6,
        title_fontsize=6,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
    )
    return fig


def boxes(diff: pd.Series, categories: pd.DataFrame) -> Figure:
    """Draw box plots of difficulty over categorizations, with counts (the paper's Figure 4)."""
    import matplotlib.pyplot as plt

    names = list(categories.columns)
    rows = int(np.ceil(len(names) / 2))
    fig, axes = plt.subplots(
        rows, 2, figsize=(_PAGE, 1.35 * rows + 0.3), sharex=True, squeeze=False
    )
    for ax, name in zip(axes.flat, names, strict=False):
        groups = diff.groupby(categories[name])
        order = groups.median().sort_values().index
        ax.boxplot(
            [groups.get_group(level) for level in order],
            orientation="horizontal",
            widths=0.6,
            flierprops={"ms": 2},
            medianprops={"color": "C1", "lw": 1.5},
        )
        labels = [f"{str(level).replace('_', ' ')} ({groups.size()[level]})" for level in order]
        ax.set_yticks(range(1, len(order) + 1), labels, size=6)
        ax.set_title(name.replace("_", " "), size=7)
    for ax in axes[-1]:
        ax.set_xlabel(_HARDER)
    for ax in axes.flat[len(names) :]:
        ax.axis("off")
    return fig


def information(results: Mapping[str, IRTResult]) -> Figure:
    """Draw the error of an ability measured by each test, and where its items lie."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(_COLUMN, 2.3))
    for k, (name, result) in enumerate(results.items()):
        total = result.information().sum(axis=1)
        ax.plot(total.index, total**-0.5, "-" if k % 2 == 0 else "--", label=name)
    ax.set_xlabel("ability (better →)")
    ax.set_ylabel("standard error of ability\n(lower is better)")
    ax.set_ylim(0)
    ax.legend(fontsize=6)
    return fig


def coverage(table: pd.DataFrame) -> Figure:
    """Draw recovery: correlation and coverage of 90 % intervals per parameter over simulations."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(_COLUMN, 2.0), sharey=True)
    names = list(dict.fromkeys(table["parameter"]))
    for ax, column, label in zip(
        axes,
        ("r", "coverage"),
        ("correlation\nwith the truth →", "90 % intervals\nthat cover"),
        strict=True,
    ):
        for place, name in enumerate(names):
            values = table.loc[table["parameter"] == name, column]
            ax.plot(values, np.full(len(values), place), "o", ms=3, alpha=0.6, color="C0")
            ax.plot(values.mean(), place, "|", ms=12, color="C1")
        ax.set_xlabel(label)
    axes[1].axvspan(0.85, 0.95, color="0.9", zorder=0)
    axes[0].set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    axes[0].set_ylim(-0.5, len(names) - 0.5)
    return fig


def readings(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Draw how much better than the first reading the others foretell unseen scores.

    Parameters
    ----------
    tables : mapping of a matrix's name to the table of `compare_readings`
        Mean changes in per cent of the first reading's value, with 90 % intervals.
    """
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(_COLUMN, 2.2), sharey=True)
    first = next(iter(tables.values()))
    names = list(first.index)
    base = names[1]
    shift = np.linspace(-0.15, 0.15, len(tables)) if len(tables) > 1 else [0.0]
    for ax, short, label in zip(axes, ("mse", "crps"), ("squared error", "CRPS"), strict=True):
        for k, (matrix, table) in enumerate(tables.items()):
            unit = table.loc[base, "rmse"] ** 2 if short == "mse" else table.loc[base, "crps"]
            change, error = (
                100 * table[f"{kind}{short}_difference"].reindex(names) / unit
                for kind in ("", "se_")
            )
            places = np.arange(len(names))[::-1] + shift[k]
            style = {"fmt": _MARKERS[k], "ms": 3, "lw": 0.8, "color": f"C{k}", "label": matrix}
            ax.errorbar(change, places, xerr=_Z90 * error, **style)
        ax.axvline(0, color="0.7", lw=0.8, zorder=0)
        ax.set_xlabel(f"{label},\n% change (← better)")
    axes[0].set_yticks(np.arange(len(names))[::-1], [name.replace(" ", "\n", 1) for name in names])
    axes[0].legend(fontsize=6, loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=len(tables))
    return fig


def checks(table: pd.DataFrame) -> Figure:
    """Draw a posterior predictive check: observed statistics beside the model's 90 % range."""
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(_COLUMN, 2.2))
    places = np.arange(len(table))[::-1]
    ax.hlines(places, table["low"], table["high"], color="C0", lw=4, alpha=0.5, label="model, 90 %")
    ax.plot(table["observed"], places, "x", color="black", label="observed")
    ax.set_yticks(places, table.index.str.replace("_", " "))
    ax.set_xlabel("statistic of the scores on [0, 1]")
    ax.legend(fontsize=6)
    return fig
