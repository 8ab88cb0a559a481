"""OpenSearch and Qdrant: the contract, on stand-ins and on servers named by the environment."""

from __future__ import annotations

import os
import uuid

import numpy as np
import pandas as pd
import pytest
from opensearchpy import OpenSearch as OpenSearchClient
from qdrant_client import QdrantClient

from ragkit import models
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.systems.retrieval.servers import OpenSearch, Qdrant
from tests.systems.retrieval import opensearch_stub, qdrant_stub, server_contract

NOWHERE = "http://127.0.0.1:9"  # nothing listens on the discard port
DOCUMENTS = [{"doc_id": str(n), "title": None, "text": f"alpha {n}"} for n in range(5)]


@pytest.fixture
def stub():
    with opensearch_stub.serve(opensearch_stub.Stub()) as running:
        yield running


@pytest.fixture
def plain():
    """A server that answers every request with `plain.status`, after `plain.delay` seconds."""

    class Plain:
        user, status, delay = "", 500, 0.0

        def answer(self, method, path, body):
            opensearch_stub.time.sleep(self.delay)
            return self.status, {"status": {"error": "made up"}}

    with opensearch_stub.serve(Plain()) as running:
        yield running


def named(variable: str) -> str:
    if not os.environ.get(variable):
        pytest.skip(f"no server: set {variable} to the address of one")
    return os.environ[variable]


@pytest.fixture
def name():
    return f"ragkit-contract-{uuid.uuid4().hex[:12]}"


# -- the contract --------------------------------------------------------------------------------


@pytest.mark.parametrize("legacy", [False, True])
def test_opensearch_keeps_the_contract(name, legacy):
    with opensearch_stub.serve(opensearch_stub.Stub(legacy=legacy)) as stub:
        server_contract.opensearch_facts(lambda **o: OpenSearch(stub.url, index=name, **o))


def test_a_real_opensearch_keeps_the_contract(name):
    url = named("RAGKIT_OPENSEARCH_URL")
    client = OpenSearchClient([url], verify_certs=False, ssl_show_warn=False, timeout=60)
    try:
        for shards in (1, 3):
            server_contract.opensearch_facts(
                lambda s=shards, **o: OpenSearch(client, index=f"{name}-{s}", shards=s, **o)
            )
    finally:
        for shards in (1, 3):
            client.indices.delete(index=f"{name}-{shards}", ignore_unavailable=True)


def test_embedded_qdrant_keeps_the_contract(name, recwarn):
    client = QdrantClient(":memory:")
    server_contract.qdrant_facts(
        lambda **o: Qdrant(client, collection=name, encoder=server_contract.Words(), **o)
    )
    assert not list(recwarn)


@pytest.mark.parametrize("exact", [True, False])
def test_qdrant_behind_an_address_keeps_the_contract(name, exact):
    options = {"collection": name, "encoder": server_contract.Words(), "exact": exact}
    with opensearch_stub.serve(qdrant_stub.Stub()) as stub:
        server_contract.qdrant_facts(lambda **o: Qdrant(stub.url, **options, **o))
    assert {asked["params"]["exact"] for asked in stub.asked} == {exact}


def test_a_real_qdrant_keeps_the_contract(name):
    url, key = named("RAGKIT_QDRANT_URL"), os.environ.get("RAGKIT_QDRANT_API_KEY")
    client = QdrantClient(url=url, api_key=key, timeout=60)
    try:
        server_contract.qdrant_facts(
            lambda **o: Qdrant(client, collection=name, encoder=server_contract.Words(), **o)
        )
    finally:
        client.delete_collection(name)


# -- what the requests look like -------------------------------------------------------------------


def test_batches(stub):
    OpenSearch(stub.url, index="a", batch=2).fit(iter(DOCUMENTS)).search(["alpha"] * 201)
    assert stub.asked.count("POST _bulk") == 3
    assert stub.asked.count("POST _msearch") == 3
    assert stub.asked.index("POST _refresh") > stub.asked.index("POST _bulk")


def test_scores_are_those_of_bm25_to_the_last_bit(stub):
    found = OpenSearch(stub.url, index="a", system="bm25").fit(server_contract.documents())
    expected = server_contract.BM25().fit(server_contract.documents())
    pd.testing.assert_frame_equal(
        found.search(server_contract.QUESTIONS),
        expected.search(server_contract.QUESTIONS),
        check_exact=True,
    )


