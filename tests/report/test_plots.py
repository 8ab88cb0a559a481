"""Every figure: what it draws is what it is given, and nothing lies over something else."""

from __future__ import annotations

import errno
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ragkit import irt
from ragkit.datasets import liverag, reported
from ragkit.errors import DataError, UsageError
from ragkit.report import figures, tables
from ragkit.report.plots import base, corpus, data, questions, retrieval, scaling
from ragkit.report.plots import irt as item_response
from ragkit.systems import sweep

HOSTILE = "<script>alert(1)</script> 100 % $x_1$"
RNG = np.random.default_rng(0)
KINDS = ["basic", "semantic", "intra_document_reasoning", "project_related"]
NAMES = ["bm25", "hybrid-bge-reranked", "new"]


def crossed(**levels):
    """Every combination of levels, with a value and its interval."""
    table = pd.MultiIndex.from_product(levels.values(), names=list(levels)).to_frame(index=False)
    value = RNG.uniform(0.2, 0.8, len(table))
    return table.assign(value=value, low=value - 0.1, high=value + 0.1, n=12)


def comparison(paper, table):
    printed = reported.load(paper, table)
    keyed = printed[["row", "column", "metric"]].assign(measured=1.1 * printed["value"])
    measured = tables.fill(printed, keyed)
    return tables.compare(printed, measured)


def volumes():
    sources = ["slack", "gmail", "google_drive", "confluence"]
    sizes = pd.DataFrame({"documents": [900, 500, 90, 40], "median": 800.0, "p95": 2000.0}, sources)
    return data.volumes(sizes, reported.load("enterpriserag_bench", "9"))


def effects():
    frame = pd.DataFrame({"Phrasing": ["long", "short"] * 20, "words": RNG.integers(1, 30, 40)})
    table = crossed(categorization=["Phrasing"], measure=["words"], category=["long", "short"])
    return questions.effects(frame, table, measures={"words": ("Phrasing", "words")})


def categories(**options):
    table = crossed(categorization=["Answer Type", "Premise", "User Persona"], category=KINDS)
    table = table.rename(columns={"value": "share"}).assign(configured=0.5)
    return questions.by_category(table, label="share", **options)


def ranked(draw):
    groups = ["an author/runs", "the same author/runs:Mistral-7B"]
    levels = {"judge_group": groups, "subject_id": [f"s{n}" for n in range(12)]}
    label = "score,\nhigher is better"
    if draw == "ranking":
        return retrieval.ranking(crossed(**levels).rename(columns={"value": "mean"}), label=label)
    table = crossed(**levels, question_type=KINDS).rename(columns={"value": "score"})
    return retrieval.type_map(table, order=KINDS, label=label)


def first_ranks():
    ranks = pd.DataFrame({"bm25": [1, 2, np.nan, 3] * 5, "dense": [np.nan, 1, 4, 1] * 5})
    return retrieval.first_ranks(ranks.assign(type=KINDS * 5), depth=10, label="the sample " * 9)


def points():
    frame = pd.DataFrame(RNG.normal(size=(320, 2)), columns=["x", "y"])
    place = pd.MultiIndex.from_product(
        [["company", "web"], ["t-SNE", "UMAP"], ["slack", "a <new> source"], range(40)]
    ).to_frame(index=False, name=["corpus", "method", "source", "n"])
    frame = pd.concat([frame, place], axis=1)
    terms = np.resize(["form, email", f"cost, {HOSTILE[-5:]}"], len(frame))
    return frame.assign(trustworthiness=0.9, title=f"{HOSTILE} </script>", terms=terms)


def sheet(draw):
    """Panels as notebooks ask for them."""
    if draw == "forest":
        table = crossed(what=["a, in words", "b"], system=NAMES, kind=KINDS)
        style = {"hue": "system", "also": "printed", "panels": {"col": "what"}, "ends": (0, 1)}
        style |= {"lines": {"b": 0.5, "a, in words": (0.2, 0.4)}, "log": {"b": True}}
        label, notes = {"b": "share of b →", "a, in words": "a →"}, ["measured on the sample " * 9]
        return base.forest(table.assign(printed=0.3), "kind", label, notes=notes, **style)
    if draw == "rows":
        table = crossed(kind=["documents", "questions"], dataset=[f"set {n}" for n in range(12)])
        return base.forest(table, "dataset", "rows at hand (log scale)", hue="kind", log=True)
    if draw == "upright":
        return base.forest(crossed(place=range(9)), "place", "ability", orient="v", height=2.4)
    table = crossed(measure=["in-cluster", "gap", "silhouette"], corpus=NAMES, k=[5, 10])
    style = {"hue": "corpus", "col": "measure", "height": 2.1, "log": draw == "sizes"}
    return base.trends(table, "k", "value", "clusters k", line=7, ylabel="measure →", **style)


