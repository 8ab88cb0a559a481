"""OpenSearch and Qdrant: the contract, on loopback and on servers named by the environment."""

from __future__ import annotations

import hashlib
import os
import random
import time
import uuid

import numpy as np
import pandas as pd
import pytest
from opensearchpy import OpenSearch as OpenSearchClient
from qdrant_client import QdrantClient

from ragkit import models, schema
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.systems.retrieval import BM25, Dense, OpenSearch, Qdrant
from tests.systems.retrieval import stubs
from tests.systems.retrieval.support import frame

DIMENSIONS = 16
NOWHERE = "http://127.0.0.1:9"  # nothing listens on the discard port
DOCUMENTS = frame(*[f"alpha {n}" for n in range(5)], ids=list("01234"))


class Words:
    """An encoder that adds a random vector for each word, and one for the kind of text."""

    name = "words"

    def encode(self, texts, kind):
        rows = [sum(map(_vector, [kind, *text.lower().split()])) for text in texts]
        vectors = np.array(rows, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _vector(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=DIMENSIONS)


def documents(count: int = 60) -> pd.DataFrame:
    """Return documents with awkward ids, titles that are missing, repeated words and twins."""
    rng = random.Random(5)
    words = "refund invoice don't 3.14 domain e-mail 你好 connect the the the site".split()
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 45))) for _ in range(count - 4)]
    texts += [texts[0]] * 3 + ["…"]
    ids = [f"d {n}/é" if n % 2 else f"{n}-" + "x" * 600 for n in range(count)]
    titles = [None if n % 3 else rng.choice(words) for n in range(count - 4)]
    return pd.DataFrame({"doc_id": ids, "title": titles + [titles[0]] * 3 + [None], "text": texts})


QUESTIONS = pd.DataFrame(
    {
        "question_id": ["q 1", "q2", "q3", "q4"],
        "text": ["refund refund invoice", "the site", "3.14 don't 你", "connect e-mail domain"],
    }
)


@pytest.fixture
def stub():
    with stubs.serve(stubs.OpenSearch()) as running:
        yield running


@pytest.fixture
def plain():
    """A server that answers every request with `plain.status`, after `plain.delay` seconds."""

    class Plain:
        user, status, delay = "", 500, 0.0

        def answer(self, method, path, body):
            time.sleep(self.delay)
            return self.status, {"status": {"error": "made up"}}

    with stubs.serve(Plain()) as running:
        yield running


def named(variable: str) -> str:
    if not os.environ.get(variable):
        pytest.skip(f"no server: set {variable} to the address of one")
    return os.environ[variable]


@pytest.fixture
def name():
    return f"ragkit-contract-{uuid.uuid4().hex[:12]}"


def qdrant(server=":memory:", **options):
    return Qdrant(server, **({"encoder": Words()} | options))


# -- the contract --------------------------------------------------------------------------------


def opensearch_facts(make) -> None:
    """Check `make(**options)`, which gives an `OpenSearch` on an index of its own."""
    corpus = documents()
    for k1, b in ((1.2, 0.75), (0.4, 1.0)):
        search = make(k1=k1, b=b, overwrite=True, batch=7).fit(corpus)
        for k in (1, 3, len(corpus) + 5):
            runs = schema.check(search.search(QUESTIONS, k), "runs")
            expected = BM25(k1, b, system=search.system).fit(corpus).search(QUESTIONS, k)
            columns = ["system", "question_id", "rank", "doc_id"]
            pd.testing.assert_frame_equal(runs[columns], expected[columns])
            factor = runs["score"] / expected["score"]
            near = 1 if factor[0] < 1 + k1 / 2 else 1 + k1
            np.testing.assert_allclose(factor, near, rtol=0 if near == 1 else 1e-6)
    assert search.search(["", "unheard", "—"]).empty
    again = make(k1=0.4, b=1.0).attach()
    pd.testing.assert_frame_equal(again.search(QUESTIONS), search.search(QUESTIONS))
    with pytest.raises(DataError, match=r"finished one with {'k1': 1\.2.*, found {'k1': 0\.4"):
        make().attach()
    shared_facts(make, corpus)


def qdrant_facts(make) -> None:
    """Check `make(**options)`, which gives a `Qdrant` with `Words` on a collection of its own."""
    corpus = documents().drop_duplicates("text", ignore_index=True)
    search = make(batch=7).fit(corpus)
    exact = Dense(Words(), system=search.system).fit(corpus)
    for k in (1, 3, len(corpus) + 5):
        runs = schema.check(search.search(QUESTIONS, k), "runs")
        pd.testing.assert_frame_equal(runs, exact.search(QUESTIONS, k), rtol=0, atol=1e-6)
    assert search.search(["", " "]).empty
    again = make().attach()
    pd.testing.assert_frame_equal(again.search(QUESTIONS), search.search(QUESTIONS))
    with pytest.raises(DataError, match="finished one with .*, found .*'title'"):
        make(fields=("text",)).attach()
    shared_facts(make, corpus)


