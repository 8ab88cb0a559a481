"""Every figure: what it draws is what it is given, and nothing lies over something else."""

from __future__ import annotations

import errno

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ragkit import irt
from ragkit.datasets import liverag, reported
from ragkit.errors import UsageError
from ragkit.report import figures, tables
from ragkit.report.plots import (
    base,
    corpus,
    data,
    judges,
    questions,
    retrieval,
    scaling,
)
from ragkit.report.plots import irt as item_response
from ragkit.systems import sweep

HOSTILE = "<script>alert(1)</script> 100 % $x_1$"
RNG = np.random.default_rng(0)
KINDS = ["basic", "semantic", "intra_document_reasoning", "project_related"]


def crossed(**levels):
    """Every combination of levels, with a value and its interval."""
    table = pd.MultiIndex.from_product(levels.values(), names=list(levels)).to_frame(index=False)
    value = RNG.uniform(0.2, 0.8, len(table))
    return table.assign(value=value, low=value - 0.1, high=value + 0.1, n=12)


def benchmark():
    frame = pd.DataFrame({"type": KINDS * 5, "text": ["what is the word for it"] * 20})
    return frame.assign(answer="it is this one")


def comparison(paper, table):
    printed = reported.load(paper, table)
    keyed = printed[["row", "column", "metric"]].assign(measured=1.1 * printed["value"])
    measured = tables.fill(printed, keyed)
    return tables.compare(printed, measured)


def wixqa_lengths():
    kinds = ["expertwritten", "simulated", "synthetic"] * 4
    frame = pd.DataFrame({"type": kinds, "text": "how do I do it", "answer": "you just do it"})
    label = "wixqa.jsonl 160 of 200 rows; embedded sample, 100 of 200 documents"
    return data.token_lengths(frame, reported.load("wixqa", "2"), unit="words", label=label)


def overview():
    names = ["wixqa", "enterpriserag_bench", "grag", "lost"]
    state = ["present", "partial", "present", "missing"]
    return pd.DataFrame({"dataset": names, "state": state, "documents": [200, 2000, np.nan, np.nan],
                         "questions": [160, 500, 100, np.nan], "scores": [np.nan, 9e4, 9e3, np.nan]})  # fmt: skip


def volumes(draw):
    sources = ["slack", "gmail", "google_drive", "confluence"]
    sizes = pd.DataFrame({"documents": [900, 500, 90, 40], "median": 800.0, "p95": 2000.0}, sources)
    if draw == "volumes":
        return data.volumes(sizes, reported.load("enterpriserag_bench", "9"))
    moves = pd.DataFrame({"random": [50, 20, 4, 1], "plausible": [20, 9, 1, 1]}, sources)
    printed = reported.load("enterpriserag_bench", "4")["value"]
    return data.misfiled(moves, sizes["documents"], printed)


def effects():
    frame = pd.DataFrame({"Phrasing": ["long", "short"] * 20, "words": RNG.integers(1, 30, 40)})
    table = crossed(categorization=["Phrasing"], measure=["words"], category=["long", "short"])
    return questions.effects(frame, table, measures={"words": ("Phrasing", "words")})


def categories(**options):
    table = crossed(categorization=["Answer Type", "Premise", "User Persona"], category=KINDS)
    return questions.by_category(table.rename(columns={"value": "share"}), label="share", **options)


def overlap():
    sets = {"expertwritten": "3", "simulated": "4"}
    table = crossed(
        set=list(sets), system=["bm25", "e5-small", "gold"], metric=["token_f1", "bleu"]
    )
    printed = pd.concat(reported.load("wixqa", number) for number in sets.values())
    printed = printed.groupby(["table", "metric"])["value"]
    return retrieval.overlap(table, printed, tables=sets, label="reader extractive, sample")


def ranked(draw):
    groups, systems = (
        ["an author/runs", "the same author/runs:Mistral-7B"],
        [f"s{n}" for n in range(12)],
    )
    if draw == "ranking":
        table = crossed(judge_group=groups, subject_id=systems).rename(columns={"value": "mean"})
        return retrieval.ranking(table, label="score,\nhigher is better")
    table = crossed(judge_group=groups, subject_id=systems, question_type=KINDS)
    table = table.rename(columns={"value": "score"})
    return retrieval.type_map(table, order=KINDS, label="score,\nhigher is better")


