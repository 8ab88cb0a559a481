"""`ragkit new` and `ragkit benchmark`: files of others as a benchmark of one's own, and bad ones told."""

from __future__ import annotations

import json

import nbformat
import pandas as pd
import pytest

from ragkit import datasets
from ragkit.cli import root
from ragkit.datasets.convert import convert
from ragkit.errors import DataError, FetchError, MissingData, UsageError
from ragkit.files import read_frame, sha256, write_jsonl
from ragkit.report import exports, notebook

DOCUMENTS = [{"doc_id": f"d{n}", "text": f"document {n} on topic {n}"} for n in range(3)]
QUESTIONS = [
    {"question_id": 1, "text": "what is topic 1?", "answer": "one", "gold_doc_ids": ["d1"]},
    {"question_id": 2, "text": "what is topic 2?", "answer": "", "gold_doc_ids": ["d2"]},
]


@pytest.fixture
def folder(tmp_path):
    write_jsonl(tmp_path / "mine" / "documents.jsonl", DOCUMENTS)
    write_jsonl(tmp_path / "mine" / "questions.jsonl", QUESTIONS[:1])
    return tmp_path / "mine"


def test_a_folder_becomes_a_benchmark_with_card_systems_and_notebook(folder, tmp_path, capsys):
    made = tmp_path / "my-benchmark"
    root.main(["new", str(made), "--from", str(folder)], standalone_mode=False)
    assert {path.name for path in made.iterdir()} == {
        "50-your-benchmark.ipynb", "README.md", "documents.jsonl", "questions.jsonl", "systems.toml",
    }  # fmt: skip
    assert "| `questions.jsonl` | 1 |" in (made / "README.md").read_text("utf-8")
    given = notebook.parameters(notebook.read(made / "50-your-benchmark.ipynb"))
    assert given["profile"] == "my-benchmark"
    assert given["benchmark"] == str(made)
    assert given["most_documents"] == 1000
    assert f"ragkit benchmark {made}" in capsys.readouterr().out
    mine = datasets.load(made)
    assert mine.questions["question_id"].tolist() == ["1"]
    assert mine.questions["gold_doc_ids"].tolist() == [("d1",)]
    nbformat.validate(nbformat.read(made / "50-your-benchmark.ipynb", 4))


def test_beir(tmp_path):
    source = tmp_path / "beir"
    corpus = [{"_id": "a", "title": "A", "text": "x"}, {"_id": "b", "text": "y"}]
    write_jsonl(source / "corpus.jsonl", corpus)
    queries = [{"_id": "q", "text": "which?"}, {"_id": "unjudged", "text": "?!"}]
    write_jsonl(source / "queries.jsonl", queries)
    (source / "qrels").mkdir()
    qrels = source / "qrels" / "test.tsv"
    qrels.write_text("query-id\tcorpus-id\tscore\nq\tb\t1\nq\ta\t0\n")
    made = convert(str(source), tmp_path / "out")
    assert made.questions[["question_id", "gold_doc_ids"]].to_numpy().tolist() == [["q", ("b",)]]
    assert len(made.documents) == 2
    qrels.write_text("query-id\tcorpus-id\tscore\nnone\tb\t1\n")
    with pytest.raises(DataError, match=r"test.tsv: no question 'none' in queries.jsonl"):
        convert(str(source), tmp_path / "again")
    qrels.write_text("query-id\tcorpus-id\nq\tb\n")
    with pytest.raises(DataError, match=r"test.tsv.*score"):
        convert(str(source), tmp_path / "again")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_one_file_of_questions(tmp_path, ending):
    frame = pd.DataFrame({"id": ["7", "8"], "question": ["a, b?", "line\nbreak"]})
    path = tmp_path / f"file.{ending}"
    if ending == "csv":
        path.write_text("\ufeff" + frame.to_csv(index=False), "utf-8")  # with a BOM
    else:
        frame.to_parquet(path)
    made = convert(str(path), tmp_path / "out")
    assert made.questions["text"].tolist() == ["a, b?", "line\nbreak"]


