"""Benchmarks: what is at hand, and what they consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ragkit.report.figures import BLACK, BLUE, GREEN, GREY, MARKS, VERMILION
from ragkit.report.plots.base import axes, below, dots, legend, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def rows_at_hand(overview: pd.DataFrame, *, label: str) -> Figure:
    """Draw how many documents, questions and scores of each dataset are at hand.

    `overview` is the result of `ragkit.datasets.overview`, `label` the profile.
    """
    kinds = {"documents": (BLUE, "s"), "questions": (VERMILION, "o"), "scores": (GREEN, "^")}
    shown = overview[(overview["state"] != "missing") & overview[list(kinds)].notna().any(axis=1)]
    long = shown.melt("dataset", list(kinds), "kind")
    fig, ax = axes("column", 0.8 + 0.19 * len(shown))
    dots(ax, long, "dataset", hue="kind", marks=kinds, order=shown["dataset"], dodge=0.001)
    ax.set_xscale("log")
    ax.set_xlim(10, 3 * long["value"].max())
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.set_xlabel(f"rows at hand, profile {label} (log scale)")
    legend(fig, kinds)
    return fig


def token_lengths(
    questions: pd.DataFrame, printed: pd.DataFrame, *, unit: str, label: str = ""
) -> Figure:
    """Draw the lengths of questions and answers by set, with the printed medians.

    `questions` has the columns type, text and answer; `printed` is WixQA's Table 2, `unit` one of
    `ragkit.text.UNITS`; `label` says what was measured in place of the official questions.
    """
    import seaborn as sns

    from ragkit import text

    kinds = list(dict.fromkeys(questions["type"]))
    fig, panels = axes("column", 1.1 + 0.36 * len(kinds), 1, 2, sharey=True)
    for ax, part in zip(panels, ("question", "answer"), strict=True):
        own = questions.dropna(subset="text" if part == "question" else part)
        own = own.assign(tokens=text.lengths(own["text" if part == "question" else part], unit))
        sns.boxplot(
            own, x="tokens", y="type", order=kinds, color="white", width=0.5, showfliers=False, ax=ax,
            linecolor=BLUE, medianprops={"linewidth": 2},
        )  # fmt: skip
        given = printed[(printed["column"] == f"{part}_tokens") & printed["row"].isin(kinds)]
        dots(ax, given, "row", order=kinds, color=BLACK, markers="x", markersize=5, zorder=5)
        ax.set_xlabel(f"{part}s (tokens)")
        ax.set_xlim(0)
    if label:
        below(fig, f"measured: {_short(label)}")
    legend(fig, {"quartiles and median": (BLUE, "-"), "printed median": MARKS["printed"]})
    return fig


def article_types(percent: pd.Series, printed: pd.DataFrame, *, label: str = "") -> Figure:
    """Draw the measured share (0 to 100) of each article type and the printed one.

    `percent` is indexed by type; `printed` is WixQA's section 3.1; `label` says what was measured
    in place of the official articles.
    """
    shares = printed[printed["column"] == "share"].set_index("row")["value"]
    both = pd.DataFrame({"measured": percent.reindex(shares.index).fillna(0), "printed": shares})
    long = both.rename_axis("type").reset_index().melt("type", var_name="number")
    fig, ax = axes("column", 1.5)
    long["type"] = long["type"].map(words)
    dots(ax, long, "type", hue="number", markersize=5, dodge=0.3)
    ax.set_xlim(-3, 1.15 * long["value"].max())
    below(fig, "share of the articles (%)", f"measured: {_short(label)}" if label else "")
    legend(fig, {name: MARKS[name] for name in ("measured", "printed")})
    return fig


def coverage(comparison: pd.DataFrame, *, order: list[str]) -> Figure:
    """Draw EnterpriseRAG-Bench's Table 10 as measured; cells that differ show the printed number.

    `comparison` is the result of `ragkit.report.tables.compare` on that table.
    """
    import matplotlib.pyplot as plt
    import seaborn as sns

    cells = comparison[comparison["column"] != "questions"]
    rows = [kind for kind in order if kind in set(cells["row"])]
    off = cells["status"].isin(["close", "differs"])
    text = cells["measured"].map("{:.0f}".format).where(cells["measured"].notna(), "")
    cells = cells.assign(off=off, text=text + (" (" + cells["printed"] + ")").where(off, ""))
    grid, texts, frames = (
        cells.pivot(index="row", columns="column", values=name).loc[rows]
        for name in ("measured", "text", "off")
    )
    fig, ax = axes("page", 2.9)
    sns.heatmap(
        grid, annot=texts, fmt="", cmap="Blues", vmin=0, ax=ax, annot_kws={"size": 6.5},
        cbar_kws={"label": "questions with the source", "shrink": 0.8},
    )  # fmt: skip
    for i, j in zip(*frames.to_numpy(dtype=bool).nonzero(), strict=True):
        ax.add_patch(plt.Rectangle((j + 0.02, i + 0.04), 0.96, 0.92, fill=False, ec=VERMILION))
    ax.set_xticks(ax.get_xticks(), [words(name, 10) for name in grid.columns], rotation=0)
    ax.set_yticks(ax.get_yticks(), [words(name) for name in rows], rotation=0)
    ax.set(xlabel="", ylabel="")
    ax.tick_params(length=0)
    if off.any():
        ax.set_title("framed: measured (printed)", fontsize=7, fontweight="normal", loc="right")
    return fig


def question_types(questions: pd.DataFrame, printed: pd.DataFrame) -> Figure:
    """Draw, by type of question, how many there are and how long they are.

    `questions` has the columns type and text; `printed` is EnterpriseRAG-Bench's Table 2.
    """
    import seaborn as sns

    counts = questions["type"].value_counts(sort=False)
    both = pd.DataFrame({"measured": counts, "printed": printed.set_index("row")["value"]})
    long = both.loc[counts.index].rename_axis("type").reset_index().melt("type", var_name="number")
    long["type"] = long["type"].map(words)
    lengths = questions.assign(words=questions["text"].str.split().str.len())
    lengths["type"] = lengths["type"].map(words)
    order = [words(kind) for kind in counts.index]
    fig, (left, right) = axes("page", 2.6, 1, 2, sharey=True, width_ratios=[1, 1.2])
    dots(left, long, "type", hue="number", order=order, dodge=0.001)
    left.set_xlabel("questions")
    left.set_xlim(0)
    sns.boxplot(
        lengths, x="words", y="type", order=order, color="white", width=0.55, linecolor=GREY, ax=right,
        fliersize=2, medianprops={"color": BLUE, "linewidth": 1.6},
    )  # fmt: skip
    right.set(xlabel="words in a question", ylabel="")
    right.set_xlim(0)
    legend(fig, {name: MARKS[name] for name in ("measured", "printed")})
    return fig


def _short(label: str) -> str:
    """Return a label without file names, which are too long for a column."""
    return "; ".join(part.split(".jsonl ")[-1] for part in label.split("; "))
