import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragkit import datasets, paths, schema
from ragkit.datasets import registry
from ragkit.errors import DataError, HashMismatch, MissingData, RagkitError, UsageError
from ragkit.files import read_frame
from tests.conftest import bytes_of
from tests.datasets.official import (
    COLUMNS,
    EXPERT,
    KB,
    NQ,
    OFFICIAL,
    OWNER,
    PARQUET,
    ZIP,
    contents,
    entry,
    load,
    register,
    register_all,
    write,
)

NAMES = datasets.names()
EXPECTED = json.loads(Path(__file__).with_name("expected.json").read_text("utf-8"))
IN_SAMPLE = [name for name in NAMES if datasets.in_sample(name)]
ERB = "enterpriserag_bench/questions.jsonl"
EXTRA = "enterpriserag_bench/extra_questions.jsonl"
JUDGED = "enterpriserag_bench/per_question_judge_scores.csv.gz"
GRAG = "liverag/grag_factor_analysis_query_level_scores.csv"
POPQA = "comparison_questions/popqa_model_collaboration_2000.json"
RETRIEVAL = "wixqa/expertwritten_retrieval_scores_pulseagent.json"
CZECH = "irt/czech_simpleqa_grades_5models.csv.gz"
LSAT6 = "irt/mirt_LSAT6_freq.csv"
SAT12 = "irt/mirt_SAT12_raw.csv"
ANSWERS = "enterpriserag_bench/system_answers_jsonl.zip"
JIRA_SLICE = "enterpriserag_bench/jira_slice_0001.zip"
MORGANA = "liverag/datamorgana_qa_multi_n50.tsv"


@pytest.fixture
def official(monkeypatch):
    """A registry that knows the small files by their row counts alone."""
    register_all(monkeypatch)


def spoil(folder, path, change):
    """Write the dataset that a file belongs to, with that file changed; return the error."""
    name = OWNER[path]
    files = contents(name)
    changed = change(files[path])
    files[path] = files[path] if changed is None else changed
    write(folder, files)
    return failure(name, folder)


def failure(name, folder):
    with pytest.raises(RagkitError) as info:
        load(name, folder)
    assert isinstance(info.value, DataError)
    return info.value


def each(change):
    """Apply a change to every row."""
    return lambda rows: [change(row) for row in rows] and None


def same(one, two):
    assert list(one.frames) == list(two.frames)
    for kind in one.frames:
        pd.testing.assert_frame_equal(one.frames[kind], two.frames[kind])
    pd.testing.assert_frame_equal(one.provenance, two.provenance)


# ---------------------------------------------------------------------- official layouts, complete


@pytest.mark.parametrize("name", NAMES)
def test_every_dataset_loads_from_its_official_layout(name, data, monkeypatch):
    register_all(monkeypatch, pinned=True)
    write(data, OFFICIAL[name])
    before = bytes_of(data)
    first = load(name, data)
    assert (first.partial, first.substitute(), first.label) == (False, "", "the test")
    assert sorted(first.provenance["file"]) == sorted(datasets.files(name))
    shown = {kind: frame.to_dict("records") for kind, frame in first.frames.items()}
    # Checked by hand against official.json; null is a missing value.
    assert json.loads(json.dumps(shown).replace("NaN", "null")) == EXPECTED[name]
    for kind, frame in first.frames.items():
        if kind in schema.COLUMNS:
            schema.check(frame, kind)
        frame.iloc[0] = None  # reaches neither the files nor the next caller
    assert bytes_of(data) == before
    same(load(name, data), load(name, data))


def test_wixqa_configurations_may_be_missing_and_are_named(data, monkeypatch):
    register_all(monkeypatch, pinned=True)
    files = contents("wixqa")
    files["wixqa/wixqa_simulated/test.jsonl"] = files[KB] = None
    wixqa = load("wixqa", write(data, files))
    assert wixqa.questions["type"].unique().tolist() == ["expertwritten", "synthetic"]
    assert wixqa.gaps == (
        "wix_kb_corpus/wix_kb_corpus.jsonl missing",
        "wixqa_simulated/test.jsonl missing",
    )
    assert wixqa.substitute("simulated") == "wixqa_simulated/test.jsonl missing"
    assert wixqa.substitute("expertwritten") == ""
    with pytest.raises(MissingData, match=r"wixqa .partial: .* has no documents"):
        _ = wixqa.documents