def first_ranks():
    ranks = pd.DataFrame({"bm25": [1, 2, np.nan, 3] * 5, "dense": [np.nan, 1, 4, 1] * 5})
    return retrieval.first_ranks(ranks.assign(type=KINDS * 5), depth=10, label="the sample " * 9)


def points():
    frame = pd.DataFrame(RNG.normal(size=(320, 2)), columns=["x", "y"])
    place = pd.MultiIndex.from_product(
        [["company", "web"], ["t-SNE", "UMAP"], ["slack", "a <new> source"], range(40)]
    ).to_frame(index=False, name=["corpus", "method", "source", "n"])
    frame = pd.concat([frame, place], axis=1).assign(
        trustworthiness=0.9, title=f"{HOSTILE} </script>"
    )
    return frame.assign(
        terms=frame["n"].map(lambda n: ["form, email", f"cost, {HOSTILE[-5:]}"][n % 2])
    )


def geometry(draw):
    corpora = ["company", "help centre", "web", "generated help centre"]
    if draw == "sweep":
        table = crossed(corpus=corpora, k=[5, 10, 20], seed=[0, 1])
        return corpus.by_clusters(
            table.drop(columns="value").assign(**dict.fromkeys(corpus.SWEPT, table["value"]))
        )
    table = crossed(corpus=corpora, variant=["chunks", "documents"], part=[0, 1])
    table = table.drop(columns="value").assign(**dict.fromkeys(corpus.SIMILARITIES, table["value"]))
    sizes = crossed(corpus=corpora, size=[20, 50, 100], repeat=[0, 1])
    return corpus.similarity(table, sizes.rename(columns={"value": "local_density"}))


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
    costs = pd.DataFrame(
        {"system": "BM25", "size": [500, 1000, 2000], "index_seconds": [1.0, 2.0, 4.0]}
    )
    costs = costs.assign(query_ms=1.0, index_bytes=1e6 * costs["size"], memory_bytes=1e9)
    return sweep.Scaling(recalls, costs, density, 10)


def scaled(draw):
    result = study()
    if draw == "costs":
        return scaling.costs(result.costs)
    if draw == "by_type":
        return scaling.by_type(result.summary(by_type=True, n_resamples=99), label="recall@10")
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


def likelihood_table():
    names = ["item's own scores", "continuous Bernoulli", "graded"]
    table = pd.DataFrame({"rmse": 0.5, "crps": 0.2}, pd.Index(names, name="likelihood"))
    ends = {f"{se}{kind}_difference": 0.01 for kind in ("mse", "crps") for se in ("", "se_")}
    return table.assign(**ends)


def checked():
    table = pd.DataFrame({"observed": [0.4, 0.2], "mean": [0.5, 0.2], "low": 0.1, "high": 0.6})
    return item_response.checks(table.set_axis(["mean", "item_sd"]))


