"""Benchmarks: what is at hand, and what they consist of."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ragkit.report.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    MARKS,
    NAMES,
    ORANGE,
    SKY,
    VERMILION,
    YELLOW,
)
from ragkit.report.plots.base import axes, below, column, dots, legend, words
from ragkit.report.tables import title


def rows_at_hand(overview: pd.DataFrame, *, label: str) -> Figure:
    """Draw how many documents, questions and scores of each dataset are at hand.

    `overview` is the result of `ragkit.datasets.overview`, `label` the profile.
    """
    kinds = {"documents": (BLUE, "s"), "questions": (VERMILION, "o"), "scores": (GREEN, "^")}
    shown = overview[(overview["state"] != "missing") & overview[list(kinds)].notna().any(axis=1)]
    long = shown.melt("dataset", list(kinds), "kind")
    style = {"hue": "kind", "marks": kinds, "order": shown["dataset"], "dodge": 0.001}
    fig, ax = column(long, "dataset", 0.8 + 0.19 * len(shown), **style)
    ax.set(xscale="log", xlim=(10, 3 * long["value"].max()))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.set_xlabel(f"rows at hand, profile {label} (log scale)")
    return fig


def token_lengths(
    questions: pd.DataFrame, printed: pd.DataFrame, *, unit: str, label: str = ""
) -> Figure:
    """Draw the lengths of questions and answers by set, with the printed medians.

    `questions` has the columns type, text and answer; `printed` is WixQA's Table 2, `unit` one of
    `ragkit.text.UNITS`; `label` says what was measured in place of the official questions.
    """
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
    long = both.rename(words).rename_axis("type").reset_index().melt("type", var_name="number")
    notes = "share of the articles (%)", f"measured: {_short(label)}" if label else ""
    marks = {name: MARKS[name] for name in ("measured", "printed")}
    fig, ax = column(long, "type", 1.5, *notes, hue="number", marks=marks, markersize=5, dodge=0.3)
    ax.set_xlim(-3, 1.15 * long["value"].max())
    return fig


def coverage(comparison: pd.DataFrame, *, order: list[str]) -> Figure:
    """Draw EnterpriseRAG-Bench's Table 10 as measured; cells that differ show the printed number.

    `comparison` is the result of `ragkit.report.tables.compare` on that table.
    """
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


def volumes(sizes: pd.DataFrame, printed: pd.DataFrame, *, label: str = "generated") -> Figure:
    """Draw each source's share of the documents and their lengths, and the printed ones.

    `sizes` is the result of `ragkit.measures.describe.composition`; `printed` is
    EnterpriseRAG-Bench's Table 9; `label` names what was measured.
    """
    from matplotlib.ticker import MultipleLocator

    given = printed.pivot(index="row", columns="column", values="value").drop(index="total")
    given = given.loc[given.index.isin(sizes.index)].sort_values("documents", ascending=False)
    parts = {label: sizes.loc[given.index], "printed": given}
    long = pd.concat(parts, names=["number", "source"]).reset_index()
    long["share"] = 100 * long["documents"] / long.groupby("number")["documents"].transform("sum")
    long["source"] = long["source"].map(words)
    marks = {label: (BLUE, "o"), "printed": (BLACK, "x")}
    fig, (left, right) = axes("page", 2.7, 1, 2, sharey=True)
    dots(left, long, "source", value="share", hue="number", marks=marks)
    left.set_xscale("log")
    left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.set_xlabel("share of the documents (%, log scale)")
    ends = long.assign(low=long["median"], high=long["p95"])
    dots(right, ends, "source", value="median", hue="number", marks=marks)
    right.set_xlim(left=0)
    right.xaxis.set_major_locator(MultipleLocator(4000))
    right.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    right.set_xlabel("characters: median, line to 95 % quantile")
    legend(fig, marks)
    return fig


def misfiled(moves: pd.DataFrame, documents: pd.Series, printed: pd.Series) -> Figure:
    """Draw the share of each source's documents that lie in a wrong place.

    `moves` counts by source (the index) those moved at `random` and to a `plausible` place;
    `documents` counts all; `printed` are the shares (%) of the two kinds, in this order.
    """
    marks = {"anywhere": (BLUE, "o"), "nearby": (ORANGE, "v")}
    share = 100 * moves[["random", "plausible"]].div(documents.reindex(moves.index), axis=0)
    share = share.set_axis(list(marks), axis=1)
    share = share.loc[documents.reindex(moves.index).sort_values(ascending=False).index]
    share.index = [f"{words(name)} ({documents[name]:,.0f})" for name in share.index]
    long = share.rename_axis("source").reset_index().melt("source", var_name="kind")
    fig, ax = column(long, "source", 2.5, hue="kind", marks=marks, dodge=0.001)
    for (paint, _), at in zip(marks.values(), printed, strict=True):
        ax.axvline(at, color=paint, linewidth=0.8, linestyle="--", zorder=1.9)
    ax.set_xlim(left=0)
    ax.set_xlabel("misfiled documents (%); dashed: printed")
    return fig


STATUS_MARKS = {
    "match": (GREEN, "o"),
    "close": (YELLOW, "s"),
    "differs": (VERMILION, "D"),
    "substitute": (SKY, "^"),
    "not run": ("#cccccc", "s"),
    "not available": ("#888888", "s"),
}


def statuses(counts: pd.DataFrame) -> Figure:
    """Draw how many printed numbers of each paper have each status (`tables.counts`)."""
    papers = counts.drop(index="all")
    shown = papers[list(STATUS_MARKS)].rename(index=NAMES).iloc[::-1]
    fig, ax = axes("page", 1.7)
    paints = [paint for paint, _ in STATUS_MARKS.values()]
    shown.plot.barh(stacked=True, color=paints, width=0.75, legend=False, ax=ax)
    for bars, status in zip(ax.containers, shown, strict=True):
        wide = shown[status] > 0.03 * papers["numbers"].max()
        labels = shown[status].astype(str).where(wide, "")
        ax.bar_label(bars, labels, label_type="center", fontsize=7)
    ax.set(xlabel="printed numbers", ylabel="")
    marks = {f"{status} ({counts.loc['all', status]})": (STATUS_MARKS[status][0], "s") for status in shown}  # fmt: skip
    legend(fig, marks, loc="upper center")
    return fig


def differences(shown: pd.DataFrame) -> Figure:
    """Draw how far measured numbers lie from printed ones, by table.

    `shown` are rows of a scoreboard; those without a measured number are left out.
    """
    rows = shown.dropna(subset=["measured", "value"])
    most = np.maximum(rows["measured"].abs(), rows["value"].abs())
    rows = rows.assign(
        percent=(100 * (rows["measured"] - rows["value"]) / most).fillna(0),
        place=[title(*key) for key in zip(rows["paper"], rows["table"], strict=True)],
    )
    states = [status for status in STATUS_MARKS if status in set(rows["status"])]
    places = list(dict.fromkeys(rows["place"]))
    fig, ax = axes("page", 0.9 + 0.24 * len(places))
    for status in reversed(states):
        paint, shape = STATUS_MARKS[status]
        sns.stripplot(
            rows[rows["status"] == status], x="percent", y="place", order=places, color=paint,
            marker=shape, jitter=False, size=4.5, linewidth=0.3, edgecolor=BLACK, alpha=0.8, ax=ax,
        )  # fmt: skip
    ends = [-100, -10, -1, 0, 1, 10, 100]
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xticks(ends, [f"{end:+g}" if end else "0" for end in ends])
    ax.set_xlim(-260, 260)
    ax.axvline(0, color=BLACK, linewidth=0.6, zorder=0)
    for place in range(1, len(places), 2):
        ax.axhspan(place - 0.5, place + 0.5, color="0.96", zorder=-1, linewidth=0)
    ax.set(xlabel="measured less printed (% of the larger; log scale beyond 1 %)", ylabel="")
    ax.tick_params(axis="y", length=0)
    legend(fig, {status: STATUS_MARKS[status] for status in states})
    return fig
