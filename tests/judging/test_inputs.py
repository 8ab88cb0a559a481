import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.judging import read_answers, read_questions
from ragkit.judging.inputs import read_documents, strip_citations
from tests.judging.helpers import question_rows, questions, write_jsonl


@pytest.mark.parametrize(
    ("answer", "stripped"),
    [
        ("10 MiB [1][3][5].", "10 MiB."),
        ("10 MiB [1, 3] and 2 [4-6].", "10 MiB and 2."),
        ("50MiB[12] in all", "50MiB in all"),
        ("So it is [^2].", "So it is."),
        ("It is【4†source】 so", "It is so"),
        ("It is [Document 2] so (source: 3).", "It is so."),
        ("It is (dsid_ab12, dsid_cd34) so", "It is so"),
        ("It is [doc: dsid_ab12] so", "It is so"),
        ("See [the guide](https://x.example/a) [1](https://x.example).", "See the guide."),
        ("Yes.\n\nSources:\n- a\n- [2] b\n", "Yes."),
        ("Yes.\n\n**References:**\n[1] A title\n[2] Another", "Yes."),
        (
            "**Sources**\nare three:\nslack, mail, wiki",
            "**Sources**\nare three:\nslack, mail, wiki",
        ),
        ("`a[1]` and ```\nb[2]\n``` stay [3]", "`a[1]` and ```\nb[2]\n``` stay"),
        ("one of [hosted, dedicated] in [2024]", "one of [hosted, dedicated] in [2024]"),
        ("The list [DONE] (see above)", "The list [DONE] (see above)"),
        ("x in [0.5, 1]", "x in [0.5, 1]"),
        ("", ""),
        (" [1] ", ""),
    ],
)
def test_citations_are_stripped(answer, stripped):
    assert strip_citations(answer) == stripped


@given(st.text(alphabet="a1 [],.()`\n-^", max_size=60))
def test_stripping_adds_nothing(answer):
    stripped = strip_citations(answer)
    assert len(stripped) <= len(answer)
    assert stripped.count("a") == answer.count("a")


def test_questions_with_official_and_own_columns(tmp_path):
    official, bad = read_questions(write_jsonl(tmp_path / "q.jsonl", question_rows()))
    assert official["facts"].tolist() == questions()["facts"].tolist()
    assert official["gold_doc_ids"].tolist() == questions()["gold_doc_ids"].tolist()
    assert bad == []
    own = [
        {**row, "facts": list(row["facts"]), "gold_doc_ids": list(row["gold_doc_ids"])}
        for row in questions().to_dict("records")
    ]
    again, _ = read_questions(write_jsonl(tmp_path / "own.jsonl", own))
    columns = ["question_id", "text", "type", "answer", "facts", "gold_doc_ids"]
    assert again[columns].equals(official[columns])


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"gold_answer": None}, "question 'q1' has no gold answer"),
        ({"answer_facts": "red"}, "line 3: facts should be a list of strings"),
        ({"gold_answer": 3}, "line 3: answer should be a text, found 3"),
        ({"question_id": "q2"}, "line 3: question_id 'q2' was in line 1 before"),
    ],
)
def test_bad_questions(tmp_path, change, complaint):
    rows = question_rows()
    rows.append({**rows[0], **change})
    del rows[0]
    path = write_jsonl(tmp_path / "q.jsonl", rows)
    with pytest.raises(DataError, match=f"q.jsonl: {complaint}") as caught:
        read_questions(path)
    assert "--skip-bad" in caught.value.hint
    kept, bad = read_questions(path, skip_bad=True)
    assert kept["question_id"].tolist() == ["q2", "q3"]
    assert [one["file"] for one in bad] == ["q.jsonl"]


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"question_id": "q9", "answer": "a"}, "question_id 'q9' is none of the 3 questions"),
        (
            {"question_id": "q1", "answer": "b"},
            "line 3: system 'a', question_id 'q1' was in line 1 before",
        ),
        ({"question_id": "q2", "answer": 5}, "line 3: answer should be a text, found 5"),
        ({"question_id": "q2", "document_ids": "d"}, "line 3: doc_ids should be a list"),
        ('{"question_id": "q2", "answer": ', "line 3"),
    ],
)
def test_bad_answers(tmp_path, row, complaint):
    path = write_jsonl(tmp_path / "a.jsonl", [{"question_id": "q1", "answer": "x"}, "", row])
    with pytest.raises(DataError, match=f"a.jsonl: {complaint}") as caught:
        read_answers(path, questions())
    assert "skip_bad" in caught.value.hint
    kept, bad = read_answers(path, questions(), skip_bad=True)
    assert kept["question_id"].tolist() == ["q1"]
    assert len(bad) == 1
    with pytest.raises(DataError, match="no usable row"):
        read_answers(write_jsonl(path, [{"question_id": "q9"}]), questions(), skip_bad=True)


def test_documents(tmp_path):
    rows = [{"doc_id": "d1", "title": "T", "text": "body"}, {"doc_id": "d2", "content": "other"}]
    path = write_jsonl(tmp_path / "d.jsonl", rows)
    assert read_documents(path, {"d1", "d2"}) == {"d1": "T\n\nbody", "d2": "other"}
    assert list(read_documents(path, {"d1", "d7"})) == ["d1"]
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr("slack/general/dsid_1__hello.txt", "Title\n\nBody")
    assert read_documents(tmp_path / "d.zip", {"dsid_1"}) == {"dsid_1": "Title\n\nBody"}