def test_a_busy_server_is_asked_again(stub):
    stub.faults["_bulk"] = [429]
    search = OpenSearch(stub.url, index="a").fit(DOCUMENTS)
    assert stub.asked.count("POST _bulk") == 2
    assert len(search.search(["alpha"])) == 5


def test_points_of_equal_score_keep_the_order_of_the_documents():
    same = [{"doc_id": f"d{n}", "title": "", "text": "twin"} for n in range(9, 0, -1)]
    search = Qdrant(collection="a", encoder=server_contract.Words()).fit(same)
    assert search.search(["twin"], k=9)["doc_id"].tolist() == [f"d{n}" for n in range(9, 0, -1)]


def test_a_named_encoder_keeps_its_vectors(monkeypatch):
    encoded = []

    def unit(self, texts):
        encoded.extend(texts)
        rows = np.random.default_rng(len(encoded)).normal(size=(len(texts), self.dimension))
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    monkeypatch.setattr(models.Encoder, "_unit", unit)
    search = Qdrant(collection="a", encoder="all-MiniLM-L6-v2", batch=2).fit(DOCUMENTS)
    assert search.system == "dense-all-MiniLM-L6-v2-qdrant"
    assert sorted(encoded) == [f"alpha {n}" for n in range(5)]
    assert search.search(["alpha 3"], k=1)["doc_id"].tolist() == ["3"]  # not encoded again
    assert Qdrant(collection="a", batch=4).fit(DOCUMENTS).documents_ == 5
    assert len(encoded) == 5


def test_texts_without_words_are_neither_sent_nor_found():
    mixed = [{"doc_id": str(n), "title": "", "text": t} for n, t in enumerate(["", " ", "a", "\n"])]
    search = Qdrant(collection="a", encoder=server_contract.Words(), batch=2).fit(mixed)
    runs = search.search(["a", " ", "b"], k=9)
    assert runs[["question_id", "doc_id"]].values.tolist() == [["0", "2"], ["2", "2"]]
    search = Qdrant(collection="a", encoder=server_contract.Words()).fit(mixed[:2])
    assert search.search(["a", ""]).empty


def test_a_folder_holds_what_was_sent(tmp_path):
    options = {"collection": "a", "encoder": server_contract.Words()}
    client = QdrantClient(path=str(tmp_path))
    first = Qdrant(client, **options).fit(DOCUMENTS).search(["alpha 3"])
    client.close()
    client = QdrantClient(path=str(tmp_path))
    second = Qdrant(client, **options).attach()
    pd.testing.assert_frame_equal(second.search(["alpha 3"]), first)
    client.close()


# -- what can go wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda url, **o: OpenSearch(url, index="a", **o),
        lambda url, **o: Qdrant(url, collection="a", encoder=server_contract.Words(), **o),
    ],
    ids=["opensearch", "qdrant"],
)
class TestBoth:
    def test_not_there(self, make):
        with pytest.raises(ModelError, match=f"no .* answers at {NOWHERE}") as error:
            make(NOWHERE).fit(DOCUMENTS)
        assert "start the server" in error.value.hint
        with pytest.raises(ModelError, match="no .* answers"):
            make(NOWHERE).attach()

    @pytest.mark.parametrize("status", [401, 403])
    def test_wrong_credentials_are_not_shown(self, make, plain, status):
        plain.status = status
        url = plain.url.replace("//", "//me:topsecret@")
        with pytest.raises(ModelError, match=f"refuses the credentials .status {status}") as error:
            make(url).fit(DOCUMENTS)
        assert "topsecret" not in str(error.value) + repr(make(url))
        assert plain.url in str(error.value)
        assert error.value.__suppress_context__

    def test_a_failing_server(self, make, plain):
        with pytest.raises(ModelError, match=f"{plain.url} failed with status 500"):
            make(plain.url).fit(DOCUMENTS)

    def test_a_slow_server(self, make, plain):
        plain.delay = 1.5
        with pytest.raises(ModelError, match="took longer than 1 s"):
            make(plain.url, timeout=1).fit(DOCUMENTS)

    def test_nothing_to_search_yet(self, make):
        with pytest.raises(UsageError, match="nothing to search yet"):
            make(NOWHERE).search(["alpha"])

    @pytest.mark.parametrize(
        ("documents", "message"),
        [
            ([], "no documents to index"),
            ([{"doc_id": "a", "title": ""}], "lacks 'text'"),
            ([{"doc_id": "", "title": "", "text": "b"}], "document 1 should have a string"),
            ([{"doc_id": "a", "title": 3, "text": "b"}], "title should be a string, found 3"),
        ],
    )
    def test_bad_documents_are_seen_before_the_server_is(self, make, documents, message):
        with pytest.raises(DataError, match=message):
            make(NOWHERE).fit(documents)

    @pytest.mark.parametrize("url", ["", "localhost", "ftp://host", "http://", "me:topsecret@host"])
    def test_no_address(self, make, url):
        with pytest.raises(UsageError, match="is no address of a server") as error:
            make(url)
        assert "topsecret" not in str(error.value)


