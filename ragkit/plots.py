"""The figures of the notebooks: data in, figure out. Style and saving are `ragkit.figures`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from ragkit.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    MARKS,
    NAMES,
    ORANGE,
    PURPLE,
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


# Systems beyond those of `figures.MARKS`, in the order in which they are first drawn.
SPARE = ((ORANGE, "v"), (SKY, "P"), (YELLOW, "X"), (GREY, "h"), (BLACK, "*"))
ALIKE = {"vector": "dense", "vector-only": "dense", "hybrid-bm25": "hybrid"}


def by_type(table: pd.DataFrame, *, order: list[str], label: str, note: str = "") -> Figure:
    """Draw what systems reach on each type of question, with intervals.

    Parameters
    ----------
    table : DataFrame
        Columns type, system, n (questions), value, low, high; NaN limits draw no interval.
    order : list of str
        Types, top to bottom; those without a row are left out.
    label : str
        What is measured, with unit and direction.
    note : str
        What it was measured on, for the legend's line.
    """
    import matplotlib.pyplot as plt

    kinds = [kind for kind in order if kind in set(table["type"])]
    systems = list(dict.fromkeys(table["system"]))
    shifts = np.linspace(0.28, -0.28, len(systems)) if len(systems) > 1 else [0.0]
    marks = _marks(systems)
    fig, ax = plt.subplots(figsize=size("column", 1.0 + 0.3 * len(kinds)))
    for system, shift in zip(systems, shifts, strict=True):
        rows = table[table["system"] == system].set_index("type").reindex(kinds)
        places = np.arange(len(kinds))[::-1] + shift
        paint, shape = marks[system]
        ax.hlines(places, rows["low"], rows["high"], color=paint, linewidth=1)
        ax.plot(rows["value"], places, shape, color=paint, markersize=3.5, label=system)
    sizes = table.groupby("type")["n"].max()
    names = [f"{_broken(kind.replace('_', ' '))} ({sizes[kind]:.0f})" for kind in kinds]
    ax.set_yticks(np.arange(len(kinds))[::-1], names)
    ax.set_ylim(-0.6, len(kinds) - 0.4)
    ax.grid(axis="x")
    fig.supxlabel(label + (f"\n{note}" if note else ""), fontsize=8)
    fig.legend(loc="outside upper right", ncols=min(len(systems), 4), columnspacing=1)
    return fig


def ranking(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw systems from best to worst with their intervals, one panel a group of judges.

    Parameters
    ----------
    table : DataFrame
        Columns judge_group, subject_id, mean, low, high.
    label : str
        What is measured, with unit and direction.
    """
    import matplotlib.pyplot as plt

    groups = dict(iter(table.groupby("judge_group")))
    widths = [max(len(rows), 0.18 * len(table)) for rows in groups.values()]
    fig, axes = plt.subplots(
        1, len(groups), sharey=True, figsize=size("page", 2.5), width_ratios=widths, squeeze=False
    )
    paints = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
    for ax, (group, rows), paint in zip(axes.flat, groups.items(), paints, strict=False):
        rows = rows.sort_values("mean", ascending=False, kind="stable")
        places = np.arange(1, len(rows) + 1)
        ax.vlines(places, rows["low"], rows["high"], color=paint, linewidth=0.8, alpha=0.5)
        ax.plot(places, rows["mean"], "o", color=paint, markersize=2)
        ax.axhline(rows["low"].iloc[0], color=BLACK, linewidth=0.6, linestyle="--")
        ax.set_title(_broken(group) if len(groups) > 1 else group, fontsize=7)
        ax.set_xlabel("rank")
        ax.grid(axis="y")
    axes.flat[0].set_ylabel(label)
    fig.supxlabel("dashed: lower end of the best system's interval", fontsize=7)
    return fig