STANDINGS = ["accepted\nby A", "offline, on answers\nthat Mistral-7B judged"]
SETS = ["liverag", "triviaqa", "popqa", "webquestions", "simpleqa", "natural_questions"]
DRAWN = {
    "rows": lambda: data.rows_at_hand(overview(), label="paper"),
    "lengths": wixqa_lengths,
    "articles": lambda: data.article_types(
        pd.Series({"article": 80.0, "known_issue": 5.0}), reported.load("wixqa", "text:3.1"), label="sample"
    ),
    "coverage": lambda: data.coverage(comparison("enterpriserag_bench", "10"), order=KINDS),
    "types": lambda: data.question_types(benchmark(), reported.load("enterpriserag_bench", "2")),
    "volumes": lambda: volumes("volumes"),
    "misfiled": lambda: volumes("misfiled"),
    "statuses": lambda: data.statuses(tables.counts(comparison("liverag", "4"))),
    "differences": lambda: data.differences(
        pd.concat([comparison("liverag", "4"), comparison("wixqa", "text:3.1")])
    ),
    "damage": lambda: judges.damage(crossed(change=["gold", "negated"]), label="gold answers"),
    "agreement": lambda: judges.agreement(
        crossed(held_out=["systems", "types"], against=["A", "B"], metric=["ROC AUC", "tau"]),
        targets={"ROC AUC": 0.92, "tau": 0.9},
    ),
    "calibration": lambda: judges.calibration(
        crossed(against=["A", "B"], probability=[0.1, 0.5, 0.9]).rename(columns={"value": "correct"})
    ),
    "standings": lambda: judges.standings(
        crossed(scale=STANDINGS, system=["baseline_bm25", "baseline_query_expansion"]), label="share"
    ),
    "table-4": lambda: questions.diversity(
        pd.DataFrame({"row": SETS * 2}).assign(**dict.fromkeys(questions.DIVERSITY, 1.5)),
        reported.load("liverag", "4"), aims={"ngram_diversity": 2.6},
    ),
    "words": lambda: questions.lengths({name: RNG.integers(1, 20, 30) for name in SETS}),
    "map": lambda: questions.question_map(points().rename(columns={"corpus": "set"}), trustworthiness=0.9),
    "mix": lambda: categories(mark="n", marked="configured", titles={"Premise": "p = 0.31"}),
    "recall-by-category": lambda: categories(line=0.5, lined="all questions"),
    "effects": effects,
    "by-type": lambda: retrieval.by_type(
        crossed(type=KINDS, system=["bm25", "dense", "new", "newer"]), order=KINDS, label="recall →"
    ),
    "ranking": lambda: ranked("ranking"),
    "type-map": lambda: ranked("types"),
    "first-ranks": first_ranks,
    "recalls": lambda: retrieval.recalls(
        crossed(system=["bm25", "hybrid-bge-reranked"], metric=["R@1", "R@5", "R@10"]), label="sample"
    ),
    "overlap": overlap,
    "similarity": lambda: geometry("similarity"),
    "sweep": lambda: geometry("sweep"),
    "maps": lambda: corpus.maps(points()),
    "scaling": lambda: scaled("scaling"),
    "scaling-bare": lambda: scaled("bare"),
    "costs": lambda: scaled("costs"),
    "scaling-types": lambda: scaled("by_type"),
    "likelihoods": lambda: item_response.likelihoods({"sample": likelihood_table()}),
    "checks": checked,
}  # fmt: skip
FITTED = {
    "joint": lambda fit, made: item_response.joint(fit),
    "joint-signed": lambda fit, made: item_response.joint(irt.fit(made.scores, disc="signed")),
    "abilities": lambda fit, made: item_response.abilities(fit, most=5),
    "engines": lambda fit, made: item_response.side_by_side(
        {"map": fit, "1pl": irt.fit(made.scores, model="1pl"), "again": fit}
    ),
    "bins": lambda fit, made: item_response.over_bins(
        made.scores, pd.qcut(fit.items["diff"], 2, labels=["1", "2"]), systems=["s03", "s01"], label="score"
    ),
    "boxes": lambda fit, made: item_response.boxes(
        fit.items["diff"], pd.DataFrame(dict.fromkeys(liverag.CATEGORIZATIONS, KINDS * 10), fit.items.index)
    ),
    "information": lambda fit, made: item_response.information({"simulated": fit, "real": fit}),
    "recovery": lambda fit, made: item_response.coverage(
        crossed(parameter=["theta", "diff", "log_disc"], seed=[0, 1]).rename(columns={"value": "r"}).assign(coverage=0.9)
    ),
}  # fmt: skip


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
    assert fig.get_figwidth() in figures.WIDTHS.values()
    fig.canvas.draw()
    box = fig.get_tightbbox()
    width, height = fig.get_size_inches()
    assert min(box.x0, box.y0) > -0.02, "cut off at the left or below"
    assert max(box.x1 - width, box.y1 - height) < 0.02, "cut off at the right or above"
    for legend in fig.legends:
        for ax in fig.axes:
            assert not legend.get_window_extent().overlaps(ax.get_window_extent())
    assert any(ax.get_xlabel() or ax.get_ylabel() for ax in fig.axes) or fig.get_supxlabel()