@pytest.mark.parametrize("name", ["*", "_all", "a,b", "A", "", "a*", ".hidden", None, "x" * 201])
def test_names_that_could_stand_for_others(name):
    with pytest.raises(UsageError, match="is no name for the index"):
        OpenSearch(NOWHERE, index=name, overwrite=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k1": -1}, "k1 should be"),
        ({"b": 1.1}, "b should be"),
        ({"shards": 0}, "shards should be"),
        ({"batch": 0}, "batch should be"),
        ({"timeout": 0}, "timeout should be"),
        ({"fields": "text"}, "fields should be"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(UsageError, match=message):
        OpenSearch(NOWHERE, index="a", **options)


def test_a_bad_document_later_in_the_stream_leaves_an_unfinished_index(stub):
    bad = [*DOCUMENTS, {"doc_id": "0", "title": "", "text": "again"}]
    search = OpenSearch(stub.url, index="a", batch=2)
    with pytest.raises(DataError, match="document 6 repeats the doc_id '0'"):
        search.fit(bad)
    with pytest.raises(UsageError, match="nothing to search yet"):
        search.search(["alpha"])
    with pytest.raises(DataError, match="was not finished"):
        search.attach()
    search.overwrite = True
    assert search.fit(DOCUMENTS).documents_ == 5


def test_attach_to_nothing_or_to_what_others_made(stub):
    with pytest.raises(DataError, match="is not there"):
        OpenSearch(stub.url, index="a").attach()
    stub.indices["a"] = {"mappings": {}}
    with pytest.raises(DataError, match="not made by ragkit"):
        OpenSearch(stub.url, index="a").attach()
    client = QdrantClient(":memory:")
    with pytest.raises(DataError, match="is not there"):
        Qdrant(client, collection="a", encoder=server_contract.Words()).attach()


def test_a_document_that_the_server_refuses_is_named(stub):
    bad = [*DOCUMENTS, {"doc_id": "x", "title": "", "text": "poison"}]
    with pytest.raises(ModelError, match="document 6: mapper_parsing_exception: failed to parse"):
        OpenSearch(stub.url, index="a").fit(bad)


def test_a_query_that_the_server_refuses_is_named(stub):
    search = OpenSearch(stub.url, index="a").fit(DOCUMENTS)
    with pytest.raises(ModelError, match="query '1'.: too_many_clauses: maxClauseCount"):
        search.search(["alpha", "forbidden"])


def test_an_answer_of_some_shards_is_none(stub):
    search = OpenSearch(stub.url, index="a").fit(DOCUMENTS)
    stub.faults["_msearch"] = ["partial"]
    with pytest.raises(ModelError, match="only a part of the index answered"):
        search.search(["alpha"])


def test_more_than_the_server_returns(stub):
    search = OpenSearch(stub.url, index="a").fit(DOCUMENTS)
    search.documents_ = 20_000
    with pytest.raises(UsageError, match="at most 10,000 documents"):
        search.search(["alpha"], k=15_000)


@pytest.mark.parametrize("k", [0, -1, 2.5, True])
def test_k_out_of_range(stub, k):
    with pytest.raises(UsageError, match="k should be a whole number"):
        OpenSearch(stub.url, index="a").fit(DOCUMENTS).search(["alpha"], k=k)


def test_credentials_in_the_address_are_used(stub):
    stub.user, stub.password = "me", "topsecret"
    search = OpenSearch(stub.url.replace("//", "//me:topsecret@"), index="a").fit(DOCUMENTS)
    assert len(search.search(["alpha"])) == 5
    assert "topsecret" not in repr(search)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (np.full((5, 3), np.nan), "NaN or infinity of the text 'alpha 0'"),
        (np.zeros((4, 3)), "shape .4, 3. of 5 texts"),
        (np.zeros(5), "shape .5,. of 5 texts"),
    ],
)
def test_vectors_that_are_none(made, message):
    class Broken:
        name = "broken"

        def encode(self, texts, kind):
            return made

    with pytest.raises(DataError, match=message):
        Qdrant(collection="a", encoder=Broken()).fit(DOCUMENTS)
