import csv
import gzip
import json
import math
import re
import shutil
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import datasets, files, paths, schema
from ragkit.datasets import liverag, others, registry
from ragkit.datasets.registry import Store
from ragkit.errors import DataError, HashMismatch, MissingData, RagkitError, UsageError
from tests.datasets.official import (
    COLUMNS,
    OFFICIAL,
    OWNER,
    contents,
    digests,
    encode,
    entry,
    load,
    register,
    register_all,
    write,
)

NAMES = datasets.names()
IN_SAMPLE = [name for name in NAMES if datasets.in_sample(name)]
KB = "wixqa/wix_kb_corpus/wix_kb_corpus.jsonl"
EXPERT = "wixqa/wixqa_expertwritten/test.jsonl"
ZIP = "enterpriserag_bench/all_documents.zip"
ERB = "enterpriserag_bench/questions.jsonl"
EXTRA = "enterpriserag_bench/extra_questions.jsonl"
JUDGED = "enterpriserag_bench/per_question_judge_scores.csv.gz"
PARQUET = "liverag/LiveRAG_banchmark_20250910.parquet"
GRAG = "liverag/grag_factor_analysis_query_level_scores.csv"
POPQA = "comparison_questions/popqa_model_collaboration_2000.json"
RETRIEVAL = "wixqa/expertwritten_retrieval_scores_pulseagent.json"
CZECH = "irt/czech_simpleqa_grades_5models.csv.gz"


@pytest.fixture
def official(monkeypatch):
    """A registry that knows the small files by their row counts alone."""
    register_all(monkeypatch)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


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


def row(number):
    """Apply a change to one row, counted from 1."""
    return lambda change: lambda rows: change(rows[number - 1])


def same(one, two):
    assert list(one.frames) == list(two.frames)
    for kind in one.frames:
        pd.testing.assert_frame_equal(one.frames[kind], two.frames[kind])
    pd.testing.assert_frame_equal(one.provenance, two.provenance)


# ---------------------------------------------------------------------- official layouts, complete


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize("name", NAMES)
def test_every_dataset_loads_from_its_official_layout(name, data):
    write(data, OFFICIAL[name])
    before = digests(data)
    first = load(name, data)
    assert not first.partial
    assert first.substitute() == ""
    assert first.label == "the test"
    assert sorted(first.provenance["file"]) == sorted(datasets.files(name))
    for kind, frame in first.frames.items():
        assert len(frame)
        if kind in schema.COLUMNS:
            schema.check(frame, kind)
    # What a caller does to a frame reaches neither the files nor the next caller.
    for frame in first.frames.values():
        frame.iloc[0] = None
        frame.drop(frame.index[1:], inplace=True)
    assert digests(data) == before
    same(load(name, data), load(name, data))
    assert len(next(iter(load(name, data).frames.values()))) > 0


@pytest.mark.usefixtures("official")
def test_wixqa_by_hand(data):
    wixqa = load("wixqa", write(data, OFFICIAL["wixqa"]))
    assert wixqa.documents["doc_id"].tolist() == ["moor", "sail", "fly"]
    assert wixqa.documents["source"].tolist() == ["article", "article", "feature_request"]
    assert wixqa.documents.iloc[0][["title", "text", "url"]].tolist() == [
        "Moor",
        "To moor, take a rope.",
        "https://help.example/moor",
    ]
    questions = wixqa.questions
    assert questions["question_id"].tolist() == [
        "expertwritten-0001",
        "expertwritten-0002",
        "simulated-0001",
        "simulated-0002",
        "synthetic-0001",
        "synthetic-0002",
        "synthetic-0003",
    ]
    assert questions["gold_doc_ids"].tolist()[:2] == [("moor",), ("moor", "sail")]
    assert questions["answer"].tolist() == ["With a rope."] * 7


@pytest.mark.usefixtures("official")
def test_wixqa_configurations_may_be_missing_and_are_named(data):
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
    with pytest.raises(MissingData, match="no part of WixQA"):
        load("wixqa", write(data.parent / "empty", {"readme.txt": b""}))


@pytest.mark.usefixtures("official")
def test_enterprise_by_hand(data):
    bench = load("enterpriserag_bench", write(data, OFFICIAL["enterpriserag_bench"]))
    assert bench.documents.iloc[0].to_dict() == {
        "doc_id": "dsid_1",
        "source": "slack",
        "title": "Morning talk",
        "text": "Crate one is wet.",
        "path": "./slack/harbour/dsid_1__morning.txt",
    }
    assert bench.questions["gold_doc_ids"].tolist() == [("dsid_1",), ("dsid_2", "dsid_3")]
    assert bench.questions["source_types"].tolist() == [("slack",), ("slack",)]
    assert bench.extra_questions["question_id"].tolist() == ["qst_0008", "qst_0009"]


def slices():
    members = list(OFFICIAL["enterpriserag_bench"][ZIP].items())
    return {
        "enterpriserag_bench/slack_slice_0001.zip": dict(members[:1]),
        "enterpriserag_bench/slack_slice_0002.zip": dict(members[1:2]),
        "enterpriserag_bench/jira_slice_0001.zip": dict(members[2:]),
    }


