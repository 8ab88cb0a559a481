"""One style for all figures, and a `save` that gives the same bytes for the same figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ragkit.errors import UsageError, did_you_mean
from ragkit.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches: one column and the full width of a page.
WIDTHS = {"column": 3.3, "page": 6.9}

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, BLACK = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#F0E442",
    "#000000",
)
GREY = "#999999"

# One colour and one marker for a thing, in every figure.
MARKS = {
    "liverag": (BLUE, "o"),
    "triviaqa": (VERMILION, "s"),
    "popqa": (GREEN, "^"),
    "webquestions": (PURPLE, "D"),
    "simpleqa": (ORANGE, "v"),
    "natural_questions": (SKY, "P"),
    "wixqa": (BLACK, "X"),
    "enterpriserag_bench": (GREY, "h"),
    "expertwritten": (BLUE, "o"),
    "simulated": (VERMILION, "s"),
    "synthetic": (GREEN, "^"),
    "measured": (BLUE, "o"),
    "reported": (BLACK, "x"),
    "bm25": (BLUE, "o"),
    "dense": (VERMILION, "s"),
    "hybrid": (GREEN, "^"),
    "bash_agent": (PURPLE, "D"),
}
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
    """Set the style of all figures made from now on."""
    import matplotlib.pyplot as plt

    plt.style.use(Path(__file__).with_name("ragkit.mplstyle"))


def size(width: str = "column", height: float | None = None, *, ratio: float = 0.72):
    """Return a figure's size in inches.

    Parameters
    ----------
    width : {"column", "page"}
    height : float, optional
        Inches; `ratio` times the width if not given.
    """
    if width not in WIDTHS:
        raise UsageError(f"no width {width!r}", did_you_mean(width, WIDTHS))
    return WIDTHS[width], height or WIDTHS[width] * ratio


def colour(name: str) -> str:
    """Return the fixed colour of a dataset or system."""
    return _mark(name)[0]


def marker(name: str) -> str:
    """Return the fixed marker of a dataset or system."""
    return _mark(name)[1]


def save(fig: Figure, stem: str | Path) -> Path:
    """Write `STEM.pdf` and `STEM.png` without dates or versions; close the figure.

    Returns
    -------
    pathlib.Path
        The PNG file, so that a notebook can show what was saved.
    """
    import matplotlib.pyplot as plt

    stem = Path(stem)
    kinds = {
        ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
        ".png": {"Software": None},
    }
    for suffix, metadata in kinds.items():
        with atomic_path(stem.with_name(stem.name + suffix)) as temporary:
            fig.savefig(temporary, format=suffix[1:], metadata=metadata)
    plt.close(fig)
    return stem.with_name(stem.name + ".png")


def _mark(name: str) -> tuple[str, str]:
    if name not in MARKS:
        raise UsageError(f"{name!r} has no colour and marker yet", did_you_mean(name, MARKS))
    return MARKS[name]