def test_further_columns_may_have_gaps_and_dates(tmp_path):
    frame = pd.DataFrame({"id": ["7", "8"], "question": ["a?", "b?"], "level": [1.5, None]})
    frame.assign(asked=pd.to_datetime(["2026-01-02", None])).to_parquet(tmp_path / "q.parquet")
    convert(str(tmp_path / "q.parquet"), tmp_path / "out")
    rows = (tmp_path / "out" / "questions.jsonl").read_text().splitlines()
    found = [[json.loads(row)[name] for name in ("level", "asked")] for row in rows]
    assert found == [[1.5, "2026-01-02 00:00:00"], [None, None]]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("questions.csv", b"id,txet\n1,a\n", "no column 'text'.*did you mean 'txet'"),
        ("questions.csv", "id,text\n1,für\n".encode("latin-1"), r"questions.csv.*UTF-8"),
        ("questions.csv", b"id,text\n1,a\n1,b\n", "questions.csv: line 3.*question_id '1' was in"),
        ("questions.csv", b"id,text\n1,a\n2,\n", "questions.csv: line 3.*text should be a text"),
        ("questions.csv", b"id,text\n1\n", "questions.csv: line 2"),
        ("questions.jsonl", b'{"id": 1, "text": "a"}\n{"id": 2,\n', "questions.jsonl: line 2"),
        (
            "questions.jsonl",
            b'{"id": 1, "text": "a", "gold_doc_ids": ["nowhere"]}\n',
            "mine.questions.jsonl.*nowhere",
        ),
        ("scores.csv", b"system,item_id,score\nA,1,\n", "scores.csv: line 2.*score"),
    ],
)
def test_a_bad_file_is_told_with_its_place_and_leaves_nothing(
    folder, tmp_path, name, content, words
):
    (folder / "questions.jsonl").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=f"(?s){words}"):
        convert(str(folder), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_not_there_or_taken_is_said(folder, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="exists already"):
        convert(str(folder), folder)
    with pytest.raises(MissingData, match="no such file or folder"):
        convert(str(tmp_path / "nowhere"), tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingData, match="none of documents.jsonl"):
        convert(str(tmp_path / "empty"), tmp_path / "out")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FetchError, match="HF:some/name"):
        convert("HF:some/name", tmp_path / "out")
    with pytest.raises(UsageError, match="no name for a benchmark"):
        root.main(["new", "sample", "--from", str(folder)], standalone_mode=False)


RUNS = pd.DataFrame(
    {"system": "s", "question_id": ["q", "q"], "rank": [2, 1], "doc_id": ["b", "a"], "score": 0.5}
)
GOLD = pd.DataFrame({"question_id": ["q"], "gold_doc_ids": [("a", "c")]})


def test_trec_files_say_what_the_frames_say(tmp_path):
    import ir_measures

    exports.trec(RUNS, GOLD, tmp_path)
    assert (tmp_path / "s.run").read_text() == "q Q0 a 1 -1 s\nq Q0 b 2 -2 s\n"
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels")))
    runs = list(ir_measures.read_trec_run(str(tmp_path / "s.run")))
    (recall,) = ir_measures.calc_aggregate([ir_measures.R @ 1], qrels, runs).values()
    assert recall == 0.5
    with pytest.raises(DataError, match="'a b' has a blank"):
        exports.trec(RUNS.assign(doc_id="a b"), GOLD, tmp_path)


def test_a_leaderboard_bundle_is_read_by_our_own_readers(tmp_path):
    answers = pd.DataFrame(
        {"system": "s", "question_id": ["q", "r"], "answer": ["one", None], "doc_ids": [("a",), ()]}
    )
    systems = tmp_path / "declared.toml"
    systems.write_text("[s]\nretriever = 'bm25'\n")
    written = exports.leaderboard(
        answers, pd.DataFrame({"metric": ["R"], "value": [1 / 3]}), systems, tmp_path / "b"
    )
    again = read_frame(tmp_path / "b" / "answers.s.jsonl", "answers")
    assert again[["question_id", "answer", "doc_ids"]].to_numpy().tolist() == [["q", "one", ("a",)]]
    sums = dict(line.split("  ")[::-1] for line in written[-1].read_text().splitlines())
    assert sums == {path.name: sha256(path) for path in written[:-1]}


def test_a_record_of_every_eval_ever_has_what_its_schema_requires(tmp_path):
    rows = pd.DataFrame({"metric": ["R@5", "F1"], "value": [0.5, None]})
    rows = rows.assign(system="s", n=4, low=0.3, high=0.7)
    (path,) = exports.every_eval_ever(rows, "mine", tmp_path, organization="lab", timestamp=12)
    record = json.loads(path.read_text())
    required = (
        "schema_version evaluation_id retrieved_timestamp source_metadata model_info eval_library"
    )
    assert {*required.split(), "evaluation_results"} == set(record)
    (result,) = record["evaluation_results"]
    assert result["score_details"]["score"] == 0.5
    assert result["score_details"]["uncertainty"]["confidence_interval"]["upper"] == 0.7
    assert result["source_data"] == {"dataset_name": "mine", "source_type": "other"}
