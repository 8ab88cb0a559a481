"""The file of systems: what it may say, and what is said about mistakes."""

from __future__ import annotations

import pandas as pd
import pytest

from ragkit import paths
from ragkit.errors import DataError, MissingData, UsageError
from ragkit.systems.retrieval import Hybrid
from ragkit.systems.sweep import load, select, systems
from ragkit.systems.sweep.systems import System, build


def write(tmp_path, text):
    path = tmp_path / "systems.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_committed_file_loads():
    found = load(paths.NOTEBOOKS / "systems.toml")
    assert len(found) >= 24
    assert len({str((s.ranking, s.reader, s.top)) for s in found}) == len(found)
    assert any(s.rerank for s in found)
    assert {1, 2, 4} <= {s.reader["sentences"] for s in found if s.reader}
    assert [s.name for s in select(found, ["minilm", "bm25", "minilm"])] == ["minilm", "bm25"]
    with pytest.raises(UsageError, match="no system 'c'"):
        select(found, ["c"])


def test_servers_and_the_agent_can_be_declared(tmp_path):
    """The examples at the end of notebooks/systems.toml, their comment marks removed."""
    shown = (paths.NOTEBOOKS / "systems.toml").read_text("utf-8").rpartition("remove the marks")[2]
    lines = [line.removeprefix("# ") for line in shown.splitlines()[1:]]
    found = load(write(tmp_path, "\n".join(lines)))
    kinds = {"bm25-opensearch": "OpenSearch", "minilm-qdrant": "Qdrant", "bash-agent": "BashAgent"}
    kinds |= {"bash-agent-qwen": "BashAgent", "closed-book": "Nothing"}
    assert {one.name: type(build(one)).__name__ for one in found} == kinds


def test_short_and_long_forms(tmp_path):
    text = """
    [a]
    retriever = "bm25"
    ["b c"]
    retriever = "dense:all-MiniLM-L6-v2"
    words = 20
    rerank = "ms-marco-MiniLM-L-12-v2-int8"
    reader = "openai:toy"
    [d]
    top = 3
    reader = { kind = "extractive", sentences = 2 }
    retriever = { kind = "hybrid", k0 = 10, retrievers = ["bm25", { kind = "bm25", b = 0.1 }] }
    """
    a, b, d = load(write(tmp_path, text))
    assert a == System("a", {"kind": "bm25"}, top=5)
    assert b.name == "b c"
    assert b.retriever == {"kind": "dense", "encoder": "all-MiniLM-L6-v2"}
    assert b.rerank == {"reranker": "ms-marco-MiniLM-L-12-v2-int8", "depth": 20}
    assert b.reader == {"kind": "openai:toy"}
    assert b.words == 20
    assert b.models == {"all-MiniLM-L6-v2", "ms-marco-MiniLM-L-12-v2-int8"}
    assert d.top == 3
    hybrid = build(d)
    assert isinstance(hybrid, Hybrid)
    assert (hybrid.k0, [part.retriever.b for part in hybrid.retrievers]) == (10, [0.75, 0.1])
    assert d.modules == tuple(sorted((systems.RETRIEVERS["bm25"], systems.RETRIEVERS["hybrid"])))