def test_enterprise_slices_stand_in_for_the_corpus(data, monkeypatch):
    total = entry(ZIP, pinned=False, rows=511_962)
    register(monkeypatch, *(entry(path, pinned=False) for path in (ERB, EXTRA)), total)
    files = contents("enterpriserag_bench") | {ZIP: None}
    write(data, files)
    with pytest.raises(MissingData):
        _ = load("enterpriserag_bench", data).documents
    write(data, slices())
    bench = load("enterpriserag_bench", data)
    assert bench.documents["doc_id"].tolist() == ["dsid_3", "dsid_1", "dsid_2"]
    assert bench.label == "partial: all_documents.zip 3 of 511,962 documents"
    # The same slices in the cache are the same documents, not duplicates.
    write(paths.cache_dir(), slices())
    same(load("enterpriserag_bench", data), bench)
    # A partial corpus may lack gold documents.
    (data / "enterpriserag_bench" / "jira_slice_0001.zip").unlink()
    (paths.cache_dir() / "enterpriserag_bench" / "jira_slice_0001.zip").unlink()
    assert len(load("enterpriserag_bench", data).documents) == 2


@pytest.mark.usefixtures("official")
def test_all_slices_are_the_whole_corpus(data):
    write(data, contents("enterpriserag_bench") | {ZIP: None} | slices())
    assert not load("enterpriserag_bench", data).partial


@pytest.mark.usefixtures("official")
def test_a_document_in_two_slices_is_a_duplicate(data):
    files = contents("enterpriserag_bench") | {ZIP: None} | slices()
    files["enterpriserag_bench/slack_slice_0003.zip"] = files[
        "enterpriserag_bench/slack_slice_0001.zip"
    ]
    error = failure("enterpriserag_bench", write(data, files))
    assert "repeats doc_id='dsid_1'" in error.message


@pytest.mark.usefixtures("official")
def test_liverag_by_hand(data):
    bench = load("liverag", write(data, OFFICIAL["liverag"]))
    first, second, third = bench.questions.to_dict("records")
    assert first == {
        "question_id": "0",
        "text": "Where does number 0 stand?",
        "type": "factoid",
        "answer": "In the old harbour.",
        "facts": ("It stands there.", "It is old."),
        "gold_doc_ids": ("<urn:uuid:crane>",),
        "session": "First",
        "claims_direct": ("It stands there.",),
        "claims_useful": ("It is old.",),
        "claims_useless": (),
        "answer_type": "factoid",
        "answer_style": "unspecified",
        "premise": "without_premise",
        "phrasing": "concise_and_natural",
        "linguistic_variation": "similar_to_document",
        "politeness": "neutral",
        "linguistic_correctness": "mild_mistakes",
        "user_persona": "novice",
        "acs": 0.5,
        "acs_std": 0.25,
        "diff": -1.5,
        "disc": 0.75,
        "multi_doc": first["multi_doc"],
    }
    assert pd.isna(first["multi_doc"])
    assert third["multi_doc"] == "two_sides"
    assert (second["type"], third["type"]) == ("comparison", "yes_no")
    assert second["user_persona"] == "expert"
    assert second["gold_doc_ids"] == ("<urn:uuid:crane>", "<urn:uuid:buoy>")
    assert bench.documents["doc_id"].tolist() == [
        f"<urn:uuid:{n}>" for n in ("crane", "buoy", "mole")
    ]
    assert bench.documents["title"].tolist()[0] == "All about crane"


@pytest.mark.usefixtures("official")
def test_liverag_takes_the_names_of_the_card_and_of_the_paper_too(data):
    plain = {"ACS": 0, "ACS_std": 1, "IRT-diff": 2, "IRT-disc": 3}
    official = [
        column for column in OFFICIAL["liverag"][PARQUET][0] if column.startswith(("A", "IRT"))
    ]
    files = contents("liverag")
    for line in files[PARQUET]:
        for column in official:
            if column not in ("Answer", "Answer_Claims"):
                del line[column]
        line |= plain
        line["DataMorgana_Config"] = {
            "Answer Type": "list",
            "Answer Style": "concise-answer",
            "User Persona": "journalist",
        }
    bench = load("liverag", write(data, files))
    assert bench.questions[["acs", "acs_std", "diff", "disc"]].iloc[0].tolist() == [0, 1, 2, 3]
    assert bench.questions["answer_style"].tolist() == ["concise_answer"] * 3
    assert bench.questions["user_persona"].tolist() == ["journalist"] * 3
    assert bench.questions["premise"].tolist() == ["unknown"] * 3


@pytest.mark.usefixtures("official")
def test_a_missing_liverag_score_is_nan_never_0(data):
    files = contents("liverag")
    files[PARQUET][1]["ACS [-2 : 1]"] = None
    scores = load("liverag", write(data, files)).questions["acs"]
    assert math.isnan(scores[1])
    assert scores[0] == 0.5


@pytest.mark.usefixtures("official")
def test_matrices_by_hand(data):
    for name in NAMES:
        write(data, OFFICIAL[name])
    lsat6 = load("lsat6", data).scores
    assert lsat6["subject_id"].nunique() == 5  # two persons with one pattern, three with another
    wide = lsat6.pivot(index="subject_id", columns="item_id", values="score")
    assert wide.to_numpy().tolist() == [[0, 1]] * 2 + [[1, 1]] * 3
    assert load("lsat7", data).scores["subject_id"].nunique() == 4  # a pattern nobody showed
    science = load("science", data).scores
    assert science["score"].tolist() == [1, 3, 4, 2]
    czech = load("czech_simpleqa", data).scores
    assert czech["score"].tolist() == [1, 0, 0]
    judged = load("erb_judged", data).scores
    assert judged["score"].tolist() == [1, 0, 1]
    assert judged["completeness"].tolist() == [0.75, 0, 1]
    assert judged["judge_group"].tolist() == ["someone", "someone", "someone:Mistral-7B"]
    assert np.isnan(judged["invalid_extra_documents"][1])
    grag = load("grag", data)
    assert grag.scores["subject_id"].tolist() == ["bm25/5", "bm25/9", "bm25/5"]
    assert grag.systems["depth"].tolist() == ["5", "9"]


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


