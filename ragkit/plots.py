"""The figures of the notebooks: data in, figure out. Style and saving are `ragkit.figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    NAMES,
    SKY,
    VERMILION,
    YELLOW,
    colour,
    marker,
    size,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Metrics of LiveRAG's Table 4 with their direction.
DIVERSITY = {
    "ngram_diversity": "NGD\nmore diverse →",
    "pos_compression_ratio": "PoS-CR\n← more diverse",
    "homogenization_score": "HS (cosine)\n← more diverse",
    "length_entropy": "length entropy (nats)\nmore diverse →",
    "mean_length": "length (words)\n",
}


def diversity(samples: pd.DataFrame, liverag: dict[str, float], printed: pd.DataFrame) -> Figure:
    """Draw Table 4: for every set the printed number, our samples' mean and their range.

    Parameters
    ----------
    samples : DataFrame
        Columns row and the metrics, one row a sample.
    liverag : dict
        The measured row of LiveRAG.
    printed : DataFrame
        The reported numbers of Table 4.
    """
    import matplotlib.pyplot as plt

    rows = ["liverag", *dict.fromkeys(samples["row"])]
    places = np.arange(len(rows))[::-1]
    fig, axes = plt.subplots(1, len(DIVERSITY), sharey=True, figsize=size("page", 2.3))
    values = printed.set_index(["row", "metric"])["value"]
    for ax, (metric, label) in zip(axes, DIVERSITY.items(), strict=True):
        for place, row in zip(places, rows, strict=True):
            own = (
                samples.loc[samples["row"] == row, metric]
                if row != "liverag"
                else [liverag[metric]]
            )
            level = place + 0.14
            ax.plot(
                [min(own), max(own)], [level, level], color=colour(row), linewidth=3, alpha=0.35
            )
            ax.plot(np.mean(own), level, marker=marker(row), color=colour(row), linestyle="none")
            ax.plot(values[row, metric], place - 0.18, "x", color=BLACK, markersize=4)
        ax.set_xlabel(label)
        ax.grid(axis="x")
    axes[0].set_yticks(places, [NAMES[row] for row in rows])
    axes[0].set_ylim(-0.6, len(rows) - 0.4)
    handles = [
        plt.Line2D(
            [], [], marker="o", color=GREY, linestyle="none", label="measured, mean of samples"
        ),
        plt.Line2D([], [], color=GREY, linewidth=3, alpha=0.5, label="range over samples"),
        plt.Line2D([], [], marker="x", color=BLACK, linestyle="none", label="printed"),
    ]
    fig.legend(handles=handles, loc="outside upper right", ncols=3)
    return fig


def lengths(words: dict[str, np.ndarray]) -> Figure:
    """Draw the distribution of question lengths of several sets, one ridge a set."""
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(len(words), 1, sharex=True, figsize=size("column", 3.4))
    longest = int(np.quantile(np.concatenate(list(words.values())), 0.995))
    bins = np.arange(0.5, longest + 1.5)
    for ax, (name, counts) in zip(np.atleast_1d(axes), words.items(), strict=True):
        shares = np.full(len(counts), 100 / len(counts))
        ax.hist(counts, bins=bins, weights=shares, color=colour(name))
        ax.axvline(counts.mean(), color=BLACK, linewidth=0.8, linestyle="--")
        label = f"{NAMES[name]}\nmean {counts.mean():.1f}"
        ax.annotate(label, (1, 0.95), xycoords="axes fraction", ha="right", va="top")
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.tick_params(bottom=ax is np.atleast_1d(axes)[-1])
    np.atleast_1d(axes)[-1].set_xlabel(f"words in a question (height: share; cut at {longest})")
    return fig


def question_map(
    embeddings: dict[str, np.ndarray], *, size: int, seed: int = 0
) -> tuple[Figure, float]:
    """Draw a UMAP of equal samples of several sets of embeddings, one panel a set.

    Parameters
    ----------
    embeddings : dict of str to array of shape (n, d)
    size : int
        Questions drawn from each set (all, where it has fewer).
    seed : int

    Returns
    -------
    Figure, float
        The figure and the map's trustworthiness (0 to 1, 15 neighbours).
    """
    import matplotlib.pyplot as plt
    from sklearn.manifold import trustworthiness
    from umap import UMAP

    from ragkit.figures import size as inches

    rng = np.random.default_rng(seed)
    drawn = {
        name: vectors[rng.choice(len(vectors), min(size, len(vectors)), replace=False)]
        for name, vectors in embeddings.items()
    }
    joint = np.concatenate(list(drawn.values()))
    owner = np.repeat(list(drawn), [len(vectors) for vectors in drawn.values()])
    neighbours = min(15, len(joint) - 1)
    # A seeded UMAP runs on one thread, and says so each time.
    flat = UMAP(n_neighbors=neighbours, metric="cosine", random_state=seed, n_jobs=1).fit_transform(
        joint
    )
    trust = trustworthiness(joint, flat, n_neighbors=neighbours, metric="cosine")
    columns = 3
    rows = -(-len(drawn) // columns)
    fig, axes = plt.subplots(
        rows, columns, sharex=True, sharey=True, figsize=inches("page", 2.2 * rows), squeeze=False
    )
    for ax in axes.flat[len(drawn) :]:
        ax.set_visible(False)
    for ax, name in zip(axes.flat, drawn, strict=False):
        ax.scatter(*flat.T, s=1.5, color="0.88", linewidths=0, rasterized=True)
        own = flat[owner == name]
        ax.scatter(*own.T, s=3, color=colour(name), linewidths=0, rasterized=True)
        ax.set_title(NAMES[name])
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[["left", "bottom"]].set_visible(False)
    fig.supxlabel(
        f"UMAP of question embeddings, {len(joint):,} questions; trustworthiness {trust:.3f}",
        fontsize=8,
    )
    return fig, float(trust)


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
        fig.supxlabel(_measured_on(label).strip(), fontsize=8)
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
    ax.set_xlabel("share of the articles (%)" + _measured_on(label))
    fig.legend(loc="outside upper right", ncols=2)
    return fig


def coverage(comparison: pd.DataFrame, *, order: list[str]) -> Figure:
    """Draw EnterpriseRAG-Bench's Table 10 as measured; cells that differ show the printed number.

    Parameters
    ----------
    comparison : DataFrame
        The result of `ragkit.tables.compare` on Table 10.
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


