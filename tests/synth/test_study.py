"""A written company as a reader meets it: the embedded sample's, replayed from its ledger."""

from __future__ import annotations

import pytest

from ragkit import explore, paths
from ragkit.datasets import reported
from ragkit.errors import DataError, UsageError
from ragkit.measures.describe import composition
from ragkit.report.plots import data as plots
from ragkit.synth import sample
from ragkit.synth.study import Company


@pytest.fixture(scope="module")
def company(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        folder = sample.cached_company()
        stamp = (folder / "statistics.json").stat().st_mtime_ns
        assert sample.cached_company() == folder
        assert (folder / "statistics.json").stat().st_mtime_ns == stamp, "replayed once"
    corrected = Company(folder, official=paths.SAMPLE / "enterpriserag_bench")
    assert set(corrected.documents.index) == set(Company(folder).documents.index)
    return corrected


def test_records_agree_with_one_another(company):
    notes, ids = company.notes, set(company.documents.index)
    assert set(notes.index) == ids
    assert {d for gold in company.questions["gold_doc_ids"] for d in gold} <= ids
    copies = notes["kind"] == "near-duplicate"
    assert set(notes.loc[~copies, "key"]) <= set(company.entries)
    assert set(notes.loc[~copies, "block"]) == set(company.blocks["name"])
    pairs = company.near_duplicates
    assert len(pairs) == copies.sum() == company.statistics["kinds"]["near-duplicate"]
    for original, duplicate, changed in pairs.itertuples(index=False):
        assert changed
        assert company.document(original)["text"] != company.document(duplicate)["text"]
    assert company.moves.sum().to_dict() == company.statistics["moved"]


def test_a_brief_stands_beside_its_document(company):
    doc_id = company.notes.index[company.notes["kind"] == "cluster"][0]
    entry = company.entries[company.notes.loc[doc_id, "key"]]
    brief, document = company.brief(doc_id), company.document(doc_id)
    assert brief["title"] == document["title"] == entry["title"]
    for part in (entry["summary"], entry["carries"], *entry["people"]):
        assert part in brief["text"]
    page = explore.documents([brief, document], notes=["brief", "document"], columns=2).data
    assert page.index("<b>brief</b>") < page.index("<b>document</b>")


def test_structure_has_the_papers_names(company):
    found = company.structure().set_index(["row", "column"])["measured"]
    low, high = (found["completeness_cluster", end] for end in ("lowest", "highest"))
    assert 2 <= low <= high <= 10
    assert found["corpus", "source_types"] == 9
    assert found["total", "families"] == 3


def test_unknown_things_are_refused(company, tmp_path):
    with pytest.raises(DataError, match="no finished company"):
        Company(tmp_path)
    with pytest.raises(UsageError, match="no document"):
        company.document("dsid_0")
    with pytest.raises(UsageError, match=r"no stage 'topic'\n.*did you mean 'topics'"):
        company.plan("topic")


def test_volumes_have_a_row_for_each_source(company):
    table9 = reported.load("enterpriserag_bench", "9")
    sizes = composition(company.documents.reset_index(drop=True))
    fig = plots.volumes(sizes, table9)
    labels = [tick.get_text() for tick in fig.axes[0].get_yticklabels()]
    assert labels[0] == "slack"
    assert len(labels) == 9