@pytest.mark.usefixtures("official")
def test_question_sets_by_hand(data):
    for name in NAMES:
        write(data, OFFICIAL[name])
    trivia = load("triviaqa", data).questions
    assert trivia["text"].tolist() == ["What floats?", 'Who said "ahoy"?']
    assert trivia["facts"].tolist() == [("a buoy", "buoys"), ("Bell",)]
    assert load("popqa", data).questions["facts"].tolist() == [("Ann", "A. Moor"), ("Bo",)]
    assert load("webquestions", data).questions["text"].tolist() == [
        "what is trainmodel",
        "what is val",
        "what is devtest",
        "what is test",
    ]
    assert load("simpleqa", data).questions["text"].tolist() == ["Which pier, the old?", "Why?"]
    retrieval = load("wixqa_retrieval", data)
    assert retrieval.questions["question_id"].tolist() == [
        "expertwritten-0001",
        "expertwritten-0002",
    ]
    assert retrieval.scores["score"].tolist() == [0.5, 0.5, 1, 1]
    assert retrieval.scores["item_id"].tolist() == ["expertwritten-0001", "expertwritten-0002"] * 2


@pytest.mark.usefixtures("official")
def test_a_question_asked_twice_counts_once(data):
    files = contents("natural_questions")
    path = "comparison_questions/nq_open_dev.jsonl"
    files[path][1] = files[path][0]
    questions = load("natural_questions", write(data, files)).questions
    assert questions["text"].tolist() == ["who rows the boat"]


# --------------------------------------------------------------------------- bad input, any loader


