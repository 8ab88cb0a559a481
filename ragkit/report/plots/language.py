"""Linguistic diversity of question sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.report.figures import BLACK, GREY, NAMES, colour, marker, size

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

    from ragkit.report.figures import size as inches

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
