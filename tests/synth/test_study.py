"""A generated company as a reader meets it."""

from __future__ import annotations

import pytest

from ragkit.datasets import reported
from ragkit.errors import DataError, UsageError
from ragkit.measures.describe import composition
from ragkit.report.plots import data as plots
from ragkit.synth import generate
from ragkit.synth import study as companies
from ragkit.synth.study import Company, pages, question_cards


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("company") / "made"
    generate(folder, documents=500, seed=3, questions=30)
    return Company(folder)


def test_records_agree_with_one_another(made):
    assert len(made.documents) == 500
    assert len(made.questions) == 30
    assert {d for gold in made.questions["gold_doc_ids"] for d in gold} <= set(made.documents.index)
    assert set(made.projects) | set(made.clusters) == set(made.groups)
    assert set(made.near_duplicates["duplicate"]) <= set(made.documents.index)
    moved = made.statistics["stages"]["4-noise"]["moved"]
    assert made.moves.sum().to_dict() == moved
    rejected = made.statistics["stages"]["5-questions"]["rejected"]
    assert made.rejected["drafts"].sum() == sum(rejected.values())


def test_generated_again_gives_the_same_bytes(made):
    seconds, same = made.again()
    assert same
    assert list(seconds["stage"]) == list(companies.STAGES)
    assert (seconds["seconds"] >= 0).all()


def test_a_changed_file_is_noticed(made, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(made.folder, copy)
    with open(copy / "questions.jsonl", "a") as file:
        file.write("{}\n")
    assert not Company(copy).again()[1]


def test_structure_has_the_papers_names(made):
    found = made.structure().set_index(["row", "column"])["measured"]
    assert 4 <= found["completeness_cluster", "lowest"] <= 10
    assert found["corpus", "source_types"] == 9
    assert found["total", "families"] == 3


def test_statements_show_the_value(made):
    fact = made.facts[made.facts["sources"].map(len) > 1].iloc[0]
    table = made.statements(fact.name)
    assert list(table["doc_id"]) == fact["sources"]
    assert table["says"].str.lower().str.contains(fact["value"].lower(), regex=False).all()
    assert fact["statement"] in made.marks(fact["sources"][0])


def test_line_ends_at_the_head(made):
    line = made.line(made.employees["name"].iloc[-1])
    assert line[-1] == made.employees["name"].iloc[0]
    with pytest.raises(UsageError, match="nobody is called"):
        made.line("Nobody")


def test_mentions_are_documents_of_the_group(made):
    code, project = next(iter(made.projects.items()))
    found = made.mentions(code, code)
    assert found
    assert set(found) <= {row["doc_id"] for row in project["documents"]}
    with pytest.raises(UsageError, match="no project or cluster"):
        made.mentions("NOWHERE", "x")


def test_pages_mark_words_and_escape_the_rest():
    document = {
        "source_type": "slack",
        "path": "slack/x.json",
        "title": "A <b>",
        "content": "It took 12 hours, not 120, 3.12 or 12.",
        "channel": "ops & co",
    }
    page = pages([document], marks=["12"], notes=["Why?"]).data
    assert "A &lt;b&gt;" in page
    assert "channel: ops &amp; co" in page
    assert page.count("<mark") == 2
    with pytest.raises(UsageError, match="as many notes"):
        pages([document], notes=["a", "b"])


def test_question_cards_show_each_type_once(made):
    page = question_cards(made).data
    for kind in made.questions["type"].unique():
        assert page.count(f"<b>{kind.replace('_', ' ')}</b>") == 1


def test_unknown_things_are_refused(made, tmp_path):
    with pytest.raises(DataError, match="no finished generation"):
        Company(tmp_path)
    with pytest.raises(UsageError, match="no document"):
        made.document("dsid_0")
    with pytest.raises(UsageError, match="no fact"):
        made.statements("nothing")


def test_figures(made):
    table9 = reported.load("enterpriserag_bench", "9")
    frame = made.documents.rename(columns={"source_type": "source", "content": "text"})
    sizes = composition(frame.reset_index(drop=True))
    fig = plots.volumes(sizes, table9)
    labels = [tick.get_text() for tick in fig.axes[0].get_yticklabels()]
    assert labels[0] == "slack"
    assert len(labels) == 9