@pytest.mark.parametrize("path", OWNER)
def test_wrong_bytes_name_file_digests_and_what_to_do(path, data, monkeypatch):
    register_all(monkeypatch, pinned=True)
    name = OWNER[path]
    write(data, OFFICIAL[name])
    assert not load(name, data).partial
    raw = bytearray((data / path).read_bytes())
    raw[len(raw) // 2] ^= 1
    (data / path).write_bytes(raw)
    error = failure(name, data)
    assert isinstance(error, HashMismatch)
    assert error.message.startswith(f"{data / path}: sha256 ")
    assert f"expected {registry.entry(path).sha256[:12]}" in error.message
    assert error.hint == f"delete it and run: ragkit data fetch {name}"


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize(
    "path", [path for path in OWNER if not path.endswith((".zip", ".parquet"))]
)
def test_what_is_not_utf8_names_file_and_line(path, data):
    plain = encode(path.removesuffix(".gz"), OFFICIAL[OWNER[path]][path])
    first, newline, rest = plain.partition(b"\n")
    if newline and rest:
        raw, line = first + newline + b"\xff" + rest, 2
    else:
        raw, line = b"\xff" + plain, 1
    error = spoil(data, path, lambda _: gzip.compress(raw) if path.endswith(".gz") else raw)
    assert error.message == f"{data / path}: line {line} is not UTF-8 (byte 0xff)"


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize("path", OWNER)
def test_an_empty_file_names_the_file(path, data):
    assert str(data / path) in spoil(data, path, lambda _: b"").message


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
    if path.endswith("jsonl"):
        assert "line 2:" in error.message
    assert error.hint.startswith("did you mean")


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize("path", OWNER)
def test_a_row_that_is_missing_or_too_many_is_noticed(path, data):
    def cut(value):
        if path == POPQA:
            value["test"].append({"input": "Who else?", "output": "[]"})
        elif path == RETRIEVAL:
            value["bm25_only"].pop()
        elif isinstance(value, dict):
            value.popitem()
        elif len(value) > 1:
            value.pop()
        else:
            value.append(dict(value[0]))

    error = spoil(data, path, cut)
    assert re.search(r"\d rows, expected \d", error.message)
    assert error.message.startswith(f"{data / path}: ")


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize(
    "path", [path for path in OWNER if path.endswith((".gz", ".zip", ".parquet"))]
)
def test_every_truncation_is_noticed(path, data):
    name = OWNER[path]
    write(data, OFFICIAL[name])
    whole = (data / path).read_bytes()
    step = max(1, len(whole) // 60)
    for size in range(0, len(whole), step):
        (data / path).write_bytes(whole[:size])
        assert failure(name, data).message.startswith(f"{data / path}: ")
    (data / path).write_bytes(whole)
    assert not load(name, data).partial


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize("path", [path for path in OWNER if path.endswith((".jsonl", ".json"))])
def test_a_cut_json_file_is_noticed(path, data):
    name = OWNER[path]
    write(data, OFFICIAL[name])
    whole = (data / path).read_bytes().rstrip()
    for size in range(1, len(whole), max(1, len(whole) // 30)):
        (data / path).write_bytes(whole[:size])
        assert failure(name, data).message.startswith(f"{data / path}: ")


@pytest.mark.usefixtures("official")
@given(place=st.integers(0), bit=st.integers(0, 7))
@settings(max_examples=150, deadline=None)
def test_a_damaged_zip_file_is_noticed_or_harmless(tmp_path_factory, place, bit):
    folder = tmp_path_factory.getbasetemp() / "zip"
    folder.mkdir(exist_ok=True)
    raw = bytearray(encode(ZIP, OFFICIAL["enterpriserag_bench"][ZIP]))
    raw[place % len(raw)] ^= 1 << bit
    path = folder / "all.zip"
    path.write_bytes(raw)
    noticed, texts = str(path), set()
    try:
        texts = {row["text"] for _, row in files.read_archive(path)}
    except DataError as error:
        noticed = error.message
    assert noticed.startswith(str(path))
    assert texts <= {"Crate one is wet.", "Crate two is dry.", "Fix it."}


def members(**changes):
    return lambda value: value | {name.replace("_O_", "/"): text for name, text in changes.items()}


@pytest.mark.usefixtures("official")
@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        # ids that repeat
        (KB, row(2)(lambda r: r.update(id="moor")), "row 2 of documents repeats doc_id='moor'"),
        (ERB, row(2)(lambda r: r.update(question_id="qst_0001")), "row 2 of questions repeats"),
        (EXTRA, row(2)(lambda r: r.update(question_id="qst_0008")), "row 2 of questions repeats"),
        (
            ZIP,
            lambda v: {"gmail/dsid_1__again.txt": "A\n\nB", **dict(list(v.items())[:2])},
            "row 2 of documents repeats doc_id='dsid_1'",
        ),
        (PARQUET, row(3)(lambda r: r.update(Index=0)), "row 3 of questions repeats"),
        (PARQUET, row(3)(lambda r: r.update(Index=None)), "row 3 of questions has an empty"),
        (JUDGED, row(2)(lambda r: r.update(question_id="qst_0001")), "row 2 of scores repeats"),
        (
            GRAG,
            row(2)(lambda r: r.update(depth="5")),
            "row 2 of scores repeats subject_id='bm25/5'",
        ),
        (CZECH, row(2)(lambda r: r.update(simpleqa_row="0")), "row 2 of scores repeats"),
        (
            RETRIEVAL,
            lambda v: v["dense_only"][1].update(query_id="q1"),
            "row 4 of scores repeats subject_id='dense_only'",
        ),
        # gold ids that no document has
        (EXPERT, row(2)(lambda r: r["article_ids"].append("row")), "gold document 'row'"),
        (ERB, row(1)(lambda r: r["expected_doc_ids"].append("dsid_9")), "gold document 'dsid_9'"),
        (EXTRA, row(1)(lambda r: r["expected_doc_ids"].append("dsid_9")), "gold document 'dsid_9'"),
        # nothing where a text should be
        (KB, row(3)(lambda r: r.update(contents=" \n")), "row 3 of documents (fly) has no text"),
        (KB, row(1)(lambda r: r.update(id="")), "row 1 of documents has an empty doc_id"),
        (KB, row(1)(lambda r: r.update(id=None)), "row 1 of documents has an empty doc_id"),
        (EXPERT, row(2)(lambda r: r.update(question=None)), "row 2 of questions"),
        (ERB, row(1)(lambda r: r.update(question="")), "row 1 of questions (qst_0001) has no text"),
        (EXTRA, row(2)(lambda r: r.update(question=" ")), "row 2 of questions (qst_0009) has no"),
        (ZIP, members(**{"./jira/dsid_3__leak.txt": " \n\n"}), "row 3 of documents (dsid_3)"),
        (PARQUET, row(2)(lambda r: r.update(Question="\t")), "row 2 of questions (1) has no text"),
        (
            PARQUET,
            row(2)(lambda r: r["Supporting_Documents"][1].update(content="")),
            "row 2: Supporting_Documents: a document has no content",
        ),
        (
            "comparison_questions/nq_open_dev.jsonl",
            row(2)(lambda r: r.update(question="")),
            "row 2: question should hold a text",
        ),
        (POPQA, lambda v: v["test"][0].update(input=" "), "row 2: input should hold a text"),
        (
            "comparison_questions/webquestions_brmson_val.json",
            row(1)(lambda r: r.update(qText=None)),
            "row 1: qText should hold a text",
        ),
        (
            "comparison_questions/simple_qa_test_set.csv",
            row(2)(lambda r: r.update(problem=" ")),
            "row 2: problem should hold a text",
        ),
        # other kinds of values than expected
        (KB, row(1)(lambda r: r.update(contents=["a"])), "row 1 of documents: text should be a s"),
        (
            EXPERT,
            row(2)(lambda r: r.update(article_ids="moor")),
            "row 2: article_ids should be a l",
        ),
        (
            EXPERT,
            row(2)(lambda r: r.update(article_ids=[None])),
            "row 2: article_ids should hold s",
        ),
        (ERB, row(1)(lambda r: r.update(answer_facts="one")), "row 1: answer_facts should be a li"),
        (
            "comparison_questions/nq_open_dev.jsonl",
            row(1)(lambda r: r.update(answer="Ann")),
            "row 1: answer should be a list of strings, found 'Ann'",
        ),
        (
            POPQA,
            lambda v: v["dev"][0].update(output="Ann"),
            "row 1: output should hold a JSON list",
        ),
        (POPQA, lambda v: v["dev"][0].update(output='"Ann"'), "row 1: output should be a list"),
        (POPQA, lambda v: v["dev"][0].pop("output") and None, "row 1: no column 'output'"),
        (POPQA, lambda v: v.pop("dev") and None, "no column 'dev'"),
        (POPQA, lambda v: [v], "expected an object with dev and test"),
        (POPQA, lambda v: v.update(dev={"a": 1}), "expected a list of objects"),
        (
            "comparison_questions/webquestions_brmson_val.json",
            lambda v: {"rows": v},
            "expected a list of objects",
        ),
        (RETRIEVAL, lambda v: list(v.values()), "expected an object of systems"),
        (
            RETRIEVAL,
            lambda v: v["dense_only"][1].pop("recall_at_3") and None,
            "dense_only: case 2: no column 'recall_at_3'",
        ),
        (
            RETRIEVAL,
            lambda v: v["dense_only"][1].update(recall_at_10="0.5"),
            "dense_only: case 2: recall_at_10 should be a number",
        ),
        (
            RETRIEVAL,
            lambda v: v["dense_only"][1].update(query_id="q9"),
            "row 4 of scores has an empty item_id",
        ),
        # numbers
        (JUDGED, row(2)(lambda r: r.update(answer_correct="yes")), "line 3: answer_correct: expe"),
        (JUDGED, row(2)(lambda r: r.update(answer_correct="")), "row 2 of scores has no score"),
        (GRAG, row(3)(lambda r: r.update(relevance_score="2,0")), "line 4: relevance_score: expec"),
        ("irt/ltm_LSAT.csv", row(2)(lambda r: r.update(Item2="NA")), "line 3: Item2: expected a n"),
        (
            "irt/mirt_LSAT6_freq.csv",
            row(2)(lambda r: r.update(Freq="-1")),
            "line 3: Freq should be a count, found -1",
        ),
        (
            "irt/mirt_LSAT7_freq.csv",
            row(1)(lambda r: r.update(freq="1.5")),
            "line 2: freq should be a count, found 1.5",
        ),
        (
            "irt/mirt_SAT12_raw.csv",
            lambda rows: [r.pop("Item.32") for r in rows] and None,
            "31 items, expected 32",
        ),
        (CZECH, row(3)(lambda r: r.update(grade="D")), "row 3: grade 'D', expected A/B/C"),
        (CZECH, row(3)(lambda r: r.update(grade="")), "row 3: grade '', expected A/B/C"),
        # archives
        (ZIP, lambda v: {"notes/readme.txt": "x"}, "notes/readme.txt: expected SOURCE"),
        (ZIP, lambda v: {"slack/readme.txt": "x"}, "slack/readme.txt: expected SOURCE"),
        (ZIP, lambda v: {"slack/dsid_1__a.md": "x"}, "no documents"),
        (
            ZIP,
            members(**{"slack/dsid_4__x.txt": b"one\ntwo \xff\n"}),
            "slack/dsid_4__x.txt: line 2 is not UTF-8",
        ),
        # LiveRAG's own
        (PARQUET, row(2)(lambda r: r.update(Session="Third")), "row 2: session 'Third', expected"),
        (
            PARQUET,
            row(3)(lambda r: r["Supporting_Documents"][0].update(doc_id="<urn:uuid:crane>")),
            "row 3: the document '<urn:uuid:crane>' has another text than in an earlier row",
        ),
        (
            PARQUET,
            lambda rows: [r.update(Supporting_Documents=["crane"]) for r in rows] and None,
            "row 1: Supporting_Documents should hold objects, found 'crane'",
        ),
        (
            PARQUET,
            lambda rows: [r.update(Answer_Claims="[]") for r in rows] and None,
            "row 1: Answer_Claims should be an object",
        ),
        (
            PARQUET,
            lambda rows: [r.update({"ACS_Std": "high"}) for r in rows] and None,
            "row 1: acs_std: expected a number, found 'high'",
        ),
    ],
)
def test_one_error_names_the_file_and_the_place(path, change, message, data):
    if path == ZIP and message.startswith("row 2"):
        change = _with_three(change)
    error = spoil(data, path, change)
    assert message in error.message
    assert str(data / path) in error.message


def _with_three(change):
    def changed(value):
        again = change(value)
        first = list(value.items())[0]
        return dict([first, *list(again.items())[:1], *list(value.items())[2:]])

    return changed


@pytest.mark.usefixtures("official")
def test_an_encrypted_zip_file_is_named(data):
    raw = bytearray(encode(ZIP, OFFICIAL["enterpriserag_bench"][ZIP]))
    for magic, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = raw.find(magic)
        while place >= 0:
            raw[place + offset] |= 1  # the flag that says "encrypted"
            place = raw.find(magic, place + 1)
    error = spoil(data, ZIP, lambda _: bytes(raw))
    assert "a zip file of an unknown kind" in error.message


@pytest.mark.usefixtures("official")
def test_a_slice_that_is_cut_is_named(data):
    files = contents("enterpriserag_bench") | {ZIP: None} | slices()
    path = "enterpriserag_bench/slack_slice_0002.zip"
    files[path] = encode(path, files[path])[:-10]
    error = failure("enterpriserag_bench", write(data, files))
    assert error.message.startswith(f"{data / path}: a damaged or incomplete zip file")


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
    ],
)
def test_unknown_names_get_the_nearest(ask, hint):
    with pytest.raises(UsageError) as info:
        ask()
    assert info.value.hint.startswith(hint)


