import gzip
import json
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError, MissingData
from ragkit.judging import inputs, read_answers, read_documents, read_questions, strip_citations
from tests.judging.helpers import answer_rows, question_rows, questions, write_jsonl


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


def test_stripping_ends_on_lists_that_are_none():
    answer = "Sources:\n" + "- " * 2000 + "\n[1" + ",1" * 2000 + "\nso"
    assert strip_citations(answer) == answer


@given(st.text(alphabet="a1 [],.()`\n-^", max_size=60))
def test_stripping_adds_nothing(answer):
    def letters(text):
        return [character for character in text if character == "a"]

    stripped = strip_citations(answer)
    assert len(stripped) <= len(answer)
    assert letters(stripped) == letters(answer)


def test_questions_with_official_and_own_columns(tmp_path):
    official, lines = read_questions(write_jsonl(tmp_path / "q.jsonl", question_rows()))
    assert official["facts"].tolist() == questions()["facts"].tolist()
    assert official["gold_doc_ids"].tolist() == questions()["gold_doc_ids"].tolist()
    assert lines.about()["rows"] == 3
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
        ({"answer_facts": []}, "question 'q1' has no facts"),
        ({"answer_facts": None}, "question 'q1' has no facts"),
        ({"answer_facts": "red"}, "facts should be a list of strings"),
        ({"gold_answer": None}, "no gold answer"),
        ({"gold_answer": 3}, "answer should be a text, found 3"),
        ({"question": " "}, "text should be a text"),
        ({"question_id": 7}, "question_id should be a text, found 7"),
        ({"expected_doc_ids": [1]}, "gold_doc_ids should be a list of strings"),
    ],
)
def test_bad_questions_are_named_by_line(tmp_path, change, complaint):
    rows = question_rows()
    rows.append({**rows[0], "question_id": "q1", **change})
    del rows[0]
    path = write_jsonl(tmp_path / "q.jsonl", rows)
    with pytest.raises(DataError, match=f"q.jsonl: line 3: {complaint}"):
        read_questions(path)
    kept, lines = read_questions(path, skip_bad=True)
    assert kept["question_id"].tolist() == ["q2", "q3"]
    assert [one["line"] for one in lines.bad] == [3]


def test_repeated_questions(tmp_path):
    path = write_jsonl(tmp_path / "q.jsonl", [*question_rows(), question_rows()[1]])
    with pytest.raises(DataError, match="line 4: question_id 'q2' was in line 2 before"):
        read_questions(path)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"question_id": "q9", "answer": "a"}, "question_id 'q9' is none of the 3 questions"),
        ({"question_id": "q1", "answer": "b"}, "question_id 'q1' was in line 1 before"),
        ({"question_id": "q2"}, "question 'q2' has neither answer nor doc_ids"),
        ({"question_id": "q2", "answer": 5}, "answer should be a string, found 5"),
        (
            {"question_id": "q2", "answer": "a", "document_ids": "d"},
            "doc_ids should be a list",
        ),
        (
            {"question_id": "q2", "answer": "a", "document_ids": [1]},
            "doc_ids should be a list",
        ),
        (
            {"question_id": "q2", "document_ids": ["d1"], "doc_ids": ["d2"]},
            "document_ids and doc_ids are the same column and differ",
        ),
        ({"answer": "a"}, "question_id should be a text, found None"),
        ([1, 2], "expected an object"),
        ('{"question_id": "q2", "answer": ', "not JSON in UTF-8"),
        ("[" * 100_000, "not JSON in UTF-8"),
        (r'{"question_id": "q2", "answer": "\uD83D"}', "not JSON in UTF-8"),
    ],
)
def test_bad_answers_are_named_by_line(tmp_path, row, complaint):
    path = write_jsonl(tmp_path / "a.jsonl", [{"question_id": "q1", "answer": "x"}, "", row])
    with pytest.raises(DataError, match=f"a.jsonl: line 3: {complaint}") as caught:
        read_answers(path, questions())
    assert "skip_bad" in caught.value.hint
    kept, lines = read_answers(path, questions(), skip_bad=True)
    assert kept["question_id"].tolist() == ["q1"]
    assert [one["line"] for one in lines.bad] == [3]


def test_several_bad_lines_are_counted(tmp_path):
    rows = [{"question_id": "q1", "answer": "x"}, "1", "2", "3"]
    with pytest.raises(DataError, match=r"line 2: .* \(2 more bad lines: 3, 4\)"):
        read_answers(write_jsonl(tmp_path / "a.jsonl", rows), questions())


