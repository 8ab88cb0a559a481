import json
import os
import shutil
import unicodedata

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError
from ragkit.systems.agent import corpus_tree
from tests.systems.agent.conftest import plant


def frame(*rows):
    """Documents of (doc_id, path) or (doc_id, source, title)."""
    plain = [
        (name, "src", f"title of {name}", *rest) if len(rest) == 1 else (name, *rest, None)
        for name, *rest in rows
    ]
    made = pd.DataFrame(plain, columns=["doc_id", "source", "title", "path"])
    return made.assign(text="text of " + made["doc_id"])


def files(root):
    return {
        str(path.relative_to(root)): path.read_text("utf-8")
        for path in root.rglob("*")
        if path.is_file()
    }


def test_a_document_is_a_file_of_title_empty_line_and_text(tmp_path):
    tree = corpus_tree(frame(("d1", "slack/general/one.txt")), tmp_path / "new")
    assert files(tree.root) == {"slack/general/one.txt": "title of d1\n\ntext of d1\n"}
    assert tree.doc_ids == {"slack/general/one.txt": "d1"}
    assert json.loads((tmp_path / "new" / "tree.json").read_text())["doc_ids"] == tree.doc_ids
    assert tree.doc_id("./slack//general/one.txt\n") == "d1"
    assert tree.doc_id("slack/general") is None
    dates = {path.stat().st_mtime for path in (tree.root, *tree.root.rglob("*"))}
    assert dates == {946_684_800}  # a ledger answers an agent that looks at dates


def test_without_a_path_the_source_and_the_title_make_one(tmp_path):
    tree = corpus_tree(
        frame(("d1", "Google Drive", "Plan: 50% & more?"), ("d2", "jira", ""), ("d3", "", "x")),
        tmp_path,
    )
    assert list(tree.doc_ids) == ["Google-Drive/Plan-50-more.txt", "jira/d2.txt", "untitled/x.txt"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/-rf.txt", "a/%2Drf.txt"),
        ("a/.hidden", "a/%2Ehidden"),
        ("a/new\nline.txt", "a/new%0Aline.txt"),
        ("a/nul\0.txt", "a/nul%00.txt"),
        ("a/esc\x1b[31m", "a/esc%1B%5B31m"),
        ("a/100%.txt", "a/100%25.txt"),
        ("a/what?*.txt", "a/what%3F%2A.txt"),
        ("a/back\\slash", "a/back%5Cslash"),
        ("a/c:d.txt", "a/c%3Ad.txt"),
        ("a/con.txt", "a/%63on.txt"),
        ("a/end.", "a/end%2E"),
        ("a/ blank ", "a/%20blank%20"),
        ("~/x", "%7E/x"),
        ("a//./b.txt", "a/b.txt"),
        ("a/lone\ud800.txt", "a/lone%ED%A0%80.txt"),
        ("a/cafe\u0301.txt", "a/caf\u00e9.txt"),
        ("a/$(id);x.txt", "a/$(id);x.txt"),
    ],
)
def test_names_are_made_safe(path, expected, tmp_path):
    tree = corpus_tree(frame(("d1", path)), tmp_path)
    assert list(tree.doc_ids) == [expected]
    assert list(files(tree.root)) == [expected]


def test_a_long_name_is_cut_and_a_file_with_the_name_of_a_folder_gets_another(tmp_path):
    paths = [f"a/{'x' * 300}{n}.txt" for n in (1, 2)] + ["a/b", "a/b/c.txt"]
    one, two, file, inner = corpus_tree(frame(*zip("1234", paths, strict=True)), tmp_path).doc_ids
    assert one != two
    assert one.endswith(".txt")
    assert max(len(part.encode()) for part in one.split("/")) <= 120
    assert inner == "a/b/c.txt"
    assert file.startswith("a/b~")