def study():
    rows = [
        (system, size, f"q{q}", KINDS[q % 2], float(RNG.random() < 0.9 - 0.2 * n))
        for system, last in (("BM25", 3), ("vectors", 2))
        for n, size in enumerate([500, 1000, 2000][:last])
        for q in range(30)
    ]
    recalls = pd.DataFrame(rows, columns=["system", "size", "question_id", "type", "recall"])
    density = pd.DataFrame({"system": "vectors", "size": [500, 1000], "mean": [0.4, 0.5]})
    density = density.assign(low=density["mean"] - 0.02, high=density["mean"] + 0.02)
    costs = pd.DataFrame({"size": [500, 1000, 2000], "index_seconds": [1.0, 2.0, 4.0]})
    costs = costs.assign(system="BM25", query_ms=1.0, memory_bytes=1e9)
    costs["index_bytes"] = 1e6 * costs["size"]
    return sweep.Scaling(recalls, costs, density, 10)


def scaled(draw):
    result = study()
    if draw == "costs":
        return scaling.costs(result.costs)
    summary, tested = result.summary(n_resamples=99), result.tested(n_resamples=50)
    if draw == "bare":
        return scaling.scaling(summary, result.density.iloc[:0], {})
    return scaling.scaling(summary, result.density, tested, label="recall@10")


@pytest.fixture(scope="session")
def made():
    return irt.simulate(12, 40, seed=1)


@pytest.fixture(scope="session")
def fitted(made):
    return irt.fit(made.scores)


def checked():
    table = pd.DataFrame({"observed": [0.4, 0.2], "mean": [0.5, 0.2], "low": 0.1, "high": 0.6})
    return item_response.checks(table.set_axis(["mean", "item_sd"]))


STANDINGS = ["accepted\nby A", "offline, on answers\nthat Mistral-7B judged"]
SETS = ["liverag", "triviaqa", "popqa", "webquestions", "simpleqa", "natural_questions"]
DRAWN = {
    "forest": lambda: sheet("forest"),
    "forest-rows": lambda: sheet("rows"),
    "forest-upright": lambda: sheet("upright"),
    "trends": lambda: sheet("trends"),
    "trends-sizes": lambda: sheet("sizes"),
    "coverage": lambda: data.coverage(comparison("enterpriserag_bench", "10"), order=KINDS),
    "volumes": volumes,
    "statuses": lambda: data.statuses(tables.counts(comparison("liverag", "4"))),
    "differences": lambda: data.differences(
        pd.concat([comparison("liverag", "4"), comparison("wixqa", "text:3.1")])
    ),
    "calibration": lambda: retrieval.calibration(
        crossed(against=["A", "B"], probability=[0.1, 0.5, 0.9]).rename(columns={"value": "correct"})
    ),
    "standings": lambda: retrieval.standings(
        crossed(scale=STANDINGS, system=NAMES), label="share"
    ),
    "table-4": lambda: questions.diversity(
        pd.DataFrame({"row": SETS * 2}).assign(**dict.fromkeys(questions.DIVERSITY, 1.5)),
        reported.load("liverag", "4"),
    ),
    "words": lambda: questions.lengths({name: RNG.integers(1, 20, 30) for name in [*SETS, *NAMES]}),
    "map": lambda: questions.question_map(points().rename(columns={"corpus": "set"}), trustworthiness=0.9),
    "mix": lambda: categories(also="configured", titles={"Premise": "p = 0.31"}),
    "recall-by-category": lambda: categories(line=0.5, lined="all questions"),
    "effects": effects,
    "by-type": lambda: retrieval.by_type(
        crossed(type=KINDS, system=["bm25", "dense", "new", "newer"]), order=KINDS, label="recall →"
    ),
    "ranking": lambda: ranked("ranking"),
    "type-map": lambda: ranked("types"),
    "first-ranks": first_ranks,
    "maps": lambda: corpus.maps(points()),
    "scaling": lambda: scaled("scaling"),
    "scaling-bare": lambda: scaled("bare"),
    "costs": lambda: scaled("costs"),
    "checks": checked,
}  # fmt: skip
FITTED = {
    "joint": lambda fit, made: item_response.joint(fit),
    "joint-signed": lambda fit, made: item_response.joint(irt.fit(made.scores, disc="signed")),
    "engines": lambda fit, made: item_response.side_by_side(
        {"map": fit, "1pl": irt.fit(made.scores, model="1pl"), "again": fit}
    ),
    "bins": lambda fit, made: item_response.over_bins(
        made.scores, pd.qcut(fit.items["diff"], 2, labels=["1", "2"]), systems=["s03", "s01"], label="score"
    ),
    "boxes": lambda fit, made: item_response.over_categories(
        fit.items["diff"], pd.DataFrame(dict.fromkeys(liverag.CATEGORIZATIONS, KINDS * 10), fit.items.index)
    ),
    "information": lambda fit, made: item_response.information({"simulated": fit, "real": fit}),
    "wright": lambda fit, made: item_response.wright(fit),
    "item-fit": lambda fit, made: item_response.item_fit(irt.item_fit(fit).assign(matrix="simulated")),
    "curves": lambda fit, made: item_response.curves(fit, made.scores),
    "categories": lambda fit, made: item_response.categories(graded(made)),
    "differential": lambda fit, made: item_response.differential(
        irt.link(fit, fit).items.assign(z=np.linspace(-4, 4, 40)), groups=("bm25", "dense")
    ),
}  # fmt: skip