def slices():
    members = list(OFFICIAL["enterpriserag_bench"][ZIP].items())
    return {
        "enterpriserag_bench/slack_slice_0001.zip": dict(members[:1]),
        "enterpriserag_bench/slack_slice_0002.zip": dict(members[1:2]),
        "enterpriserag_bench/jira_slice_0001.zip": dict(members[2:]),
    }


def test_enterprise_slices_stand_in_for_the_corpus(data, monkeypatch):
    total = entry(ZIP, pinned=False, rows=511_962)
    register(monkeypatch, *(entry(path) for path in (ERB, EXTRA)), total)
    files = contents("enterpriserag_bench") | {ZIP: None}
    write(data, files)
    with pytest.raises(MissingData):
        _ = load("enterpriserag_bench", data).documents
    write(data, slices())
    bench = load("enterpriserag_bench", data)
    assert bench.documents["doc_id"].tolist() == ["dsid_3", "dsid_1", "dsid_2"]
    assert bench.label == "partial: all_documents.zip 3 of 511,962 rows"
    # The same slices in the cache are the same documents, not duplicates.
    write(paths.cache_dir(), slices())
    same(load("enterpriserag_bench", data), bench)
    # A partial corpus may lack gold documents.
    (data / "enterpriserag_bench" / "jira_slice_0001.zip").unlink()
    (paths.cache_dir() / "enterpriserag_bench" / "jira_slice_0001.zip").unlink()
    assert len(load("enterpriserag_bench", data).documents) == 2


def test_the_released_archive_is_read_as_it_is(data, monkeypatch):
    """Two files may have one id, a thread may be empty, and the questions lie among the documents."""
    register(monkeypatch, *(entry(path) for path in (ERB, EXTRA)), entry(ZIP, rows=5))
    files = contents("enterpriserag_bench")
    files[ZIP] |= {
        "slack/pier/dsid_1__night.txt": "Night talk\n\nCrate one is lost.\n",
        "slack/pier/dsid_4__silent-thread.txt": "\n\n",
        "questions.jsonl": '{"question_id": "qst_0001"}\n' * 2,
    }
    write(data, files)
    assert registry.count_rows(data / ZIP, registry.entry(ZIP), thorough=True) == 5
    bench = load("enterpriserag_bench", data)
    texts = dict(bench.documents[["doc_id", "text"]].to_numpy())
    assert list(texts) == ["dsid_1", "dsid_2", "dsid_3", "dsid_1~2", "dsid_4"]
    assert texts["dsid_1"] == "Crate one is wet."
    assert texts["dsid_1~2"] == "Crate one is lost."
    assert texts["dsid_4"] == "silent-thread"
    assert not any("instead of" in remark for remark in bench.remarks)
    users = read_frame(data / ZIP, "documents")
    assert users["doc_id"].tolist() == list(texts)
    one = read_frame(data / ZIP, "documents", only={"dsid_1", "dsid_3"})
    assert one["doc_id"].tolist() == ["dsid_1", "dsid_3"]
    # The same file in two archives is a mistake of the folder's, not of the release.
    (data / ZIP).unlink()
    twice = {"enterpriserag_bench/jira_slice_0002.zip": slices()[JIRA_SLICE]}
    write(data, slices() | twice)
    message = failure("enterpriserag_bench", data).message
    assert "jira/dsid_3__leak.txt is there twice" in message


@pytest.mark.usefixtures("official")
def test_an_empty_cell_of_an_optional_column_is_filled_as_a_users_would_be(data):
    files = contents("wixqa")
    files[KB][0] |= {"title": None, "article_type": None}
    files[EXPERT][0] |= {"answer": None, "article_ids": None}
    wixqa = load("wixqa", write(data, files))
    assert wixqa.documents.loc[0, ["title", "source"]].tolist() == ["", "own"]
    assert wixqa.questions.loc[0, ["answer", "gold_doc_ids"]].tolist() == [None, ()]