def test_an_empty_name_is_unknown_not_the_working_folder(data, monkeypatch):
    write(data, {"questions.jsonl": [{"question_id": "1", "text": "why?"}]})
    monkeypatch.chdir(data)
    with pytest.raises(UsageError, match="no dataset ''"):
        datasets.load("")


def test_a_known_name_is_the_dataset_even_beside_a_folder_of_that_name(data, monkeypatch):
    # Inside a mirror there are folders called wixqa and liverag.
    (data / "wixqa").mkdir()
    monkeypatch.chdir(data)
    assert len(datasets.load("wixqa").documents) > 0


@pytest.mark.parametrize("name", [name for name in NAMES if name not in IN_SAMPLE])
def test_what_the_sample_does_not_have_says_so(name):
    with pytest.raises(MissingData, match=f"the embedded sample has no '{name}'") as info:
        datasets.load(name)
    assert "paper" in info.value.hint


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_at_hand_says_so(name, data):
    with pytest.raises(MissingData) as info:
        load(name, data)
    assert "DATA=" in info.value.hint or "name a folder that has it" in info.value.hint


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
    assert own.questions["question_id"].tolist() == ["1", "2"]
    assert own.questions["type"].tolist() == ["unknown", "hard"]
    assert own.questions["answer"].tolist() == [None, "so"]
    assert own.questions["facts"].tolist() == [(), ("x",)]
    assert own.questions["gold_doc_ids"].tolist() == [("a",), ()]
    assert own.questions["level"].iloc[0] == 3
    assert own.documents["doc_id"].tolist() == ["a", "5"]
    assert own.documents["source"].tolist() == ["own", "own"]
    assert own.scores["score"].tolist() == [0.5]
    same(datasets.load(data), datasets.load(data))