def graded(made):
    levels = (0, 0.25, 0.5, 1)
    return irt.fit(irt.nearest(made.scores, levels), likelihood="graded", levels=levels)


@pytest.fixture(autouse=True)
def _style():
    mpl.use("Agg")
    with plt.style.context("default"):
        figures.use_style()
        yield
    plt.close("all")


def draw(name, request):
    if name in DRAWN:
        return DRAWN[name]()
    return FITTED[name](request.getfixturevalue("fitted"), request.getfixturevalue("made"))


@pytest.mark.parametrize("name", [*DRAWN, *FITTED])
def test_a_figure_is_as_wide_as_a_column_and_nothing_is_cut_off_or_covered(name, request):
    fig = draw(name, request)
    shown = [text.get_text() for text in fig.findobj(mpl.text.Text)]
    assert not [text for text in shown if "mathdefault" in text]
    assert fig.get_figwidth() in figures.WIDTHS.values()
    fig.canvas.draw()
    box = fig.get_tightbbox()
    width, height = fig.get_size_inches()
    assert min(box.x0, box.y0) > -0.02, "cut off at the left or below"
    assert max(box.x1 - width, box.y1 - height) < 0.02, "cut off at the right or above"
    for legend in fig.legends:
        for ax in fig.axes:
            assert not legend.get_window_extent().overlaps(ax.get_window_extent())
    named = [text for ax in fig.axes for text in (ax.get_xlabel(), ax.get_ylabel())]
    assert any([*named, *(part.get_supxlabel() for part in (fig, *fig.subfigs))])


def test_dots_are_values_with_their_intervals():
    table = pd.DataFrame({"kind": ["a", "b"], "value": [0.5, 0.9]})
    table = table.assign(low=[0.25, 0.95], high=[0.75, 0.97])
    _, ax = base.axes()
    base.dots(ax, table, "kind")
    lines = [line.get_xydata().tolist() for line in ax.get_lines()]
    # The values, the first interval, and the second, which reaches at least to its value.
    for drawn in ([[0.5, 0], [0.9, 1]], [[0.25, 0], [0.75, 0]], [[0.9, 1], [0.97, 1]]):
        assert drawn in lines


def test_marks_differ_and_are_the_same_everywhere():
    marks = figures.marks_of(["new", "BM25", "other", "dense", "third"])
    assert len(set(marks.values())) == 5
    assert marks["BM25"] == figures.MARKS["BM25"] == figures.marks_of(["BM25"])["BM25"]
    assert len(set(figures.SPARE)) == len(figures.SPARE)


def test_scaling_draws_the_summary_and_hollows_what_was_held_out():
    left, right = scaled("scaling").axes
    hollow = [line for line in left.get_lines() if line.get_markerfacecolor() == "white"]
    assert [x for line in hollow for x in line.get_xdata()] == [2000]  # of the system with a fit
    assert [text.get_text() for text in left.get_xticklabels()] == ["500", "1k", "2k"]
    assert list(right.get_lines()[0].get_ydata()) == [0.4, 0.5]
    assert scaled("costs").axes[0].get_lines()[0].get_ydata().tolist() == [1, 2, 4]