def shared_facts(make, corpus) -> None:
    """Check what holds for both: nothing is overwritten, and what is there is replaced whole."""
    with pytest.raises(DataError, match="is already at"):
        make().fit(corpus)
    one = ({"doc_id": "only", "title": "", "text": "refund"} for _ in range(1))
    search = make(overwrite=True).fit(one)
    runs = search.search(["refund"], k=10)
    assert runs["doc_id"].tolist() == ["only"]
    assert search.documents_ == 1
    assert search.search([]).columns.tolist() == list(schema.COLUMNS["runs"])


@pytest.mark.parametrize("legacy", [False, True])
def test_opensearch_keeps_the_contract(name, legacy):
    with stubs.serve(stubs.OpenSearch(legacy=legacy)) as stub:
        opensearch_facts(lambda **o: OpenSearch(stub.url, index=name, **o))


def test_a_real_opensearch_keeps_the_contract(name):
    url = named("RAGKIT_OPENSEARCH_URL")
    client = OpenSearchClient([url], verify_certs=False, ssl_show_warn=False, timeout=60)
    for shards in (1, 3):
        try:
            opensearch_facts(
                lambda s=shards, **o: OpenSearch(client, index=f"{name}-{s}", shards=s, **o)
            )
        finally:
            client.indices.delete(index=f"{name}-{shards}", ignore_unavailable=True)


def test_embedded_qdrant_keeps_the_contract(name, recwarn):
    client = QdrantClient(":memory:")
    qdrant_facts(lambda **o: qdrant(client, collection=name, **o))
    assert not list(recwarn)


@pytest.mark.parametrize("exact", [True, False])
def test_qdrant_behind_an_address_keeps_the_contract(name, exact):
    with stubs.serve(stubs.Qdrant()) as stub:
        qdrant_facts(lambda **o: qdrant(stub.url, collection=name, exact=exact, **o))
    assert {asked["params"]["exact"] for asked in stub.asked} == {exact}


def test_a_real_qdrant_keeps_the_contract(name):
    url, key = named("RAGKIT_QDRANT_URL"), os.environ.get("RAGKIT_QDRANT_API_KEY")
    client = QdrantClient(url=url, api_key=key, timeout=60)
    try:
        qdrant_facts(lambda **o: qdrant(client, collection=name, **o))
    finally:
        client.delete_collection(name)


# -- requests and answers --------------------------------------------------------------------------


def test_batches_and_credentials(stub):
    entries = iter(DOCUMENTS.to_dict("records"))
    stub.user, stub.password = "me", "topsecret"
    stub.faults["_bulk"] = [429]  # a busy server is asked again
    search = OpenSearch(stub.url.replace("//", "//me:topsecret@"), index="a", batch=2).fit(entries)
    assert "topsecret" not in repr(search)
    assert search.search(["alpha"] * 201)["question_id"].nunique() == 201
    assert stub.asked.count("POST _bulk") == 4
    assert stub.asked.count("POST _msearch") == 3
    assert stub.asked.index("POST _refresh") > stub.asked.index("POST _bulk")


def test_a_named_encoder_keeps_its_vectors(monkeypatch):
    encoded = []

    def unit(self, texts):
        encoded.extend(texts)
        rows = np.random.default_rng(len(encoded)).normal(size=(len(texts), self.dimension))
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    monkeypatch.setattr(models.Encoder, "_unit", unit)
    search = Qdrant(batch=2).fit(DOCUMENTS)
    assert search.system == "dense-all-MiniLM-L6-v2-qdrant"
    assert search.search(["alpha 3"], k=1)["doc_id"].tolist() == ["3"]  # not encoded again
    assert Qdrant(batch=4).fit(DOCUMENTS).documents_ == 5
    assert sorted(encoded) == ["-", *(f"alpha {n}" for n in range(5))]


def test_texts_without_words_are_not_found_and_twins_keep_the_order_of_the_documents():
    ids = [f"d{n}" for n in range(9, 0, -1)]
    search = qdrant().fit(frame(*["twin"] * 9, ids=ids))
    assert search.search(["twin"], k=9)["doc_id"].tolist() == ids
    mixed = frame("", " ", "a", "\n")
    runs = qdrant(batch=2).fit(mixed).search(["a", " ", "b"], k=9)
    assert runs[["question_id", "doc_id"]].values.tolist() == [["0", "d2"], ["2", "d2"]]
    assert qdrant().fit(mixed[:2]).search(["a", ""]).empty