def test_own_data_has_the_folders_name_even_from_within(data, monkeypatch):
    write(data, {"documents.jsonl": [{"doc_id": "a", "text": "A."}]})
    monkeypatch.chdir(data)
    assert datasets.load("./").name == "data"


QUESTION = {"question_id": "1", "text": "why?"}
DOCUMENT = {"doc_id": "a", "text": "A."}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("questions.jsonl", [QUESTION, QUESTION], "line 2: question_id '1' was in line 1 before"),
        ("questions.jsonl", [QUESTION | {"gold_doc_ids": ["z"]}], "gold document 'z'"),
        ("documents.jsonl", b"{}\n\xff", "line 2 is not UTF-8"),
        (
            "scores.csv",
            b"subject_id,item_id,score\n\ns,1,high\n",
            "line 3: score should be a number",
        ),
    ],
)
def test_own_data_names_file_and_place(data, path, value, message):
    write(data, {"documents.jsonl": [DOCUMENT]} | {path: value})
    with pytest.raises(DataError) as info:
        datasets.load(data)
    assert message in info.value.message
    assert str(data / path) in info.value.message


def test_an_own_folder_without_the_files_says_what_it_found(data):
    with pytest.raises(MissingData) as info:
        datasets.load(data)
    assert info.value.hint == "the folder is empty"
    write(data, {"question.jsonl": [QUESTION]})
    with pytest.raises(MissingData, match="neither questions.jsonl") as info:
        datasets.load(data)
    assert info.value.hint == "found question.jsonl"
    with pytest.raises(MissingData, match="no such folder"):
        datasets.load(data / "nowhere")


# --------------------------------------------------------------------------------- embedded sample


@pytest.mark.parametrize("name", IN_SAMPLE)
def test_the_sample_loads_twice_the_same(name):
    before = digests(paths.SAMPLE)
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
    assert digests(paths.SAMPLE) == before


def test_the_sample_has_the_columns_of_the_official_files():
    bench = datasets.load("liverag").questions
    for categorization in liverag.CATEGORIZATIONS:
        assert "unknown" not in set(bench[categorization])
    assert {"session", "claims_direct", "claims_useful", "claims_useless"} <= set(bench)
    assert "source_types" in datasets.load("enterpriserag_bench").questions
    assert "url" in datasets.load("wixqa").documents


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
    assert "<td style='text-align:left'>documents</td>" in wixqa._repr_html_()
    with pytest.raises(MissingData, match="has no scores"):
        _ = wixqa.scores
    with pytest.raises(AttributeError, match="did you mean 'documents'"):
        _ = wixqa.document


# -------------------------------------------------------------------------------- the real mirror