def test_dots_are_values_with_their_intervals():
    table = pd.DataFrame(
        {"kind": ["a", "b"], "value": [0.5, 0.9], "low": [0.25, 0.95], "high": [0.75, 0.97]}
    )
    _, ax = base.axes()
    base.dots(ax, table, "kind")
    lines = [line.get_xydata().tolist() for line in ax.get_lines()]
    # The values, the first interval, and the second, which reaches at least to its value.
    for drawn in ([[0.5, 0], [0.9, 1]], [[0.25, 0], [0.75, 0]], [[0.9, 1], [0.97, 1]]):
        assert drawn in lines


def test_marks_differ_and_are_the_same_everywhere():
    marks = base.marks_of(["new", "BM25", "other", "dense", "third"])
    assert len(set(marks.values())) == 5
    assert marks["BM25"] == figures.MARKS["BM25"] == base.marks_of(["BM25"])["BM25"]
    assert len(set(figures.SPARE)) == len(figures.SPARE)


def test_scaling_draws_the_summary_and_hollows_what_was_held_out():
    left, right = scaled("scaling").axes
    hollow = [line for line in left.get_lines() if line.get_markerfacecolor() == "white"]
    assert [x for line in hollow for x in line.get_xdata()] == [2000]  # of the system with a fit
    assert [text.get_text() for text in left.get_xticklabels()] == ["500", "1k", "2k"]
    assert list(right.get_lines()[0].get_ydata()) == [0.4, 0.5]
    titles = [ax.get_title() or ax.get_title(loc="left") for ax in scaled("by_type").axes]
    assert titles == ["basic (15)", "semantic (15)"]
    assert scaled("costs").axes[0].get_lines()[0].get_ydata().tolist() == [1, 2, 4]


def test_items_subjects_and_bins_are_drawn_as_fitted(fitted, made):
    fig = item_response.joint(fitted)
    drawn = np.vstack([dots.get_offsets() for dots in fig.axes[2].collections])
    points = fitted.items[["diff", "log_disc"]].to_numpy()
    assert {tuple(p) for p in points} <= {tuple(p) for p in np.asarray(drawn)}
    heights = item_response.abilities(fitted, most=5).axes[0].lines[0].get_ydata()
    assert len(heights) == 5
    assert (np.diff(heights) >= 0).all()
    bins = pd.qcut(fitted.items["diff"], 2, labels=["easy", "hard"])
    ax = item_response.over_bins(made.scores, bins, systems=["s03"], label="score").axes[0]
    own = made.scores[made.scores["subject_id"] == "s03"]
    want = own.groupby(own["item_id"].map(bins), observed=False)["score"].mean()
    assert ax.lines[0].get_ydata() == pytest.approx(want.to_numpy())
    curve = item_response.information({"2pl": fitted}).axes[0].lines[0].get_ydata()
    assert curve == pytest.approx(fitted.information().sum(axis=1).to_numpy() ** -0.5)


def test_categories_carry_their_counts(fitted):
    kinds = pd.DataFrame({"kind": ["a", "b", "b", "b"] * 10}, fitted.items.index)
    fig = item_response.boxes(fitted.items["diff"], kinds)
    labels = {label.get_text() for ax in fig.axes for label in ax.get_yticklabels()}
    assert {"a (10)", "b (30)"} <= labels


def test_the_explorer_needs_no_network_and_shows_titles_as_text():
    rows = points()
    rows = rows[rows["method"] == "UMAP"]
    bundle = corpus.explorer(rows)._repr_mimebundle_()
    page = bundle["text/html"]
    assert "<script src=" not in page
    assert "<script>alert" not in page  # a title is text
    assert page == corpus.explorer(rows)._repr_mimebundle_()["text/html"]
    traces = bundle["application/vnd.plotly.v1+json"]["data"]
    shown = [row for trace in traces for row in trace["customdata"]]
    assert len(shown) == 160
    assert all(title.startswith("&lt;script&gt;") for title, _, _ in shown)


def sketch():
    fig, ax = plt.subplots(figsize=figures.size("column"))
    ax.scatter(np.arange(50), np.arange(50) ** 2, rasterized=True, color=figures.mark("liverag")[0])
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
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plot.pdf", "plot.png"]


def test_sizes_by_name():
    assert figures.size("column")[0] == 3.3
    assert figures.size("page", 2)[1] == 2
    with pytest.raises(UsageError, match="did you mean 'column'"):
        figures.size("colunm")