def test_a_reranker_scores_whole_documents():
    class Scorer:
        name = "s"

        def score_pairs(self, pairs):
            return [float(passage.count("end")) for _, passage in pairs]

    spec = {"reranker": Scorer(), "depth": 7, "long": "truncate"}
    built = build(System("s", {"kind": "bm25"}, spec, words=1))
    documents = pd.DataFrame({"doc_id": ["1", "2"], "title": "", "text": ["a b", "a the end"]})
    assert built.fit(documents).search(["a"], 2)["doc_id"].tolist() == ["2", "1"]
    assert built.search(["end"], 2).empty


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no system is declared"),
        ("[a\n", "not TOML"),
        ("a = 1", "system 'a': not a table"),
        ("[a]", "line 1: system 'a': no retriever"),
        ('[a]\nretriver = "bm25"', "line 1: system 'a': no option .* 'retriver'(.|\n)*'retriever'"),
        ('\n\n[a]\nretriever = "bm52"', "line 3: system 'a': no retriever 'bm52'(.|\n)*'bm25'"),
        ('[a]\nretriever = { kind = "bm25", k2 = 1 }', "system 'a': no option of bm25 'k2'"),
        ("[a]\nretriever = { k1 = 1 }", "retriever should be a name, or a table"),
        ('[a]\nretriever = { kind = "bm25", cache = true }', "no option of bm25 'cache'"),
        ('[a]\nretriever = { kind = "bm25", b = 2 }', "'a': b should be a number from 0 to 1"),
        ('[a]\nretriever = "dense:all-MiniLM"', "no encoder 'all-MiniLM'(.|\n)*all-MiniLM-L6-v2"),
        ('[a]\nretriever = "hybrid"', "hybrid needs a list of retrievers"),
        ('[a]\nretriever = { kind = "hybrid", retrievers = ["bm25", "bm"] }', "no retriever 'bm'"),
        ('[a]\nretriever = { kind = "hybrid", retrievers = ["bm25"] }', "needs two retrievers"),
        ('[a]\nretriever = "bm25"\nrerank = "x"', "no reranker 'x'"),
        ('[a]\nretriever = "bm25"\nrerank = { deep = 3 }', "no option of rerank 'deep'"),
        ('[a]\nretriever = "bm25"\nrerank = 3', "rerank should be a name, or a table"),
        ('[a]\nretriever = "bm25"\nreader = "extractor"', "no reader is called 'extractor'"),
        ('[a]\nretriever = "bm25"\nreader = "openai:"', "openai:NAME"),
        (
            '[a]\nretriever = "bm25"\nreader = { kind = "openai:m", client = "x" }',
            "no option.*'client'",
        ),
        ('[a]\nretriever = "bm25"\ntop = 0', "top should be a whole number of at least 1"),
        ('[a]\nretriever = "bm25"\nwords = true', "words should be a whole number of at least 1"),
        ('[x]\nretriever = "bm25"\n["a b"]\nword = 1', "line 3: system 'a b'"),
        ('[x.y]\nretriever = "bm25"', "line 1: system 'x': no option of a system 'y'"),
    ],
)
def test_mistakes_name_file_line_and_system(tmp_path, text, message):
    with pytest.raises((UsageError, DataError), match=message) as caught:
        load(write(tmp_path, text))
    assert "systems.toml" in str(caught.value)
    with pytest.raises(MissingData):
        load(tmp_path / "none.toml")


OPTIONS = {
    "bm25": "k1 b mode fields",
    "dense": "encoder long chunk_tokens overlap fields backend",
    "hybrid": "method k0 depth weights",
    "opensearch": "server k1 b shards fields overwrite batch timeout",
    "qdrant": "server encoder exact fields overwrite",
    "agent": "policy steps seconds sandbox budget",
    "rerank": "reranker depth long window_tokens overlap fields",
    "reader": "reranker sentences threshold most",
    "openai:toy": "concurrency budget timeout",
}


@pytest.mark.parametrize(
    ("retriever", "more", "words"),
    [
        ('kind = "bm25", k1 = "big"', "", 'k1 should be a number, found "big"'),
        ('kind = "bm25", k1 = 2020-01-01', "", 'k1 should be a number, found "2020-01-01"'),
        ('kind = "bm25", k1 = true', "", "k1 should be a number, found true"),
        ('kind = "bm25", mode = 3', "", "mode should be a text, found 3"),
        ('kind = "bm25", fields = "text"', "", 'fields should be a list of texts, found "text"'),
        ('kind = "dense", chunk_tokens = 1.5', "", "chunk_tokens should be a whole number"),
        ('kind = "hybrid", retrievers = 3', "", "retrievers should be a list, found 3"),
        ('kind = "hybrid", retrievers = [], weights = ["a"]', "", "weights .* a list of numbers"),
        ('kind = "opensearch", overwrite = 1', "", "overwrite should be true or false, found 1"),
        ('kind = "bm25"', 'kind = "openai:toy", parameters = 3', "parameters should be a table"),
        (
            'kind = "bm25"',
            'kind = "openai:toy", environment = 3',
            "environment should be a text, found 3",
        ),
    ],
)
def test_types_are_named_in_words(tmp_path, retriever, more, words):
    reader = f"reader = {{ {more} }}\n" if more else ""
    with pytest.raises(UsageError, match=words):
        load(write(tmp_path, f"[a]\n{reader}retriever = {{ {retriever} }}"))


PARTS = 'kind = "hybrid", retrievers = ["bm25", "bm25"]'


@pytest.mark.parametrize("value", ['"big"', "{ a = 1 }", "[[1]]"])
@pytest.mark.parametrize(
    ("kind", "option"), [(kind, name) for kind, names in OPTIONS.items() for name in names.split()]
)
def test_an_option_of_a_wrong_type_is_one_error(tmp_path, kind, option, value):
    text = {
        "rerank": f'retriever = "bm25"\nrerank = {{ {option} = {value} }}',
        "reader": f'retriever = "bm25"\nreader = {{ kind = "extractive", {option} = {value} }}',
        "openai:toy": f'retriever = "bm25"\nreader = {{ kind = "{kind}", {option} = {value} }}',
        "hybrid": f"retriever = {{ {PARTS}, {option} = {value} }}",
    }.get(kind, f'retriever = {{ kind = "{kind}", {option} = {value} }}')
    with pytest.raises(UsageError, match=f"systems.toml, line 1: system 'a': .*{option}"):
        load(write(tmp_path, f"[a]\n{text}"))
