"""One style for all figures, and a `save` that gives the same bytes for the same figure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit import checks
from ragkit.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Inches: one column and the full width of a page.
WIDTHS = {"column": 3.3, "page": 6.9}
STYLE = tomllib.loads(Path(__file__).with_name("figures.toml").read_text("utf-8"))
PAINTS, NAMES, LABELS = STYLE["colours"], STYLE["names"], STYLE["labels"]
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, YELLOW, BLACK, GREY = PAINTS.values()
MARKS, SOURCES = (
    {name: (PAINTS[paint], shape) for name, (paint, shape) in STYLE[kind].items()}
    for kind in ("marks", "sources")
)
# For all other names, in the order in which they are first drawn.
_SPARE = (ORANGE, SKY, PURPLE, GREEN, BLACK, VERMILION, BLUE, GREY)
SPARE = tuple((_SPARE[n % 8], "vPDs^Xo"[n % 7]) for n in range(56))


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

    >>> size("column", 2.0)
    (3.3, 2.0)
    """
    checks.choice(width, "width", WIDTHS)
    return WIDTHS[width], height or WIDTHS[width] * 0.72


def marks_of(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return a colour and a marker for each name: the fixed one, else one that is not taken.

    >>> marks_of(["bm25", "dense"])
    {'bm25': ('#0072B2', 'o'), 'dense': ('#D55E00', 's')}
    """
    found = {name: MARKS.get(name) for name in names}
    for name, fixed in found.items():
        taken = set(found.values())
        found[name] = fixed or next((spare for spare in SPARE if spare not in taken), SPARE[0])
    return found


def describe(fig: Figure) -> str:
    """Return a figure in words, for those who cannot see it: its panels, axes and legend.

    >>> from ragkit.report.plots.base import axes
    >>> fig, ax = axes("column")
    >>> _ = ax.set(xlabel="size", ylabel="recall")
    >>> describe(fig)
    'Across: size. Up: recall'
    >>> save(fig, "figures/mine").name
    'mine.png'
    """
    axes = fig.axes
    boxes = filter(None, [*fig.legends, *(ax.get_legend() for ax in axes)])
    named = {
        "Panels": [ax.get_title() or ax.get_title(loc="left") for ax in axes],
        "Across": [*(ax.get_xlabel() for ax in axes), fig.get_supxlabel()],
        "Up": [*(ax.get_ylabel() for ax in axes), fig.get_supylabel()],
        "Marks": [text.get_text() for box in boxes for text in box.get_texts()],
    }
    parts = [
        f"{name}: {', '.join(dict.fromkeys(' '.join(text.split()) for text in texts if text))}"
        for name, texts in named.items()
        if any(texts)
    ]
    return ". ".join(parts) or "A figure without labels"


def told(path: str | Path) -> str:
    """Return the words that `save` wrote into a PNG, else its name."""
    from PIL import Image

    with Image.open(path) as image:
        return image.info.get("Description") or f"Figure {Path(path).stem}"


def save(fig: Figure, stem: str | Path, *, keep: bool = True) -> Path:
    """Write `STEM.pdf` and `STEM.png` without dates or versions; close the figure, return the PNG.

    With `keep` the figure itself is kept beside them, in a hidden file that `load` reads.
    """
    import cloudpickle
    import matplotlib.pyplot as plt

    stem = Path(stem)
    words = describe(fig)
    about = {
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None, "Subject": words},
        "png": {"Software": None, "Description": words},
    }
    for kind, metadata in about.items():
        with atomic_path(stem.with_name(f"{stem.name}.{kind}")) as temporary:
            fig.savefig(temporary, format=kind, metadata=metadata)
    if keep:
        with atomic_path(stem.with_name(f".{stem.name}.pickle")) as temporary:
            temporary.write_bytes(cloudpickle.dumps(fig))
    plt.close(fig)
    return stem.with_name(stem.name + ".png")


def load(path: str | Path) -> Figure:
    """Return a figure that `save` kept. Only for files of one's own runs: it may run code."""
    import cloudpickle

    return cloudpickle.loads(Path(path).read_bytes())


def restyle(fig: Figure, venue: Mapping) -> bool:
    """Set a figure to a venue's width and font; return whether it is as wide as a page.

    `venue` has column and page, in inches, font (a family) and scale (of all sizes of text).
    """
    from matplotlib.text import Text

    width, height = fig.get_size_inches()
    wide = width > sum(WIDTHS.values()) / 2
    target = venue["page" if wide else "column"]
    # What is narrower than the original needs its height for the text, which does not shrink.
    fig.set_size_inches(target, height * max(venue["scale"], target / width))
    for text in fig.findobj(Text):
        text.set_fontfamily(venue["font"])
        text.set_fontsize(text.get_fontsize() * venue["scale"])
    return wide