def test_a_huge_line_is_not_held(tmp_path):
    path = tmp_path / "a.jsonl"
    with path.open("w") as stream:
        stream.write(json.dumps({"question_id": "q1", "answer": "x"}) + "\n")
        stream.write('{"question_id": "q2", "answer": "' + "y" * 50_000_000 + '"}\n')
        stream.write(json.dumps({"question_id": "q3", "answer": "z"}))
    with pytest.raises(DataError, match="line 2: longer than 16 MiB"):
        read_answers(path, questions())
    kept, lines = read_answers(path, questions(), skip_bad=True)
    assert kept["question_id"].tolist() == ["q1", "q3"]
    assert [one["line"] for one in lines.bad] == [2]


def test_the_longest_line(tmp_path, monkeypatch):
    row = '{"question_id": "q1", "answer": "xxxxx"}'
    path = write_jsonl(tmp_path / "a.jsonl", [row, "1" * (len(row) + 1)])
    monkeypatch.setattr(inputs, "MAX_LINE", len(row) + 1)  # with the line end
    kept, lines = read_answers(path, questions(), skip_bad=True)
    assert kept["question_id"].tolist() == ["q1"]
    assert [one["line"] for one in lines.bad] == [2]


def test_other_bytes_gzip_and_no_file(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"question_id": "q1", "answer": "x"}\n{"a": "\xff"}\n')
    with pytest.raises(DataError, match="line 2: not JSON in UTF-8"):
        read_answers(path, questions())
    packed = tmp_path / "sys.jsonl.gz"
    packed.write_bytes(gzip.compress(b'{"question_id": "q1", "document_ids": []}\n'))
    frame, _ = read_answers(packed, questions())
    assert frame.loc[0, "system"] == "sys"
    assert frame.loc[0, "answer"] is None
    assert bool(frame.loc[0, "documents_given"])
    packed.write_bytes(gzip.compress(b"{}" * 1000)[:-9])
    with pytest.raises(DataError, match="cannot be read"):
        read_answers(packed, questions())
    with pytest.raises(MissingData, match="no such file"):
        read_answers(tmp_path / "none.jsonl", questions())
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(DataError, match="no usable line"):
        read_answers(tmp_path / "empty.jsonl", questions())


def test_answers_without_documents_are_not_answers_with_none(tmp_path):
    frame, _ = read_answers(write_jsonl(tmp_path / "a.jsonl", answer_rows()), questions())
    assert frame["documents_given"].tolist() == [True, True, False]


def test_documents(tmp_path):
    rows = [
        {"doc_id": "d1", "title": "T", "text": "body"},
        {"doc_id": "d2", "content": "other"},
        {"doc_id": "d3", "text": 4},
    ]
    path = write_jsonl(tmp_path / "d.jsonl", rows)
    assert read_documents(path, {"d1", "d2"}) == {"d1": "T\n\nbody", "d2": "other"}
    with pytest.raises(DataError, match="document 'd3' has no text"):
        read_documents(path, {"d3"})
    with pytest.raises(DataError, match="1 of 2 documents are not there, such as 'd7'"):
        read_documents(path, {"d1", "d7"})
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        archive.writestr("slack/general/dsid_1__hello.txt", "Title\n\nBody")
        archive.writestr("slack/general/dsid_2__other.txt", b"\xff not asked for")
    assert read_documents(tmp_path / "d.zip", {"dsid_1"}) == {"dsid_1": "Title\n\nBody"}
    with pytest.raises(DataError, match="1 of 1 documents are not there, such as 'dsid_3'"):
        read_documents(tmp_path / "d.zip", {"dsid_3"})
    (tmp_path / "cut.zip").write_bytes((tmp_path / "d.zip").read_bytes()[:60])
    with pytest.raises(DataError, match="damaged or incomplete zip"):
        read_documents(tmp_path / "cut.zip", {"dsid_1"})
    with pytest.raises(MissingData, match="no such file"):
        read_documents(tmp_path / "none.zip", {"dsid_1"})


def test_escaped_pairs_are_characters(tmp_path):
    row = r'{"question_id": "q1", "answer": "\uD83D\uDE00"}'
    frame, _ = read_answers(write_jsonl(tmp_path / "a.jsonl", [row]), questions())
    assert frame.loc[0, "answer"] == "\U0001f600"