def test_names_that_differ_in_case_or_accents_alone_are_told_apart(tmp_path):
    paths = "Slack/One.txt slack/one.TXT SLACK/one.txt slack/stra\u00dfe slack/STRASSE".split()
    tree = corpus_tree(frame(*zip("12345", paths, strict=True)), tmp_path)
    lower = [unicodedata.normalize("NFC", path.casefold()) for path in tree.doc_ids]
    assert len(set(lower)) == 5
    assert all(path.startswith("Slack/") for path in tree.doc_ids)
    assert sorted(tree.doc_ids.values()) == list("12345")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/etc/passwd", "is absolute"),
        ("C:\\x", "is absolute"),
        ("\\\\server\\x", "is absolute"),
        ("a/../../x", r"climbs with '\.\.'"),
        ("..", r"climbs with '\.\.'"),
        ("/".join("a" * 70), "has 70 parts"),
        ("./", "has 0 parts"),
    ],
)
def test_paths_that_lead_out_are_refused(path, message, tmp_path):
    with pytest.raises(DataError, match=message):
        corpus_tree(frame(("d1", path)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_differs_is_written_anew_and_what_is_strange_removed(tmp_path):
    documents = frame(("d1", "a/one.txt"), ("d2", "b/two.txt"), ("d3", "c/three.txt"))
    tree = corpus_tree(documents, tmp_path)
    times = {path: os.stat(path).st_mtime_ns for path in tmp_path.rglob("*")}
    assert corpus_tree(documents, tmp_path) == tree
    assert {path: os.stat(path).st_mtime_ns for path in tmp_path.rglob("*")} == times
    before = files(tree.root)
    plant(tree.root, {"a/one.txt": "changed", "a/stranger.txt": "new", "left/over/x": "x"})
    (tree.root / "c/three.txt").unlink()
    assert corpus_tree(documents, tmp_path) == tree
    assert files(tree.root) == before
    assert not (tree.root / "left").exists()
    assert list(files(corpus_tree(documents.iloc[:1], tmp_path).root)) == ["a/one.txt"]


def test_it_never_writes_or_removes_through_a_link(tmp_path):
    documents = frame(("d1", "a/one.txt"), ("d2", "b/two.txt"))
    tree = corpus_tree(documents, tmp_path / "tree")
    before = files(tree.root)
    outside = plant(tmp_path / "outside", {"one.txt": "mine", "kept.txt": "mine"})
    shutil.rmtree(tree.root / "a")
    (tree.root / "a").symlink_to(outside)
    (tree.root / "b/two.txt").unlink()
    os.link(outside / "kept.txt", tree.root / "b/two.txt")
    (tree.root / "strange").symlink_to(outside)
    corpus_tree(documents, tmp_path / "tree")
    assert files(outside) == {"one.txt": "mine", "kept.txt": "mine"}
    assert files(tree.root) == before


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="not empty and not a corpus tree"):
        corpus_tree(frame(("d1", "a.txt")), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="title"), "lack the column 'title'"),
        (lambda f: f.assign(doc_id=["d1", "d1"]), "row 2 of documents repeats doc_id='d1'"),
        (lambda f: f.assign(doc_id=["", "d1"]), "row 1 of documents: doc_id should be a text"),
        (lambda f: f.assign(text=["x", 5]), "row 2 of documents: text should be a text, found 5"),
        (lambda f: f.assign(path=[5, "x"]), "document 'd1': path should be a string, found 5"),
    ],
)
def test_bad_frames(change, message, tmp_path):
    with pytest.raises(DataError, match=message):
        corpus_tree(change(frame(("d1", "a"), ("d2", "b"))), tmp_path)


PATHS = st.lists(
    st.text("aAbB\u00e9\u00df.-~%/\\ \n\0*:?x", min_size=1, max_size=12).filter(
        lambda path: (
            not path.startswith(("/", "\\"))
            and ".." not in path.split("/")
            and path.strip("./")
            and path[1:3] not in (":/", ":\\")
        )
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(paths=PATHS)
def test_every_document_is_found_again_by_its_path(paths, tmp_path_factory):
    documents = frame(*((f"d{n}", path) for n, path in enumerate(paths)))
    tree = corpus_tree(documents, tmp_path_factory.mktemp("tree"))
    assert sorted(tree.doc_ids.values()) == sorted(documents["doc_id"])
    keys = {unicodedata.normalize("NFC", path.casefold()) for path in tree.doc_ids}
    assert len(keys) == len(paths)
    for path, text in files(tree.root).items():
        doc_id = tree.doc_id(f"./{path}")
        assert text == f"title of {doc_id}\n\ntext of {doc_id}\n"
