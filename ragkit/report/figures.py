"""One style for all figures, and a `save` that gives the same bytes for the same figure."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit import checks
from ragkit.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches: one column and the full width of a page.
WIDTHS = {"column": 3.3, "page": 6.9}
# Okabe and Ito's colours, which the colour-blind can tell apart.
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, YELLOW, BLACK, GREY = "#E69F00", "#56B4E9", "#F0E442", "#000000", "#999999"

# One colour and one marker for a dataset or a system, in every figure.
MARKS = {
    "liverag": (BLUE, "o"),
    "triviaqa": (VERMILION, "s"),
    "popqa": (GREEN, "^"),
    "webquestions": (PURPLE, "D"),
    "simpleqa": (ORANGE, "v"),
    "natural_questions": (SKY, "P"),
    "wixqa": (BLACK, "X"),
    "enterpriserag_bench": (GREY, "h"),
    "company": (GREY, "h"),
    "help centre": (BLACK, "X"),
    "web": (BLUE, "o"),
    "generated help centre": (ORANGE, "v"),
    "expertwritten": (BLUE, "o"),
    "simulated": (VERMILION, "s"),
    "synthetic": (GREEN, "^"),
    "measured": (BLUE, "o"),
    "reported": (BLACK, "x"),
    "printed": (BLACK, "x"),
    "bm25": (BLUE, "o"),
    "BM25": (BLUE, "o"),
    "dense": (VERMILION, "s"),
    "vector": (VERMILION, "s"),
    "vector-only": (VERMILION, "s"),
    "hybrid": (GREEN, "^"),
    "hybrid-bm25": (GREEN, "^"),
    "bash_agent": (PURPLE, "D"),
    "agent": (PURPLE, "D"),
}
# For all other names, in the order in which they are first drawn.
_PAINTS, _SHAPES = (ORANGE, SKY, PURPLE, GREEN, BLACK, VERMILION, BLUE, GREY), "vPDs^Xo"
SPARE = tuple((_PAINTS[n % 8], _SHAPES[n % 7]) for n in range(56))
NAMES = {
    "liverag": "LiveRAG",
    "triviaqa": "TriviaQA",
    "popqa": "PopQA",
    "webquestions": "WebQuestions",
    "simpleqa": "SimpleQA",
    "natural_questions": "Natural Questions",
    "wixqa": "WixQA",
    "enterpriserag_bench": "EnterpriseRAG-Bench",
}


def use_style() -> None:
    """Set the style of all figures made from now on: seaborn's theme, and our own settings."""
    import matplotlib as mpl
    import seaborn as sns

    own = mpl.rc_params_from_file(
        Path(__file__).with_name("ragkit.mplstyle"), use_default_template=False
    )
    sns.set_theme(context="paper", style="ticks", palette="colorblind", rc=dict(own))


def size(width: str = "column", height: float | None = None):
    """Return a figure's size in inches.

    `width` is one of `WIDTHS`; `height`, in inches, is 0.72 of it if not given.
    """
    checks.choice(width, "width", WIDTHS)
    return WIDTHS[width], height or WIDTHS[width] * 0.72


def mark(name: str, besides: Container[tuple[str, str]] = ()) -> tuple[str, str]:
    """Return the colour and marker of a dataset or system: the fixed ones, else spare ones not in `besides`."""
    return MARKS.get(name) or next((spare for spare in SPARE if spare not in besides), SPARE[0])


def save(fig: Figure, stem: str | Path) -> Path:
    """Write `STEM.pdf` and `STEM.png` without dates or versions; close the figure, return the PNG."""
    import matplotlib.pyplot as plt

    stem = Path(stem)
    dated = {"CreationDate": None, "Producer": None, "Creator": None}
    kinds = {".pdf": dated, ".png": {"Software": None}}
    for suffix, metadata in kinds.items():
        with atomic_path(stem.with_name(stem.name + suffix)) as temporary:
            fig.savefig(temporary, format=suffix[1:], metadata=metadata)
    plt.close(fig)
    return stem.with_name(stem.name + ".png")
