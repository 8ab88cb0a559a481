"""Figures and tables of a run for a paper: a venue's widths and fonts, and LaTeX that takes them in.

Figures are drawn again from what the notebooks saved beside them; no notebook runs.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from ragkit import checks
from ragkit.errors import MissingData
from ragkit.files import write_text
from ragkit.report import figures, tables
from ragkit.report.pipeline import Plan

VENUES = figures.STYLE["venues"]
SHEET = 5  # figures in a row of the contact sheet


def export(plan: Plan, style: str) -> Path:
    """Write the figures and tables of a run in a venue's style; return the folder.

    `build/PROFILE/paper-STYLE/` has `figures/`, `tables/`, `contact-sheet.png`, and `figures.tex` and
    `tables.tex` to be taken into a paper, as `paper.tex` shows, which plain pdflatex compiles. The
    same run gives the same bytes. `UsageError` if the style is unknown, `MissingData` if no notebook
    has run.
    """
    checks.choice(style, "style", VENUES)
    target = plan.root / f"paper-{style}"
    shutil.rmtree(target, ignore_errors=True)
    drawn = sorted((plan.root / "figures").glob("*/.*.pickle"))
    if not drawn:
        run = f"make reproduce PROFILE={plan.profile}"
        raise MissingData(f"no saved figures in {plan.root / 'figures'}", run)
    made = []
    for path in drawn:
        name = f"{path.parent.name}-{path.stem.removeprefix('.')}"
        fig = figures.load(path)
        wide = figures.restyle(fig, VENUES[style])
        png = figures.save(fig, target / "figures" / name, keep=False)
        caption = tables.latex(f"{path.parent.name}. {figures.told(png)}.")
        star = "*" if wide and VENUES[style]["columns"] > 1 else ""
        made.append({"name": name, "caption": caption, "star": star})
    texts = sorted((plan.root / "tables").glob("*/*.tex"))
    for path in texts:
        text = path.read_text("utf-8")
        write_text(target / "tables" / f"{path.parent.name}-{path.name}", text)
    names = [f"{path.parent.name}-{path.stem}" for path in texts]
    # LaTeX is full of braces: statements have other marks here.
    marks = {"variable_start_string": "<<", "variable_end_string": ">>"}
    marks |= {"block_start_string": "<%", "block_end_string": "%>", "comment_start_string": "<#"}
    pages = Environment(loader=FileSystemLoader(Path(__file__).parent), trim_blocks=True, **marks)
    for page in ("figures", "tables", "paper"):
        text = pages.get_template("paper.tex").render(page=page, figures=made, tables=names)
        write_text(target / f"{page}.tex", text)
    contact_sheet([target / "figures" / f"{one['name']}.png" for one in made], target)
    return target


def contact_sheet(paths: list[Path], folder: Path) -> Path:
    """Draw small copies of figures on one page, each under its name; return the PNG."""
    import matplotlib.pyplot as plt
    from PIL import Image

    figures.use_style()
    rows = -(-len(paths) // SHEET)
    fig, panels = plt.subplots(rows, SHEET, figsize=(2.2 * SHEET, 1.9 * rows), squeeze=False)
    for ax, path in zip(panels.flat, paths, strict=False):
        with Image.open(path) as image:
            small = image.convert("RGB")
        small.thumbnail((660, 560))
        ax.imshow(small)
        ax.set_title(path.stem, fontsize=5, fontweight="normal")
    for ax in panels.flat:
        ax.axis("off")
    return figures.save(fig, folder / "contact-sheet", keep=False)