@pytest.mark.usefixtures("official")
def test_liverag_takes_the_names_of_the_card_and_of_the_paper_too(data):
    files = contents("liverag")
    config = {"Answer Type": "list", "Answer Style": "concise-answer"}
    for line in files[PARQUET]:
        for column in [name for name in line if name.startswith(("ACS", "IRT"))]:
            del line[column]
        line |= {"ACS": 0, "ACS_std": 1, "IRT-diff": 2, "IRT-disc": 3}
        line["DataMorgana_Config"] = config | {"User Persona": "journalist"}
    bench = load("liverag", write(data, files))
    assert bench.questions[["acs", "acs_std", "diff", "disc"]].iloc[0].tolist() == [0, 1, 2, 3]
    assert bench.questions["answer_style"].tolist() == ["concise_answer"] * 3
    assert bench.questions["user_persona"].tolist() == ["journalist"] * 3
    assert bench.questions["premise"].tolist() == ["unknown"] * 3


@pytest.mark.usefixtures("official")
def test_sat12_is_scored_with_its_key_and_8_or_nothing_is_missing(data):
    files = contents("sat12")
    path = "irt/mirt_SAT12_raw.csv"
    files[path][0]["Item.32"] = ""
    scores = load("sat12", write(data, files)).scores
    wide = scores.pivot(index="subject_id", columns="item_id", values="score")
    key = "14523121312421534414334135131545"
    for number, right in enumerate(key, start=1):
        one, two = wide[f"Item.{number}"]
        assert one == (right == "1") if number < 32 else np.isnan(one)
        assert np.isnan(two) if number == 1 else two == (right == "4")


# --------------------------------------------------------------------------- bad input, any loader


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize(
    ("path", "column"), [(path, column) for path, some in COLUMNS.items() for column in some]
)
def test_a_renamed_column_names_file_and_row_and_the_nearest(path, column, data):
    def rename(value):
        rows = value[1:2] if path.endswith("jsonl") and len(value) > 1 else value
        stem, bracket, span = column.partition(" [")
        for one in rows:
            one[stem.lower() + "s" + bracket + span] = one.pop(column)

    error = spoil(data, path, rename)
    assert error.message.startswith(f"{data / path}: ")
    name = re.sub(r"[^a-z_]+", "_", column.partition(" [")[0].lower())
    assert re.search(f"no column '{name}'", error.message.replace("-", "_"), re.IGNORECASE)
    assert error.hint.startswith("did you mean")