def type_map(scores: pd.DataFrame, *, order: list[str], label: str) -> Figure:
    """Draw mean scores by type of question and system, one panel a group of judges.

    Parameters
    ----------
    scores : DataFrame
        Columns judge_group, subject_id, question_type, score in [0, 1].
    order : list of str
        Types, top to bottom; those without a score are left out.
    label : str
        What is measured, with unit and direction.
    """
    import matplotlib.pyplot as plt

    groups = dict(iter(scores.groupby("judge_group")))
    counts = {name: rows["subject_id"].nunique() for name, rows in groups.items()}
    widths = [max(count, 0.18 * sum(counts.values())) for count in counts.values()]
    kinds = [kind for kind in order if kind in set(scores["question_type"])]
    fig, axes = plt.subplots(
        1, len(groups), sharey=True, figsize=size("page", 2.4), width_ratios=widths, squeeze=False
    )
    for ax, (name, rows) in zip(axes.flat, groups.items(), strict=True):
        means = rows.groupby("subject_id")["score"].mean().sort_values(kind="stable")
        grid = rows.pivot_table(index="question_type", columns="subject_id", values="score")
        image = ax.imshow(
            grid.reindex(index=kinds, columns=means.index),
            aspect="auto",
            vmin=0,
            vmax=1,
            interpolation="nearest",
        )
        title = _broken(name) if len(groups) > 1 else name
        ax.set_title(f"{title}\n({counts[name]} systems)", fontsize=7)
        ax.set_xticks([])
        ax.set_xlabel("worst to best")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes.flat[0].set_yticks(range(len(kinds)), [kind.replace("_", " ") for kind in kinds])
    fig.colorbar(image, ax=axes, label=label, shrink=0.9)
    return fig


def first_ranks(ranks: pd.DataFrame, *, depth: int, label: str = "") -> Figure:
    """Draw the rank of the first gold document under two systems, a point a question.

    Parameters
    ----------
    ranks : DataFrame
        Two columns named after the systems, and `type`; NaN where no gold document was found.
    depth : int
        How deep the lists are; what was not found stands beyond.
    label : str
        What it was measured on.
    """
    import matplotlib.pyplot as plt

    one, other = [column for column in ranks.columns if column != "type"]
    beyond = 2 * depth
    fig, ax = plt.subplots(figsize=size("column", 3.2))
    rng = np.random.default_rng(0)  # moves equal points apart, the same way each time
    shown = ranks[[one, other]].fillna(beyond) * np.exp(rng.normal(0, 0.05, (len(ranks), 2)))
    kinds = list(dict.fromkeys(ranks["type"]))
    marks = dict(
        zip(kinds, [(c, m) for m in "os^" for c in (BLUE, VERMILION, GREEN, PURPLE)], strict=False)
    )
    for kind in kinds:
        part = shown[ranks["type"] == kind]
        paint, shape = marks[kind]
        ax.plot(
            part[one],
            part[other],
            shape,
            color=paint,
            markersize=3,
            alpha=0.7,
            markeredgewidth=0,
            label=kind.replace("_", " "),
            rasterized=len(ranks) > 300,
        )
    ticks = [tick for tick in (1, 2, 3, 5, 10, 20, 50, 100) if tick <= depth]
    for axis, scale in ((ax.xaxis, ax.set_xscale), (ax.yaxis, ax.set_yscale)):
        scale("log")
        axis.set_ticks([*ticks, beyond], [*map(str, ticks), f">{depth}"])
        axis.set_ticks([], minor=True)
    ax.plot([1, beyond], [1, beyond], color=GREY, linewidth=0.6)
    ax.set_xlabel(f"rank of the first gold document, {one}" + (f"\n{label}" if label else ""))
    ax.set_ylabel(f"the same, {other}")
    fig.legend(loc="outside upper center", ncols=2, handletextpad=0.1, columnspacing=0.8)
    return fig