STATUS_COLOURS = {
    "match": GREEN,
    "close": YELLOW,
    "differs": VERMILION,
    "substitute": SKY,
    "not run": "#cccccc",
    "not available": "#888888",
}


def statuses(counts: pd.DataFrame) -> Figure:
    """Draw how many printed numbers of each paper have each status.

    Parameters
    ----------
    counts : DataFrame
        The result of `ragkit.tables.counts`.
    """
    import matplotlib.pyplot as plt

    rows = [row for row in counts.index if row != "all"][::-1]
    fig, ax = plt.subplots(figsize=size("page", 1.7))
    left = np.zeros(len(rows))
    for status, paint in STATUS_COLOURS.items():
        width = counts.loc[rows, status].to_numpy()
        bars = ax.barh(
            rows, width, left=left, color=paint, label=f"{status} ({counts.loc['all', status]})"
        )
        labels = [str(n) if n > 0.03 * counts["numbers"].max() else "" for n in width]
        ax.bar_label(bars, labels, label_type="center", fontsize=7)
        left += width
    ax.set_yticks(range(len(rows)), [NAMES.get(row, row) for row in rows])
    ax.set_xlabel("printed numbers")
    fig.legend(loc="outside upper center", ncols=6, columnspacing=1, handlelength=1)
    return fig


def differences(shown: pd.DataFrame) -> Figure:
    """Draw how far measured numbers lie from printed ones, by table.

    Parameters
    ----------
    shown : DataFrame
        Rows of a scoreboard with a measured number.
    """
    import matplotlib.pyplot as plt

    rows = shown[shown["value"].abs() > 0].copy()
    rows["percent"] = 100 * (rows["measured"] / rows["value"] - 1)
    words = [
        f"table {table}"
        if table.isdigit()
        else table.replace("text:", "section ").replace(":", " ")
        for table in rows["table"]
    ]
    rows["where"] = [
        f"{NAMES[paper]}, {table}" for paper, table in zip(rows["paper"], words, strict=True)
    ]
    places = {name: place for place, name in enumerate(dict.fromkeys(rows["where"]))}
    fig, ax = plt.subplots(figsize=size("page", 0.9 + 0.24 * len(places)))
    for status, group in rows.groupby("status"):
        spread = np.linspace(-0.25, 0.25, len(group)) if len(group) > 1 else np.zeros(1)
        heights = group["where"].map(places) + spread
        ax.plot(
            group["percent"],
            heights,
            "o",
            color=STATUS_COLOURS[status],
            markeredgecolor="white",
            markeredgewidth=0.3,
            label=status,
        )
    ax.set_xscale("symlog", linthresh=1)
    ax.axvline(0, color=BLACK, linewidth=0.6)
    ax.set_yticks(list(places.values()), list(places))
    ax.invert_yaxis()
    ax.set_xlabel("measured against printed (%, linear within 1 %, then logarithmic)")
    fig.legend(loc="outside upper right", ncols=4)
    return fig


def _measured_on(label: str) -> str:
    # A stand-in's file name is too long for a column; how much of the whole it is, is not.
    short = "; ".join(part.split(".jsonl ")[-1] for part in label.split("; "))
    return f"\nmeasured: {short}" if label else ""