def test_items_subjects_and_bins_are_drawn_as_fitted(fitted, made):
    fig = item_response.joint(fitted)
    drawn = np.vstack([dots.get_offsets() for dots in fig.axes[2].collections])
    points = fitted.items[["diff", "log_disc"]].to_numpy()
    assert {tuple(p) for p in points} <= {tuple(p) for p in np.asarray(drawn)}
    bins = pd.qcut(fitted.items["diff"], 2, labels=["easy", "hard"])
    ax = item_response.over_bins(made.scores, bins, systems=["s03"], label="score").axes[0]
    own = made.scores[made.scores["subject_id"] == "s03"]
    want = own.groupby(own["item_id"].map(bins), observed=False)["score"].mean()
    assert ax.lines[0].get_ydata() == pytest.approx(want.to_numpy())
    total = fitted.information().sum(axis=1).to_numpy()
    left, right = item_response.information({"2pl": fitted}).axes
    assert left.lines[0].get_ydata() == pytest.approx(total)
    assert right.lines[0].get_ydata() == pytest.approx(total**-0.5)
    kinds = pd.DataFrame({"kind": ["a", "b", "b", "b"] * 10}, fitted.items.index)
    fig = item_response.over_categories(fitted.items["diff"], kinds)
    labels = {label.get_text() for ax in fig.axes for label in ax.get_yticklabels()}
    assert {"a (10)", "b (30)"} <= labels


def test_item_curves_are_those_of_the_model(fitted, made):
    (ax,) = item_response.curves(fitted, made.scores, items=["q01"], bins=3).axes
    line = ax.lines[0]
    want = fitted.characteristic_curves(line.get_xdata())["q01"]
    assert line.get_ydata() == pytest.approx(want.to_numpy())
    own = made.scores[made.scores["item_id"] == "q01"].set_index("subject_id")["score"]
    thirds = pd.qcut(fitted.subjects["theta"].rank(method="first"), 3, labels=False)
    assert ax.lines[1].get_ydata() == pytest.approx(own.groupby(thirds).mean().to_numpy())
    ax = item_response.categories(graded(made), items=["q01"]).axes[0]
    levels = np.array([line.get_ydata() for line in ax.lines])
    assert levels.shape == (4, 121)
    assert levels.sum(axis=0) == pytest.approx(1)
    with pytest.raises(DataError, match="only a graded model"):
        item_response.categories(fitted)


def test_far_items_do_not_decide_an_axis_and_are_counted(fitted):
    items = fitted.items.copy()
    items.loc[items.index[:2], "diff"] = [-100.0, 100.0]
    fig = item_response.joint(replace(fitted, items=items))
    assert max(map(abs, fig.axes[2].get_xlim())) < 20
    assert "2 of 40 lie beyond the axis" in fig.axes[2].get_xlabel()
    table = pd.DataFrame({"observed": [0.4], "mean": np.nan, "low": np.nan, "high": np.nan}, ["sd"])
    with pytest.raises(DataError, match="generates no scores"):
        item_response.checks(table)


def test_of_many_items_chance_marks_none():
    """Of 100 items, one 2.6 errors away is what chance gives: 100 * .0093 is no false discovery."""
    items = pd.DataFrame({"diff": np.linspace(-2, 2, 100), "z": 0.1})
    items["linked_diff"] = items["diff"] + 0.1
    for far, said in ((2.6, "0 differ"), (-5.0, "1 differ"), (np.nan, "0 differ")):
        items.loc[7, "z"] = far
        fig = item_response.differential(items, groups=("one", "two"))
        texts = [text.get_text() for text in fig.legends[0].get_texts()]
        assert texts[1] == f"{said} (Benjamini-Hochberg, 5 %)"
        plt.close(fig)


def sketch():
    fig, ax = plt.subplots(figsize=figures.size("column"))
    ax.scatter(np.arange(50), np.arange(50) ** 2, rasterized=True)
    ax.set_xlabel("document length (words)")
    return fig


def test_saving_twice_gives_the_same_bytes(tmp_path):
    one, two = (figures.save(sketch(), tmp_path / name / "plot") for name in ("one", "two"))
    for suffix in (".png", ".pdf"):
        assert one.with_suffix(suffix).read_bytes() == two.with_suffix(suffix).read_bytes()
    assert one.suffix == ".png"
    pdf = one.with_suffix(".pdf").read_bytes()
    assert b"CreationDate" not in pdf
    assert b"/Type3" not in pdf  # Type 42 fonts can be edited and searched


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = figures.save(sketch(), tmp_path / "plot")
    before = path.read_bytes()
    fig = sketch()

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fig, "savefig", full)
    with pytest.raises(OSError, match="No space"):
        figures.save(fig, tmp_path / "plot")
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.glob("[!.]*")) == ["plot.pdf", "plot.png"]


def test_sizes_by_name():
    assert figures.size("column")[0] == 3.3
    assert figures.size("page", 2)[1] == 2
    with pytest.raises(UsageError, match="did you mean 'column'"):
        figures.size("colunm")