def at(number, **values):
    return lambda rows: rows[number - 1].update(values)


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        # ids that repeat, nothing where a text should be
        (KB, at(2, id="moor"), "row 2 of documents repeats doc_id='moor'"),
        (EXTRA, at(2, question_id="qst_0008"), "row 2 of questions repeats"),
        (PARQUET, at(3, Index=0), "row 3 of questions repeats"),
        (GRAG, at(2, depth="5"), "row 2 of scores repeats"),
        (KB, at(3, contents=" \n"), "row 3 of documents: text should be a text"),
        (KB, at(1, id=None), "row 1 of documents: doc_id should be a text"),
        (KB, at(2, title=7), "row 2 of documents: title should be a text"),
        (NQ, at(2, question=""), "row 2: question should be a text"),
        # gold ids that no document has
        (EXPERT, at(2, article_ids=["row"]), "gold document 'row'"),
        (EXTRA, at(1, expected_doc_ids=["dsid_9"]), "gold document 'dsid_9'"),
        # other kinds of values than expected
        (EXPERT, at(2, article_ids="moor"), "row 2: article_ids should be a list"),
        (NQ, at(1, answer="Ann"), "row 1: answer should be a list of strings"),
        (JUDGED, at(2, answer_correct="yes"), "row 2: answer_correct should be a number"),
        ("irt/ltm_LSAT.csv", at(2, Item2="NA"), "line 3: Item2 should be a number"),
        (LSAT6, at(2, Freq="-1"), "line 3: Freq should be a count, found -1"),
        (CZECH, at(3, grade="D"), "row 3: grade should be one of A, B, C"),
        (PARQUET, at(2, Session="Third"), "row 2: Session: 'Third' is not one of"),
        (MORGANA, at(1, context="oops"), "row 1: context should be a list of strings"),
        (MORGANA, at(1, context="['x']"), "row 1: 2 document ids, 1 texts"),
        (POPQA, lambda v: v["dev"][0].update(output="Ann"), "row 1: output should be a list of"),
        (POPQA, lambda v: v["dev"][0].pop("output") and None, "row 1: no column 'output'"),
        (RETRIEVAL, lambda v: list(v.values()), "row 1: expected an object, found ["),
        (RETRIEVAL, lambda v: v["dense_only"][1].pop("recall_at_3") and None, "row 2: no column"),
        (RETRIEVAL, lambda v: v["dense_only"][1].update(recall_at_10="x"), "row 4: recall_at_10 "),
        (SAT12, lambda rows: [r.pop("Item.32") for r in rows] and None, "31 items, expected 32"),
        # archives
        (ZIP, lambda v: v | {"jira/dsid_4__.txt": " \n"}, "row 4 of documents: text should"),
        (ZIP, lambda v: {"slack/readme.txt": "x"}, "slack/readme.txt: expected SOURCE"),
        (ZIP, lambda v: {"slack/dsid_1__a.md": "x"}, "no documents"),
        (ZIP, lambda v: {"slack/dsid_4__x.txt": b"1\n\xff"}, "dsid_4__x.txt: line 2 is not UTF-8"),
        (ANSWERS, lambda v: {"a/one.jsonl": '{"answer": "x"}'}, "line 1: no column 'question_id'"),
        (ANSWERS, lambda v: b"PK", "damaged or incomplete zip"),
        # LiveRAG's own: a column has one type in all rows
        (
            PARQUET,
            each(lambda r: r.update(Answer_Claims="[]")),
            "row 1: Answer_Claims: '[]' is not",
        ),
        (PARQUET, each(lambda r: r.update(ACS_Std="high")), "row 1: acs_std should be a number"),
        (
            PARQUET,
            each(lambda r: r.update(Supporting_Documents=["crane"])),
            "row 1: Supporting_Documents: 0: 'crane' is not of type 'object'",
        ),
        (
            PARQUET,
            each(lambda r: r["Supporting_Documents"][-1].update(content="")),
            "row 1: Supporting_Documents: 0: content: ''",
        ),
        (
            PARQUET,
            lambda v: v[2]["Supporting_Documents"][0].update(doc_id="<urn:uuid:crane>"),
            "row 3: the document '<urn:uuid:crane>' has another text than in an earlier row",
        ),
    ],
)
def test_a_bad_file_names_itself_and_the_place(path, change, message, data):
    error = spoil(data, path, change)
    assert message in error.message
    assert str(data / path) in error.message


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize("path", OWNER)
def test_a_cut_file_is_refused_and_named(path, data):
    name = OWNER[path]
    write(data, OFFICIAL[name])
    whole = (data / path).read_bytes().rstrip()
    binary = path.endswith((".gz", ".zip", ".parquet"))
    for size in [0, 1, len(whole) // 3, len(whole) - 1]:
        (data / path).write_bytes(whole[:size])
        if binary or path.endswith((".json", ".jsonl")):
            assert str(data / path) in failure(name, data).message


# ---------------------------------------------------------------- other releases, unknown bytes


def test_bytes_that_no_digest_verifies_are_named_everywhere(data, monkeypatch):
    register_all(monkeypatch)
    wixqa = load("wixqa", write(data, OFFICIAL["wixqa"]))
    words = "wixqa_expertwritten/test.jsonl unverified: no digest was ever pinned"
    assert not wixqa.partial
    assert words in wixqa.label
    assert wixqa.substitute("expertwritten") == words
    assert wixqa.substitute("nothing") == ""
    assert "; ".join(wixqa.remarks) == wixqa.substitute("kb", "_") == wixqa.substitute()
    table = datasets.overview(profile="paper", data=data).set_index("dataset")
    assert table.loc["wixqa", "state"] == "present"
    assert "no digest was ever pinned" in table.loc["wixqa", "label"]


@pytest.mark.parametrize("pinned", [True, False])
def test_another_release_is_used_and_named(data, monkeypatch, pinned):
    register_all(monkeypatch, pinned=pinned)
    files = contents("wixqa")
    files[EXPERT].append(files[EXPERT][0] | {"question": "Why moor?"})
    wixqa = load("wixqa", write(data, files))
    assert (wixqa.questions["type"] == "expertwritten").sum() == 3
    words = "wixqa_expertwritten/test.jsonl other release: 3 rows instead of 2"
    assert wixqa.substitute("expertwritten") == words
    assert words in wixqa.label
    table = datasets.overview(profile="paper", data=data).set_index("dataset")
    assert table.loc["wixqa", "state"] == "other release"
    # Another corpus may lack a gold document; the registered one may not.
    files[KB].pop(0)
    assert len(load("wixqa", write(data, files)).documents) == 2


def test_the_same_number_of_rows_in_other_bytes_is_another_release(data, monkeypatch):
    register_all(monkeypatch, pinned=True)
    files = contents("natural_questions")
    files[NQ][0]["question"] = "who sails the boat"
    bench = load("natural_questions", write(data, files))
    assert bench.substitute() == "nq_open_dev.jsonl other release: not the registered bytes"
    (data / NQ).write_bytes((data / NQ).read_bytes()[:-20])
    assert isinstance(failure("natural_questions", data), HashMismatch)
    table = datasets.overview(profile="paper", data=data).set_index("dataset")
    assert table.loc["natural_questions", "state"] == "cut or damaged"
    assert str(data / NQ) in table.loc["natural_questions", "label"]


# ---------------------------------------------------------------------------------- unknown names


@pytest.mark.parametrize(
    ("ask", "hint"),
    [
        (lambda: datasets.load("wixqaa"), "did you mean 'wixqa'?"),
        (lambda: datasets.load("LiveRAG"), "did you mean 'liverag'?"),
        (lambda: datasets.load("wixqa", profile="papers"), "did you mean 'paper'?"),
        (lambda: datasets.load("wixqa", profile=""), "known: paper, sample"),
        (lambda: datasets.files("lsat8"), "did you mean 'lsat"),
        (lambda: datasets.in_sample("simple_qa"), "did you mean 'simpleqa'?"),
        (lambda: datasets.load(pd.DataFrame({"doc_id": ["a"]})), "known: abortion, "),
        (lambda: datasets.load([{"doc_id": "a"}]), "known: abortion, "),
        (lambda: datasets.load("wixqa", profile=["paper"]), "did you mean 'paper'?"),
    ],
)
def test_unknown_names_get_the_nearest(ask, hint):
    with pytest.raises(UsageError) as info:
        ask()
    assert info.value.hint.startswith(hint)


def test_what_the_sample_does_not_have_says_so():
    for name in set(NAMES) - set(IN_SAMPLE):
        with pytest.raises(MissingData, match=f"the embedded sample has no '{name}'") as info:
            datasets.load(name)
        assert "paper" in info.value.hint


# -------------------------------------------------------------------------------------- own folders


def test_own_data_by_hand(data):
    rows = [
        {"question_id": 1, "text": "why?", "gold_doc_ids": ["a"], "level": 3},
        {"question_id": "2", "text": "how?", "type": "hard", "answer": "so", "facts": ["x"]},
    ]
    write(
        data,
        {
            "questions.jsonl": rows,
            "documents.jsonl.gz": [{"doc_id": "a", "text": "A."}, {"doc_id": 5, "text": "B."}],
            "scores.csv": [{"subject_id": "s", "item_id": "1", "score": "0.5"}],
        },
    )
    own = datasets.load(str(data))
    assert (own.name, own.label, own.profile) == ("data", "own data", "own")
    assert own.questions.to_dict("list") == {
        "question_id": ["1", "2"],
        "text": ["why?", "how?"],
        "gold_doc_ids": [("a",), ()],
        "level": [3, pytest.approx(np.nan, nan_ok=True)],
        "type": ["unknown", "hard"],
        "answer": [None, "so"],
        "facts": [(), ("x",)],
    }
    assert own.documents["doc_id"].tolist() == ["a", "5"]
    assert own.documents["source"].tolist() == ["own", "own"]
    assert own.scores["score"].tolist() == [0.5]


QUESTION = {"question_id": "1", "text": "why?"}
DOCUMENT = {"doc_id": "a", "text": "A."}


def test_own_data_names_file_and_place(data):
    with pytest.raises(MissingData, match="the folder is empty"):
        datasets.load(data)
    write(data, {"question.jsonl": [QUESTION]})
    with pytest.raises(MissingData, match=r"neither questions.jsonl.*\n.*found question.jsonl"):
        datasets.load(data)
    with pytest.raises(MissingData, match="no such folder"):
        datasets.load(data / "nowhere")
    gold = QUESTION | {"gold_doc_ids": ["z"]}
    write(data, {"documents.jsonl": [DOCUMENT], "questions.jsonl": [gold]})
    with pytest.raises(DataError, match=r"s\.jsonl: question '1' names the gold document 'z'"):
        datasets.load(data)


# --------------------------------------------------------------------------------- embedded sample


@pytest.mark.parametrize("name", IN_SAMPLE)
def test_the_sample_loads_twice_the_same(name):
    before = bytes_of(paths.SAMPLE)
    first = datasets.load(name)
    assert first.label == "embedded sample"
    assert first.substitute() == "embedded sample"
    assert not first.partial
    assert len(first.questions) > 0
    for kind, frame in first.frames.items():
        if kind in schema.COLUMNS:
            schema.check(frame, kind)
    second = datasets.load(name)
    same(first, second)
    for frame in second.frames.values():
        frame.iloc[:, 0] = None
    same(first, datasets.load(name))
    assert bytes_of(paths.SAMPLE) == before


def test_overview_of_the_sample():
    table = datasets.overview().set_index("dataset")
    assert list(table.index) == NAMES
    assert set(table.loc[IN_SAMPLE, "state"]) == {"present"}
    assert set(table.drop(IN_SAMPLE)["state"]) == {"missing"}
    assert table.loc["wixqa", "documents"] == len(datasets.load("wixqa").documents)
    assert np.isnan(table.loc["lsat", "scores"])


def test_a_dataset_says_what_it_has():
    wixqa = datasets.load("wixqa")
    assert "questions (embedded sample)" in repr(wixqa)
    assert ">documents</td>" in wixqa._repr_html_()
    with pytest.raises(MissingData, match="has no scores"):
        _ = wixqa.scores
    with pytest.raises(AttributeError, match="did you mean 'documents'"):
        _ = wixqa.document


# -------------------------------------------------------------------------------- the real mirror

# Documents, questions and scores in each mirrored dataset, as its files are described (popqa has
# 2,000 questions of 1,962 texts, sat12 600 x 32 responses less the missing ones), and what is
# missing of it, in words.
MIRRORED = json.loads(Path(__file__).with_name("mirrored.json").read_text("utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_the_mirror_loads(name, mirror):
    bench = load(name, mirror)
    *sizes, partial = [*MIRRORED[name], ""][:4]
    kinds = ("documents", "questions", "scores")
    assert [len(bench.frames.get(kind, ())) for kind in kinds] == sizes
    assert bench.partial == bool(partial)
    assert bench.substitute() == partial
    if partial:
        assert bench.label == f"partial: {partial}"
    else:
        file = registry.entry(datasets.files(name)[0])
        assert bench.label.startswith(file.origin)
        assert f"({file.note})" in bench.label
    for kind, frame in bench.frames.items():
        if kind in schema.COLUMNS:
            schema.check(frame, kind)


# ------------------------------------------------------------------------------------ parts


def test_a_part_keeps_proportions_gold_and_order():
    whole = datasets.load("enterpriserag_bench", profile="sample")
    n, m = len(whole.documents), len(whole.questions)
    part = whole.part(documents=200, questions=50, seed=3)
    assert (len(part.documents), len(part.questions)) == (200, 50)
    counts = part.questions["type"].value_counts()
    for kind, count in whole.questions["type"].value_counts().items():
        assert abs(counts.get(kind, 0) - 50 * count / m) <= 1, kind
    here = set(part.documents["doc_id"])
    assert here.issuperset(part.questions["gold_doc_ids"].explode().dropna())
    assert here.issuperset(part.extra_questions["gold_doc_ids"].explode())
    order = whole.documents["doc_id"].tolist()
    assert part.documents["doc_id"].tolist() == [doc_id for doc_id in order if doc_id in here]
    assert part.label == f"embedded sample, 200 of {n} documents, 50 of {m} questions"
    assert part.substitute() == part.label
    assert (len(whole.documents), len(whole.questions)) == (n, m), "the whole is left alone"


def test_a_part_as_large_as_the_whole_is_the_whole():
    whole = datasets.load("wixqa", profile="sample")
    for part in (whole.part(), whole.part(10**6, 10**6)):
        assert part.label == "embedded sample"
        pd.testing.assert_frame_equal(part.documents, whole.documents)


def test_impossible_parts_are_refused():
    whole = datasets.load("wixqa", profile="sample")
    with pytest.raises(UsageError, match="gold documents do not fit among 5 documents"):
        whole.part(documents=5)
    with pytest.raises(UsageError, match="questions should be a whole number of at least 0"):
        whole.part(questions=-1)
