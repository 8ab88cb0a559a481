"""What is at hand, and what the benchmarks consist of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.report.figures import BLACK, BLUE, GREEN, GREY, VERMILION, colour, size
from ragkit.report.plots.marks import measured_on

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def rows_at_hand(overview: pd.DataFrame, *, label: str) -> Figure:
    """Draw how many documents, questions and scores of each data set are at hand.

    Parameters
    ----------
    overview : DataFrame
        The result of `ragkit.datasets.overview`.
    label : str
        The profile, for the axis.
    """
    import matplotlib.pyplot as plt

    shown = overview[overview["state"] != "missing"].iloc[::-1]
    places = np.arange(len(shown))
    fig, ax = plt.subplots(figsize=size("column", 0.8 + 0.19 * len(shown)))
    kinds = {"documents": (BLUE, "s"), "questions": (VERMILION, "o"), "scores": (GREEN, "^")}
    for kind, (paint, shape) in kinds.items():
        if shown[kind].notna().any():
            ax.plot(shown[kind], places, shape, color=paint, label=kind)
    ax.set_xscale("log")
    ax.set_xlim(10, 3 * shown[list(kinds)].max(axis=None))
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.set_yticks(places, shown["dataset"])
    ax.set_ylim(-0.6, len(shown) - 0.4)
    ax.grid(axis="x")
    ax.set_xlabel(f"rows at hand, profile {label} (log scale)")
    fig.legend(loc="outside upper right", ncols=3)
    return fig


def token_lengths(
    questions: pd.DataFrame, printed: pd.DataFrame, *, unit: str, label: str = ""
) -> Figure:
    """Draw the lengths of questions and answers by set, the printed medians beside them.

    Parameters
    ----------
    questions : DataFrame
        With type, text and answer.
    printed : DataFrame
        The reported numbers of WixQA's Table 2.
    unit : str
        See `ragkit.text.UNITS`.
    label : str
        What was measured in place of the official questions, if anything.
    """
    import matplotlib.pyplot as plt

    from ragkit import text

    kinds = list(dict.fromkeys(questions["type"]))
    fig, axes = plt.subplots(1, 2, sharey=True, figsize=size("column", 0.9 + 0.42 * len(kinds)))
    values = printed.set_index(["row", "column"])["value"]
    parts = {"text": ("questions", "question_tokens"), "answer": ("answers", "answer_tokens")}
    for ax, (column, (name, key)) in zip(axes, parts.items(), strict=True):
        for place, kind in enumerate(reversed(kinds)):
            own = questions.loc[questions["type"] == kind, column].dropna()
            ax.boxplot(
                text.lengths(own, unit),
                positions=[place],
                orientation="horizontal",
                widths=0.5,
                showfliers=False,
                medianprops={"color": colour(kind), "linewidth": 2},
            )
            ax.plot(values[kind, key], place, "x", color=BLACK, markersize=5, zorder=5)
        ax.set_xlabel(f"{name} (tokens)")
        ax.set_xlim(0)
    if label:
        fig.supxlabel(measured_on(label).strip(), fontsize=8)
    axes[0].set_yticks(range(len(kinds)), list(reversed(kinds)))
    fig.legend(
        handles=[
            plt.Line2D([], [], color=GREY, linewidth=2, label="measured median, quartiles"),
            plt.Line2D([], [], marker="x", color=BLACK, linestyle="none", label="printed"),
        ],
        loc="outside upper right",
        ncols=2,
    )
    return fig


def article_types(percent: pd.Series, printed: pd.DataFrame, *, label: str = "") -> Figure:
    """Draw the share of each article type beside the printed one.

    Parameters
    ----------
    percent : Series
        Measured shares by type, 0 to 100.
    printed : DataFrame
        The reported numbers of WixQA's section 3.1.
    label : str
        What was measured in place of the official articles, if anything.
    """
    import matplotlib.pyplot as plt

    shares = printed[printed["column"] == "share"].set_index("row")["value"]
    places = np.arange(len(shares))[::-1]
    fig, ax = plt.subplots(figsize=size("column", 1.5))
    ax.barh(places + 0.18, shares, height=0.34, color=GREY, label="printed")
    measured = percent.reindex(shares.index).fillna(0)
    ax.barh(places - 0.18, measured, height=0.34, color=BLUE, label="measured")
    for place, value in zip(places, measured, strict=True):
        ax.annotate(
            f"{value:.1f}",
            (value, place - 0.18),
            (2, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    ax.set_yticks(places, [name.replace("_", " ") for name in shares.index])
    ax.set_xlabel("share of the articles (%)" + measured_on(label))
    fig.legend(loc="outside upper right", ncols=2)
    return fig


def coverage(comparison: pd.DataFrame, *, order: list[str]) -> Figure:
    """Draw EnterpriseRAG-Bench's Table 10 as measured; cells that differ show the printed number.

    Parameters
    ----------
    comparison : DataFrame
        The result of `ragkit.report.tables.compare` on Table 10.
    order : list of str
        Types of questions, top to bottom.
    """
    import matplotlib.pyplot as plt

    cells = comparison[comparison["column"] != "questions"]
    rows = [kind for kind in order if kind in set(cells["row"])]
    grid = cells.pivot(index="row", columns="column", values="measured").loc[rows]
    states = cells.pivot(index="row", columns="column", values="status").loc[rows]
    printed = cells.pivot(index="row", columns="column", values="printed").loc[rows]
    fig, ax = plt.subplots(figsize=size("page", 2.9))
    image = ax.imshow(grid.fillna(0), cmap="Blues", aspect="auto", vmin=0)
    middle = np.nanmax(grid.to_numpy()) * 0.6
    for i, j in np.ndindex(*grid.shape):
        value, off = grid.iat[i, j], states.iat[i, j] in ("close", "differs")
        text = "" if np.isnan(value) else f"{value:.0f}"
        if off:
            text += f" ({printed.iat[i, j]})"
            ax.add_patch(
                plt.Rectangle((j - 0.48, i - 0.46), 0.96, 0.92, fill=False, edgecolor=VERMILION)
            )
        ax.text(
            j,
            i,
            text,
            ha="center",
            va="center",
            fontsize=6.5,
            color="white" if value > middle else BLACK,
        )
    ax.set_xticks(range(grid.shape[1]), [name.replace("_", " ") for name in grid.columns])
    ax.set_yticks(range(len(rows)), [name.replace("_", " ") for name in rows])
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    fig.colorbar(image, ax=ax, label="questions with the source", shrink=0.8)
    if cells["status"].isin(["close", "differs"]).any():
        ax.set_title("framed: measured (printed)", fontsize=7, fontweight="normal", loc="right")
    return fig


def question_types(questions: pd.DataFrame, printed: pd.DataFrame) -> Figure:
    """Draw, by type of question, how many there are and how long they are.

    Parameters
    ----------
    questions : DataFrame
    printed : DataFrame
        The reported numbers of EnterpriseRAG-Bench's Table 2.
    """
    import matplotlib.pyplot as plt

    counts = questions["type"].value_counts(sort=False)
    values = printed.set_index("row")["value"].reindex(counts.index)
    places = np.arange(len(counts))[::-1]
    fig, axes = plt.subplots(1, 2, sharey=True, figsize=size("page", 2.6), width_ratios=[1, 1.2])
    axes[0].barh(places, counts, color=BLUE, label="measured")
    axes[0].plot(values, places, "x", color=BLACK, label="printed")
    axes[0].set_xlabel("questions")
    axes[0].legend(loc="lower right")
    words = [
        questions.loc[questions["type"] == kind, "text"].str.split().str.len()
        for kind in counts.index
    ]
    axes[1].boxplot(
        words,
        positions=places,
        orientation="horizontal",
        widths=0.55,
        flierprops={"markersize": 2, "markeredgecolor": GREY},
        medianprops={"color": BLUE, "linewidth": 1.6},
    )
    axes[1].set_xlabel("words in a question")
    axes[1].set_xlim(0)
    axes[0].set_yticks(places, [name.replace("_", " ") for name in counts.index])
    return fig