def test_a_folder_holds_what_was_sent(tmp_path):
    client = QdrantClient(path=str(tmp_path))
    first = qdrant(client).fit(DOCUMENTS).search(["alpha 3"])
    client.close()
    client = QdrantClient(path=str(tmp_path))
    pd.testing.assert_frame_equal(qdrant(client).attach().search(["alpha 3"]), first)
    client.close()


# -- what can go wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("make", [OpenSearch, qdrant], ids=["opensearch", "qdrant"])
class TestBoth:
    def test_not_there(self, make):
        nowhere = make(NOWHERE)
        for call in (nowhere.attach, lambda: nowhere.fit(DOCUMENTS)):
            with pytest.raises(ModelError, match=f"at {NOWHERE} does not answer") as error:
                call()
            assert "start the server" in error.value.hint
        with pytest.raises(UsageError, match="has no index yet"):
            nowhere.search(["alpha"])
        with pytest.raises(DataError, match="no documents to index"):
            nowhere.fit([])

    @pytest.mark.parametrize(
        ("status", "delay", "message"),
        [
            (401, 0, "refuses the credentials .status 401"),
            (403, 0, "refuses the credentials .status 403"),
            (500, 0, "failed: .*500"),
            (500, 1.5, "took longer than 1 s"),
        ],
    )
    def test_a_server_that_fails(self, make, plain, status, delay, message):
        plain.status, plain.delay = status, delay
        search = make(plain.url.replace("//", "//me:topsecret@"), timeout=1)
        with pytest.raises(ModelError, match=f"{plain.url} {message}") as error:
            search.fit(DOCUMENTS)
        assert "topsecret" not in str(error.value) + repr(search)
        assert error.value.__suppress_context__

    @pytest.mark.parametrize("url", ["", "localhost", "ftp://host", "http://", "me:topsecret@host"])
    def test_no_address(self, make, url):
        with pytest.raises(UsageError, match="is no address of a server") as error:
            make(url)
        assert "topsecret" not in str(error.value)


@pytest.mark.parametrize("name", ["*", "_all", "a,b", "A", "", "a*", ".hidden", None, "x" * 201])
def test_names_that_could_stand_for_others(name):
    with pytest.raises(UsageError, match="cannot be the name of an index on OpenSearch"):
        OpenSearch(NOWHERE, index=name, overwrite=True)


def test_a_bad_document_later_in_the_stream_leaves_an_unfinished_index(stub):
    search = OpenSearch(stub.url, batch=2)
    with pytest.raises(DataError, match="document 6 repeats the doc_id '0'"):
        search.fit(pd.concat([DOCUMENTS, DOCUMENTS[:1]]))
    with pytest.raises(UsageError, match="no index yet"):
        search.search(["alpha"])
    with pytest.raises(DataError, match="should be a finished one with .*, found {'k1'"):
        search.attach()
    search.overwrite = True
    assert search.fit(DOCUMENTS).documents_ == 5


def test_attach_to_nothing_or_to_what_others_made(stub):
    with pytest.raises(DataError, match="found none"):
        OpenSearch(stub.url, index="a").attach()
    stub.indices["a"] = {"mappings": {}}
    with pytest.raises(DataError, match="already at"):
        OpenSearch(stub.url, index="a").fit(DOCUMENTS)
    with pytest.raises(DataError, match="found none"):
        qdrant().attach()


def test_what_the_server_refuses_is_named(stub):
    bad = pd.concat([DOCUMENTS, frame("poison", ids=["x"])])
    with pytest.raises(ModelError, match=r"document 6: .*mapper_parsing_exception.*indexing"):
        OpenSearch(stub.url).fit(bad)
    search = OpenSearch(stub.url, overwrite=True).fit(DOCUMENTS)
    with pytest.raises(ModelError, match=r"maxClauseCount.* \(question '1'\)"):
        search.search(["alpha", "forbidden"])
    stub.faults["_msearch"] = ["partial"]
    with pytest.raises(ModelError, match="only a part of the index answered"):
        search.search(["alpha"])
    search.documents_ = 20_000
    with pytest.raises(UsageError, match="at most 10,000 documents"):
        search.search(["alpha"], k=15_000)


def test_vectors_that_are_none():
    class Broken(Words):
        def encode(self, texts, kind):
            return np.full((1, 3), np.nan)

    with pytest.raises(DataError, match=r"of words: row 1 \('-'\) holds NaN"):
        qdrant(encoder=Broken()).fit(DOCUMENTS)