def recalls(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw recall at several cutoffs for each system, with intervals, best at the top.

    Parameters
    ----------
    table : DataFrame
        Columns system, metric ("R@1", "R@5", ...), value, low, high: means in [0, 1].
    label : str
        What it was measured on.
    """
    import matplotlib.pyplot as plt

    cutoffs = sorted(set(table["metric"]), key=lambda name: int(name.split("@")[1]))
    values = table.pivot(index="system", columns="metric", values="value")
    systems = values.sort_values(cutoffs[len(cutoffs) // 2], kind="stable").index.tolist()
    paints = ((SKY, "o"), (BLUE, "s"), (VERMILION, "D"), (PURPLE, "^"))
    shifts = np.linspace(0.2, -0.2, len(cutoffs)) if len(cutoffs) > 1 else [0.0]
    fig, ax = plt.subplots(figsize=size("column", 0.9 + 0.26 * len(systems)))
    for cutoff, shift, (paint, shape) in zip(cutoffs, shifts, paints, strict=False):
        rows = table[table["metric"] == cutoff].set_index("system").reindex(systems)
        places = np.arange(len(systems)) + shift
        ax.hlines(places, rows["low"], rows["high"], color=paint, linewidth=1)
        ax.plot(rows["value"], places, shape, color=paint, markersize=3.5, label=cutoff)
    ax.set_yticks(np.arange(len(systems)), systems)
    ax.set_ylim(-0.6, len(systems) - 0.4)
    ax.set_xlim(right=1.02)
    ax.grid(axis="x")
    ax.set_xlabel(f"recall, 95 % interval →\n{label}")
    fig.legend(loc="outside upper right", ncols=len(cutoffs))
    return fig


def overlap(
    table: pd.DataFrame, printed: pd.DataFrame, *, tables: dict[str, str], label: str
) -> Figure:
    """Draw each system's overlap with the gold answers beside the range that a paper prints.

    Parameters
    ----------
    table : DataFrame
        Columns set (of questions), system, metric, value, low, high: means in [0, 1].
    printed : grouped Series
        The printed values by (table, metric).
    tables : dict of str to str
        The printed table of each set of questions.
    label : str
        What it was measured with.
    """
    import matplotlib.pyplot as plt

    sets, names = list(dict.fromkeys(table["set"])), list(dict.fromkeys(table["metric"]))
    systems = list(dict.fromkeys(table["system"]))[::-1]
    fig, axes = plt.subplots(
        len(sets),
        len(names),
        sharex="col",
        sharey=True,
        squeeze=False,
        figsize=size("page", 0.7 + (0.35 + 0.13 * len(systems)) * len(sets)),
    )
    ranges = printed.agg(["min", "max"])
    for line, kind in zip(axes, sets, strict=True):
        for ax, name in zip(line, names, strict=True):
            rows = table[(table["set"] == kind) & (table["metric"] == name)]
            rows = rows.set_index("system").reindex(systems)
            low, high = ranges.loc[(tables[kind], name)]
            ax.axvspan(low, high, color=GREY, alpha=0.25, linewidth=0)
            places = np.arange(len(systems))
            ax.hlines(places, rows["low"], rows["high"], color=BLUE, linewidth=1)
            ax.plot(rows["value"], places, "o", color=BLUE, markersize=3)
            ax.grid(axis="x")
        line[0].set_yticks(np.arange(len(systems)), systems)
        line[0].set_ylabel(kind)
    for ax, name in zip(axes[-1], names, strict=True):
        ax.set_xlim(left=0)
        ax.set_xlabel(NAMES.get(name, name.replace("_", " ")) + " →")
    fig.supxlabel(f"grey: from the least to the most that the paper prints\n{label}", fontsize=7)
    return fig


def _marks(systems: list[str]) -> dict[str, tuple[str, str]]:
    spare = iter(SPARE * len(systems))
    return {
        system: MARKS[ALIKE.get(system, system)]
        if ALIKE.get(system, system) in MARKS
        else next(spare)
        for system in systems
    }


def _broken(name: str) -> str:
    """Return a name in lines of about 16 letters, broken behind a slash, a colon or a blank."""
    parts, lines = re.split(r"(?<=[/: ])", name), [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part.strip()) > 16:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


# The corpora of the geometry notebook, as their benchmarks are drawn elsewhere.
CORPORA = {
    "company": (GREY, "h"),
    "help centre": (BLACK, "X"),
    "web": (BLUE, "o"),
    "generated help centre": (ORANGE, "v"),
}
# Sources of documents: seven colours, the second seven with another marker.
SOURCES = {
    name: ((BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)[number % 7], "o^"[number // 7])
    for number, name in enumerate(
        (
            *("slack", "gmail", "linear", "google_drive", "hubspot", "fireflies", "github"),
            *("jira", "confluence", "article", "feature_request", "known_issue", "web"),
        )
    )
}
SIMILARITIES = {
    "local_similarity": "ten nearest",
    "in_exact": "same cluster",
    "cross_exact": "other cluster",
}


def corpus_similarity(profiles: pd.DataFrame, by_size: pd.DataFrame, *, label: str = "") -> Figure:
    """Draw EnterpriseRAG-Bench's Table 3 at equal size, and local density against size.

    Parameters
    ----------
    profiles : DataFrame
        Rows of `ragkit.corpus.profile` with the columns corpus and variant.
    by_size : DataFrame
        Rows of `ragkit.corpus.density_by_size` with a column corpus.
    label : str
        What the second panel's documents are.
    """
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=size("page", 2.6), width_ratios=[1.5, 1])
    variants, names = (
        list(dict.fromkeys(profiles["variant"])),
        list(dict.fromkeys(profiles["corpus"])),
    )
    rows = [(measure, variant) for measure in SIMILARITIES for variant in variants]
    for (name, variant), group in profiles.groupby(["corpus", "variant"], sort=False):
        paint, shape = CORPORA[name]
        for measure in SIMILARITIES:
            place = -rows.index((measure, variant)) + 0.16 * (
                len(names) / 2 - names.index(name) - 0.5
            )
            values = group[measure]
            axes[0].plot([values.min(), values.max()], [place] * 2, color=paint, linewidth=1)
            axes[0].plot(values.mean(), place, shape, color=paint)
    axes[0].set_yticks(
        [-number for number in range(len(rows))],
        [f"{SIMILARITIES[measure]}, {variant}" for measure, variant in rows],
    )
    axes[0].set_xlabel("mean cosine similarity (line: range over parts)")
    axes[0].grid(axis="x")
    for name, group in by_size.groupby("corpus", sort=False):
        paint, shape = CORPORA[name]
        values = group.groupby("size")["local_density"]
        axes[1].fill_between(
            values.min().index, values.min(), values.max(), color=paint, alpha=0.15, linewidth=0
        )
        axes[1].plot(values.mean(), marker=shape, color=paint, label=name)
    axes[1].set_xscale("log")
    axes[1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    shown = sorted(set(by_size["size"]))
    axes[1].set_xticks(shown[:: 1 + (len(shown) - 1) // 6])
    axes[1].minorticks_off()
    axes[1].set_xlabel(f"{label or 'documents'} (log scale)")
    axes[1].set_ylabel("local density (cosine)")
    fig.legend(*axes[1].get_legend_handles_labels(), loc="outside upper right", ncols=len(names))
    return fig


def corpus_sweep(swept: pd.DataFrame, *, reference: int = 10) -> Figure:
    """Draw cluster measures of several corpora against the number of clusters.

    Parameters
    ----------
    swept : DataFrame
        The result of `ragkit.corpus.sweep`.
    reference : int, default=10
        The k that the paper prints, marked.
    """
    import matplotlib.pyplot as plt

    labels = {
        "in_cluster": "in-cluster similarity",
        "cross_cluster": "cross-cluster similarity",
        "gap": "their gap",
        "silhouette": "silhouette",
    }
    fig, axes = plt.subplots(1, len(labels), sharex=True, figsize=size("page", 1.9))
    for ax, (measure, label) in zip(axes, labels.items(), strict=True):
        for name, group in swept.groupby("corpus", sort=False):
            paint, shape = CORPORA[name]
            values = group.groupby("k")[measure]
            ax.fill_between(
                values.min().index, values.min(), values.max(), color=paint, alpha=0.15, linewidth=0
            )
            ax.plot(values.mean(), marker=shape, markersize=3, color=paint, label=name)
        ax.axvline(reference, color=GREY, linewidth=0.6, linestyle="--")
        ax.set_title(label, fontweight="normal")
        ax.set_xlabel("clusters k")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=4)
    return fig


def corpus_maps(points: pd.DataFrame) -> Figure:
    """Draw maps of several corpora, a column each and a row a method, coloured by source.

    Parameters
    ----------
    points : DataFrame
        Rows of `ragkit.corpus.atlas` with a column corpus. A cluster's terms stand in its middle.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patheffects import withStroke

    methods, corpora = (list(dict.fromkeys(points[column])) for column in ("method", "corpus"))
    fig, grid = plt.subplots(
        len(methods), len(corpora), figsize=size("page", 0.5 + 2.2 * len(methods)), squeeze=False
    )
    for (method, name), group in points.groupby(["method", "corpus"], sort=False):
        ax = grid[methods.index(method), corpora.index(name)]
        width = float(np.clip(110 / np.sqrt(len(group)), 1.2, 9))
        for source, own in group.groupby("source", sort=False):
            paint, shape = _source(source)
            ax.scatter(
                own["x"], own["y"], width, paint, marker=shape, linewidths=0, rasterized=True
            )
        places = group.groupby("terms")[["x", "y"]].median().sort_values("y")
        # Labels one above the other, at least a line apart.
        line = 0.055 * float(np.ptp(group["y"]))
        places["y"] = _apart(places["y"].to_numpy(), line)
        for terms, place in places.iterrows():
            ax.annotate(
                terms,
                place,
                ha="center",
                va="center",
                fontsize=6,
                path_effects=[withStroke(linewidth=1.8, foreground="white")],
            )
        ax.set_title(f"{name}, {method}", fontsize=7)
        ax.set_xlabel(
            f"{len(group):,} points, trustworthiness {group['trustworthiness'].iloc[0]:.2f}",
            fontsize=7,
        )
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_aspect("equal", "datalim")
        ax.spines[["left", "bottom"]].set_visible(False)
    present = set(points["source"])
    handles = [
        plt.Line2D(
            [], [], marker=_source(source)[1], color=_source(source)[0], linestyle="none",
            label=str(source).replace("_", " "),
        )
        for source in [*(name for name in SOURCES if name in present), *sorted(present - {*SOURCES})]
    ]  # fmt: skip
    fig.legend(handles=handles, loc="outside lower center", ncols=7, handletextpad=0.2)
    return fig


class Page:
    """A plotly figure that a notebook and its HTML page show without network.

    JupyterLab draws the figure's description itself. An HTML page gets the library too,
    compressed: 2 MB in place of 5, unpacked by the browser.
    """

    def __init__(self, figure):
        self.figure = figure

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        import base64
        import gzip
        import hashlib
        import json

        from plotly.io import to_json
        from plotly.offline import get_plotlyjs

        packed = base64.b64encode(gzip.compress(get_plotlyjs().encode("utf-8"), mtime=0)).decode()
        description = to_json(self.figure).replace("</", "<\\/")
        place = "figure-" + hashlib.sha256(description.encode("utf-8")).hexdigest()[:12]
        return {
            "application/vnd.plotly.v1+json": json.loads(description),
            "text/html": _PAGE % {"place": place, "packed": packed, "figure": description},
        }


_PAGE = """<div id="%(place)s" style="width:100%%;min-height:520px"></div>
<script>
(async () => {
  const bytes = Uint8Array.from(atob("%(packed)s"), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent =
    "(function (define, module, exports) {" + (await new Response(stream).text()) + "\\n})()";
  document.head.append(script);
  const figure = %(figure)s;
  window.Plotly.newPlot("%(place)s", figure.data, figure.layout, {responsive: true});
})();
</script>"""


def corpus_explorer(points: pd.DataFrame) -> Page:
    """Draw the maps of one method for reading: a document's title and source show under the mouse.

    Parameters
    ----------
    points : DataFrame
        Rows of `ragkit.corpus.atlas`, of one method, with a column corpus.
    """
    from html import escape

    from plotly.graph_objects import Scattergl
    from plotly.subplots import make_subplots

    corpora = list(dict.fromkeys(points["corpus"]))
    trust = points.groupby("corpus")["trustworthiness"].first()
    fig = make_subplots(
        1,
        len(corpora),
        subplot_titles=[f"{name} (trustworthiness {trust[name]:.2f})" for name in corpora],
        horizontal_spacing=0.02,
    )
    seen = set()
    for (name, source), group in points.groupby(["corpus", "source"], sort=False):
        paint, shape = _source(source)
        fig.add_trace(
            Scattergl(
                x=group["x"].round(2).tolist(),
                y=group["y"].round(2).tolist(),
                mode="markers",
                name=str(source),
                legendgroup=str(source),
                showlegend=source not in seen,
                marker={
                    "color": paint,
                    "size": 5,
                    "symbol": {"o": "circle", "^": "triangle-up"}[shape],
                },
                customdata=[
                    [escape(str(value)) for value in row]
                    for row in group[["title", "source", "terms"]].itertuples(index=False)
                ],
                hovertemplate="%{customdata[0]}<br>%{customdata[1]}, cluster: %{customdata[2]}"
                "<extra></extra>",
            ),
            row=1,
            col=corpora.index(name) + 1,
        )
        seen.add(source)
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False)
    fig.update_layout(
        template="plotly_white",
        height=520,
        margin={"l": 10, "r": 10, "t": 60, "b": 10},
        legend={"orientation": "h", "y": -0.02},
    )
    return Page(fig)