# documents, questions and scores in each mirrored dataset, as its files are described.
MIRRORED = {
    "wixqa": (173, 160, None),
    "wixqa_retrieval": (None, 200, 3 * 200),
    "enterpriserag_bench": (None, 500, None),
    "erb_judged": (None, None, 69_884),
    "liverag": (None, 895, None),
    "grag": (None, None, 9_589),
    "triviaqa": (None, 1_000, None),
    "popqa": (None, 1_962, None),  # distinct texts of 2,000
    "webquestions": (None, 5_810, None),
    "simpleqa": (None, 4_326, None),
    "natural_questions": (None, 3_610, None),
    "lsat": (None, None, 1_000 * 5),
    "lsat6": (None, None, 1_000 * 5),
    "lsat7": (None, None, 1_000 * 5),
    "sat12": (None, None, 19_131),  # 600 x 32 less the missing ones, counted below
    "science": (None, None, 392 * 4),
    "wirs": (None, None, 1_005 * 6),
    "abortion": (None, None, 379 * 4),
    "mobility": (None, None, 8_445 * 8),
    "czech_simpleqa": (None, None, 5 * 4_318),
    "datamorgana": (70, 50, None),
    "erb_answers": (None, None, None),
    "erb_retrieval": (None, None, 5 * 470),
    "liverag_answers": (None, None, None),
    "wixqa_answers": (None, 60, None),
}
PARTIAL = {
    "wixqa": "partial: wix_kb_gold_subset173.jsonl 173 of 6,221 rows; "
    "wixqa_expertwritten_sample160_with_contexts.jsonl 160 of 200 rows; "
    "wixqa_simulated/test.jsonl missing; wixqa_synthetic/test.jsonl missing",
    "enterpriserag_bench": "partial: all_documents.zip missing",
    "liverag": "partial: liverag_challenge_questions_895_merged.jsonl 895 of 895 rows: "
    "questions and sessions only",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_mirror_loads(name, mirror):
    bench = load(name, mirror)
    sizes = [
        len(bench.frames[kind]) if kind in bench.frames else None
        for kind in ("documents", "questions", "scores")
    ]
    assert tuple(sizes) == MIRRORED[name]
    assert bench.partial == (name in PARTIAL)
    if name in PARTIAL:
        assert bench.label == PARTIAL[name]
        assert bench.substitute() == PARTIAL[name].removeprefix("partial: ")
    else:
        file = registry.entry(datasets.files(name)[0])
        assert bench.label.startswith(file.origin)
        assert f"({file.note})" in bench.label
        assert bench.substitute() == ""
    for kind, frame in bench.frames.items():
        if kind in schema.COLUMNS:
            schema.check(frame, kind)
    same(bench, load(name, mirror))


def test_every_file_of_the_mirror_is_found_in_its_place(mirror):
    store = Store(mirror)
    found = [file for file in registry.entries() if store.find(file, stand_ins=False)]
    assert len(found) == len(re.findall("\n### `", (mirror / "MANIFEST.md").read_text("utf-8")))


def test_rows_read_are_rows_registered(mirror):
    def rows(name):
        found = (Store(mirror).find(path) for path in datasets.files(name))
        return sum(one.entry.rows for one in found if one)

    per_row = {"lsat": 5, "science": 4, "wirs": 6, "abortion": 4, "mobility": 8}
    changed = ("popqa", "lsat6", "lsat7", "sat12", "wixqa_retrieval", *others.FILES)
    for name, sizes in MIRRORED.items():
        if name not in changed:
            assert rows(name) * per_row.get(name, 1) == sum(size or 0 for size in sizes)


def test_sat12_drops_what_is_missing_and_nothing_else(mirror):
    with open(mirror / "irt" / "mirt_SAT12_raw.csv", newline="") as stream:
        cells = [cell for line in list(csv.reader(stream))[1:] for cell in line]
    assert len(cells) - cells.count("8") == MIRRORED["sat12"][2]
    assert set(load("sat12", mirror).scores["score"]) == {0.0, 1.0}


def test_frequencies_are_written_out_to_the_same_matrix(mirror):
    """LSAT6 is LSAT in the form of response patterns."""

    def patterns(name):
        wide = load(name, mirror).scores.pivot(
            index="subject_id", columns="item_id", values="score"
        )
        return pd.Series(map(tuple, wide.to_numpy().astype(int).tolist())).value_counts().to_dict()

    assert patterns("lsat6") == patterns("lsat")


def test_types_of_the_enterprise_questions(mirror):
    sizes = load("enterpriserag_bench", mirror).questions["type"].value_counts()
    assert sorted(sizes) == sorted([175, 125, 40, 40, 30, 20, 20, 20, 10, 20])


def test_sessions_of_liverag(mirror):
    sessions = load("liverag", mirror).questions["session"].value_counts()
    assert sessions.to_dict() == {"First": 395, "Second": 395, "Both": 105}


def test_gold_of_the_partial_help_centre_is_all_there(mirror):
    wixqa = load("wixqa", mirror)
    gold = {doc_id for ids in wixqa.questions["gold_doc_ids"] for doc_id in ids}
    assert gold == set(wixqa.documents["doc_id"])


def test_a_renamed_file_in_another_folder_is_accepted_by_its_bytes(mirror, data):
    path = datasets.files("simpleqa")[0]
    (data / "inbox").mkdir()
    shutil.copy(mirror / path, data / "inbox" / "download (1).csv")
    same(load("simpleqa", data), load("simpleqa", mirror))


def test_a_right_copy_elsewhere_outweighs_wrong_bytes_at_the_path(mirror, data):
    path = datasets.files("lsat")[0]
    write(data, {path: (mirror / path).read_bytes() + b"1,1,1,1,1\n"})
    assert isinstance(failure("lsat", data), HashMismatch)
    shutil.copy(mirror / path, data / "lsat_original.csv")
    same(load("lsat", data), load("lsat", mirror))


def test_a_partial_mirror_is_used_as_what_it_is(mirror, data):
    path = "wixqa/wixqa_expertwritten_sample160_with_contexts.jsonl"
    write(data, {path: (mirror / path).read_bytes()})
    wixqa = load("wixqa", data)
    assert len(wixqa.questions) == 160
    assert "160 of 200 rows" in wixqa.label
    assert "documents" not in wixqa.frames


def test_overview_of_the_mirror(mirror):
    table = datasets.overview(profile="paper", data=mirror).set_index("dataset")
    assert set(table.loc[list(PARTIAL), "state"]) == {"partial"}
    assert set(table.drop(list(PARTIAL))["state"]) == {"present"}
    for name, (documents, questions, scores) in MIRRORED.items():
        for kind, size in (("documents", documents), ("questions", questions), ("scores", scores)):
            found = table.loc[name, kind]
            assert np.isnan(found) if size is None else found == size


def test_the_mirror_as_the_variable_names_it(mirror, monkeypatch):
    monkeypatch.setenv("RAGKIT_DATA", str(mirror))
    assert len(datasets.load("lsat6", profile="paper").scores) == 5_000


def test_json_of_the_sample_is_not_part_of_the_mirror(mirror):
    """The sample is in words of our own: it shares no question with the real sets."""
    for name in IN_SAMPLE:
        real = set(load(name, mirror).questions["text"].str.lower())
        assert not real & set(datasets.load(name).questions["text"].str.lower())


def test_archives_hold_what_the_loader_reads(data):
    path = write(data, {ZIP: OFFICIAL["enterpriserag_bench"][ZIP]}) / ZIP
    with zipfile.ZipFile(path) as archive:
        assert [row["path"] for _, row in files.read_archive(path)] == archive.namelist()
    assert json.dumps(list(files.read_archive(path))[2][1]["title"]) == '"A leak"'


# ---------------------------------------------------------------------- what others made


@pytest.mark.usefixtures("official")
def test_what_others_made_by_hand(data):
    for name in ("erb_answers", "erb_retrieval", "liverag_answers", "wixqa_answers", "datamorgana"):
        write(data, OFFICIAL[name])
    answers = load("erb_answers", data).answers
    assert answers["system"].tolist() == ["someone/one", "someone/two"]
    assert answers["answer"].tolist() == ["Dry.", None]
    assert answers["doc_ids"].tolist() == [(), ("dsid_1",)]
    # A question without gold documents has no recall: no row, never a 0.
    recall = load("erb_retrieval", data).scores
    assert recall["item_id"].tolist() == ["qst_0001", "qst_0002"]
    assert recall["score"].tolist() == [0.5, 0.0]
    assert load("liverag_answers", data).answers["answer"].tolist() == ["Deep.", "Very deep."]
    wixqa = load("wixqa_answers", data)
    assert len(wixqa.questions) == 1
    assert wixqa.overlap["token_f1"].isna().tolist() == [False, True]
    pairs = load("datamorgana", data)
    assert pairs.questions.loc[0, "gold_doc_ids"] == ("a", "b")
    assert pairs.questions.loc[0, "user_expertise"] == "novice"
    assert pairs.documents["text"].tolist() == ["One text.", "Another text."]


def test_answers_of_the_mirror(mirror):
    answers = load("erb_answers", mirror).answers
    assert len(answers) == 11_812
    assert answers["system"].nunique() == 28
    assert answers.groupby("system").size().max() == 500
    overlap = load("wixqa_answers", mirror).overlap
    assert overlap["token_f1"].between(0, 1).sum() == overlap["token_f1"].notna().sum() > 0


# ------------------------------------------------------------------------------------ parts


def test_a_part_keeps_proportions_gold_and_order():
    whole = datasets.load("enterpriserag_bench", profile="sample")
    part = whole.part(documents=400, questions=50, seed=3)
    assert (len(part.documents), len(part.questions)) == (400, 50)
    counts = part.questions["type"].value_counts()
    for kind, count in whole.questions["type"].value_counts().items():
        assert abs(counts.get(kind, 0) - count / 4) <= 1, kind
    here = set(part.documents["doc_id"])
    assert here.issuperset(part.questions["gold_doc_ids"].explode().dropna())
    assert here.issuperset(part.extra_questions["gold_doc_ids"].explode())
    order = whole.documents["doc_id"].tolist()
    assert part.documents["doc_id"].tolist() == [doc_id for doc_id in order if doc_id in here]
    assert part.label == "embedded sample, 400 of 2,000 documents, 50 of 200 questions"
    assert part.substitute() == part.label
    assert len(whole.documents) == 2000, "the whole is left alone"


def test_parts_depend_on_the_seed_alone():
    whole = datasets.load("liverag", profile="sample")
    draws = [whole.part(questions=40, seed=seed).questions["text"].tolist() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_a_part_as_large_as_the_whole_is_the_whole():
    whole = datasets.load("wixqa", profile="sample")
    for part in (whole.part(), whole.part(10**6, 10**6)):
        assert part.label == "embedded sample"
        pd.testing.assert_frame_equal(part.documents, whole.documents)


def test_documents_alone_are_drawn_without_regard_to_gold():
    alone = datasets.load("wixqa", profile="sample").only("documents")
    assert list(alone.frames) == ["documents"]
    assert len(alone.part(documents=5).documents) == 5


def test_impossible_parts_are_refused():
    whole = datasets.load("wixqa", profile="sample")
    with pytest.raises(UsageError, match="gold documents do not fit among 5 documents"):
        whole.part(documents=5)
    with pytest.raises(UsageError, match="questions must be at least 0, not -1"):
        whole.part(questions=-1)