def _apart(heights: np.ndarray, gap: float) -> np.ndarray:
    """Return rising heights, moved as little as need be to lie at least `gap` apart."""
    from sklearn.isotonic import isotonic_regression

    steps = gap * np.arange(len(heights))
    return isotonic_regression(heights - steps) + steps


def _source(name: str) -> tuple[str, str]:
    return SOURCES.get(name, (GREY, "o"))


def judge_damage(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw the share of gold answers, left alone and damaged, that a judge accepts.

    Parameters
    ----------
    table : DataFrame
        Columns change, value, low, high: shares in [0, 1].
    label : str
        What they are gold answers of.
    """
    import matplotlib.pyplot as plt

    places = np.arange(len(table))[::-1]
    fig, ax = plt.subplots(figsize=size("column", 0.6 + 0.28 * len(table)))
    ax.hlines(places, table["low"], table["high"], color=BLUE, linewidth=1.2)
    ax.plot(table["value"], places, "o", color=BLUE)
    ax.set_yticks(
        places, [f"{c} ({n:,})" for c, n in zip(table["change"], table["n"], strict=True)]
    )
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.6, len(table) - 0.4)
    ax.grid(axis="x")
    ax.set_xlabel(f"accepted, with 95 % intervals\n{label}")
    return fig


# Up to four judges in one figure.
SIDES = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"))


def judge_worth(table: pd.DataFrame, *, targets: dict[str, float]) -> Figure:
    """Draw agreement with real verdicts, a panel a metric, by what was held out.

    Parameters
    ----------
    table : DataFrame
        Columns held_out, against, metric, value, low, high.
    targets : dict of str to float
        Metrics to show, with the value aimed at.
    """
    import matplotlib.pyplot as plt

    schemes, sides = (list(dict.fromkeys(table[column])) for column in ("held_out", "against"))
    marks = dict(zip(sides, SIDES, strict=False))
    fig, axes = plt.subplots(
        1, len(targets), sharey=True, squeeze=False, figsize=size("page", 0.9 + 0.45 * len(schemes))
    )
    for ax, (metric, target) in zip(axes[0], targets.items(), strict=True):
        ax.axvline(target, color=GREY, linestyle="--", linewidth=0.9)
        for number, side in enumerate(sides):
            rows = table[(table["metric"] == metric) & (table["against"] == side)]
            rows = rows.set_index("held_out").reindex(schemes)
            places = np.arange(len(schemes))[::-1] - 0.22 * (number - (len(sides) - 1) / 2)
            paint, shape = marks[side]
            ax.hlines(places, rows["low"], rows["high"], color=paint, linewidth=1.2)
            ax.plot(rows["value"], places, shape, color=paint, label=side)
        ax.set_xlabel(f"{metric}\n(dashed: {target:g})")
        ax.grid(axis="x")
    axes[0, 0].set_yticks(np.arange(len(schemes))[::-1], schemes)
    axes[0, 0].set_ylim(-0.6, len(schemes) - 0.4)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper right", ncols=len(sides))
    return fig


def judge_calibration(curves: pd.DataFrame) -> Figure:
    """Draw the share of answers that are correct by the probability that they are.

    Parameters
    ----------
    curves : DataFrame
        Columns against, probability, correct, low, high, n.
    """
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=size("column", 2.7))
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.9)
    sides = list(dict.fromkeys(curves["against"]))
    marks = dict(zip(sides, SIDES, strict=False))
    for side in sides:
        rows, (paint, shape) = curves[curves["against"] == side], marks[side]
        ax.vlines(rows["probability"], rows["low"], rows["high"], color=paint, linewidth=1)
        ax.plot(
            rows["probability"],
            rows["correct"],
            f"{shape}-",
            color=paint,
            label=side,
            linewidth=0.8,
        )
    ax.set_xlabel("probability of the offline judge (ten bins)")
    ax.set_ylabel("share correct by the verdicts")
    ax.set_aspect("equal")
    fig.legend(loc="outside upper right", ncols=2)
    return fig


def judge_standings(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw the systems' scores on several judges' scales, a panel a scale, one order for all.

    Parameters
    ----------
    table : DataFrame
        Columns scale, system, value, low, high. The first scale gives the order.
    label : str
        Of the axes.
    """
    import matplotlib.pyplot as plt

    scales = list(dict.fromkeys(table["scale"]))
    first = table[table["scale"] == scales[0]].sort_values("value", kind="stable")
    order = list(first["system"])
    fig, axes = plt.subplots(
        1, len(scales), sharey=True, squeeze=False, figsize=size("page", 1.0 + 0.2 * len(order))
    )
    for ax, scale in zip(axes[0], scales, strict=True):
        rows = table[table["scale"] == scale].set_index("system").reindex(order)
        places = np.arange(len(order))
        ax.hlines(places, rows["low"], rows["high"], color=BLUE, linewidth=1.2)
        ax.plot(rows["value"], places, "o", color=BLUE)
        ranks = rows["value"].rank(ascending=False, method="min")
        for place, rank, high in zip(places, ranks, rows["high"], strict=True):
            ax.annotate(
                f"{rank:.0f}", (high, place), (4, 0), textcoords="offset points", va="center",
                fontsize=7,
            )  # fmt: skip
        ax.set_xlim(0, 1)
        ax.set_title(scale, fontsize=7, fontweight="normal")
        ax.grid(axis="x")
    axes[0, 0].set_yticks(np.arange(len(order)), order)
    fig.supxlabel(label, fontsize=8)
    return fig
