"""Search servers as retrievers: OpenSearch for words, Qdrant for vectors."""

from __future__ import annotations

import re
import tomllib
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from ragkit import checks, models
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.systems.retrieval.dense import encode
from ragkit.systems.retrieval.frames import Retriever, check_fields, document_texts

OURS = "ragkit"  # the part of a server's metadata that is about this package
INDEX = Path(__file__).with_name("opensearch.toml")
AT_ONCE = 100  # questions in one request
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,199}")  # no wildcard: `overwrite` deletes by name


class Server(Retriever):
    """An index on a server: `fit` sends documents and keeps none; `attach` uses an earlier index.

    Parameters
    ----------
    server : str or client
        An address, perhaps with `USER:PASSWORD@`, or a client of the server's own library, which
        may hold keys and certificates; no message shows them.
    name : str
        The name of the index on the server.
    fields
        As in `Retriever`.
    overwrite : bool
        Whether `fit` may delete an index of that name.
    batch : int
        Documents sent at once.
    timeout : float
        Seconds for each request, with an address.

    Attributes
    ----------
    documents_ : int
    """

    _fitted = "documents_"
    most: float = float("inf")  # documents in one answer
    errors: type[Exception]  # of the client

    def __init__(self, server, name, fields, overwrite, batch, timeout):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot be the name of an index on {self.kind}",
                "lower-case letters, digits, '-', '_' and '.', a letter or digit first",
            )
        self.name, self.fields, self.overwrite = name, check_fields(fields), overwrite
        self.batch = checks.whole(batch, "batch")
        self.timeout = checks.number(timeout, "timeout", least=0.001)
        self.client = self._connect(server) if isinstance(server, str) else server

    def fit(self, documents) -> Server:
        """Send documents to the server; see `Retriever.fit`.

        `DataError` also if it has an index of that name and `overwrite` is false; `ModelError` if
        it does not answer, refuses the credentials, takes too long or fails. What it has by then
        stays there, unfinished: `attach` refuses it.
        """
        self.__dict__.pop("documents_", None)
        texts = document_texts(documents, self.fields)
        first = next(texts)
        with self._talking("indexing"):
            there = self._described() is not None
            if there and not self.overwrite:
                raise DataError(
                    f"the index {self.name!r} is already at {self.address}",
                    "attach() to use it, overwrite=True to replace it, or another name",
                )
            if there:
                self._delete()
            self.documents_ = self._send(chain([first], texts))
        return self

    def attach(self) -> Server:
        """Use the index of an earlier `fit`; errors as there.

        `DataError` also if there is none, or it has other settings or is not finished.
        """
        with self._talking("attaching"):
            found = self._described() or {}
        documents = found.pop("documents", None)
        if documents is None or found != self._settings():
            raise DataError(
                f"the index {self.name!r} at {self.address} should be a finished one with "
                f"{self._settings()}, found {found or 'none'}",
                "call fit(documents), with overwrite=True or another name if need be",
            )
        self.documents_ = documents
        return self

    def _search(self, ids, texts, k):
        k = min(k, self.documents_)
        if k > self.most:
            raise UsageError(f"{self.kind} returns at most {self.most:,} documents, found k={k:,}")
        for start in range(0, len(ids), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            with self._talking("searching"):
                yield from self._ask(ids[part], texts[part], k)

    @contextmanager
    def _talking(self, doing: str):
        try:
            yield
        except self.errors as error:
            raise self._problem(doing, error) from None

    def _problem(self, doing: str, error) -> ModelError:
        """Return the error to raise for one of the client's, or for a sentence."""
        name = type(getattr(error, "source", error)).__name__
        status = getattr(error, "status_code", None)
        if batch := getattr(error, "errors", None):
            (found,) = batch[0].values()
            error = f"document {int(found['_id']) + 1}: {found['error']}"
        what, hint = f"failed: {' '.join(str(error).split()):.300}", "see the server's log"
        if "Timeout" in name:
            what, hint = f"took longer than {self.timeout:g} s", "a larger timeout="
        elif "Connect" in name:
            what, hint = "does not answer", "start the server, or check its address"
        elif status in (401, 403):
            what = f"refuses the credentials (status {status})"
            hint = "USER:PASSWORD@ in the address, or a client of your own"
        return ModelError(f"{self.kind} at {self.address} {what} ({doing})", hint)


class OpenSearch(Server):
    """Rank documents by BM25 on an OpenSearch server.

    Parameters
    ----------
    server, fields, system, overwrite, batch, timeout
        See `Server` and `Retriever`. A batch is cut at 10 MB.
    index : str
        Its name on the server.
    k1, b
        As in `BM25`.
    shards : int, at least 1
        Parts that the server spreads over its machines; statistics are those of the whole index.

    Notes
    -----
    The lists are those of `BM25` in mode "lucene", whatever the server's defaults are. The scores
    are those of the server: up to OpenSearch 2 they have a constant factor k1 + 1, which changes no
    order but by rounding. The texts are indexed, not stored.

    Source: EnterpriseRAG-Bench section 6.1 (BM25 through OpenSearch, one field).
    """

    kind, most = "OpenSearch", 10_000  # max_result_window, as servers have it

    def __init__(
        self,
        server="http://localhost:9200",
        *,
        index: str = "ragkit",
        k1: float = 1.2,
        b: float = 0.75,
        shards: int = 1,
        fields: tuple[str, ...] = ("title", "text"),
        system: str = "bm25-opensearch",
        overwrite: bool = False,
        batch: int = 500,
        timeout: float = 30,
    ):
        from opensearchpy.exceptions import OpenSearchException

        super().__init__(server, index, fields, overwrite, batch, timeout)
        self.k1 = checks.number(k1, "k1", least=0)
        self.b = checks.number(b, "b", least=0, most=1)
        self.shards, self.system = checks.whole(shards, "shards"), system
        self.errors, host = OpenSearchException, self.client.transport.hosts[0]
        scheme = "https" if host.get("use_ssl") else "http"
        self.address = f"{scheme}://{host['host']}:{host.get('port', 9200)}"

    def _connect(self, server):
        from opensearchpy import OpenSearch as Client

        _address(server)
        return Client([server], timeout=self.timeout)

    def _settings(self) -> dict:
        return {"k1": self.k1, "b": self.b, "fields": list(self.fields)}

    def _described(self):
        if not self.client.indices.exists(index=self.name):
            return None
        (index,) = self.client.indices.get_mapping(index=self.name).values()
        return index["mappings"].get("_meta", {}).get(OURS, {})

    def _delete(self) -> None:
        self.client.indices.delete(index=self.name)

    def _send(self, documents):
        from opensearchpy.helpers import streaming_bulk

        actions = (
            {"_id": str(number), "position": number, "doc_id": doc_id, "text": text}
            for number, (doc_id, text) in enumerate(documents)
        )
        body = tomllib.loads(INDEX.read_text("utf-8"))
        body["settings"]["index"]["number_of_shards"] = self.shards
        body["settings"]["index"]["similarity"][OURS] |= {"k1": self.k1, "b": self.b}
        body["mappings"]["_meta"] = {OURS: self._settings()}
        how = {"chunk_size": self.batch, "max_chunk_bytes": 10_000_000, "max_retries": 5}
        self.client.indices.create(index=self.name, body=body)
        done = streaming_bulk(self.client, actions, index=self.name, initial_backoff=1, **how)
        sent = sum(1 for _ in done)
        self.client.indices.refresh(index=self.name)
        meta = {"_meta": {OURS: {**self._settings(), "documents": sent}}}
        self.client.indices.put_mapping(index=self.name, body=meta)
        return sent

    def _ask(self, ids, texts, k):
        how = {"size": k, "sort": [{"_score": "desc"}, {"position": "asc"}], "_source": ["doc_id"]}
        how |= {"track_scores": True, "track_total_hits": False}
        asked = [{"match": {"text": {"query": text, "operator": "or"}}} for text in texts]
        lines = chain.from_iterable(({}, {"query": query, **how}) for query in asked)
        body, exact = list(lines), "dfs_query_then_fetch"
        answer = self.client.msearch(body=body, index=self.name, search_type=exact)
        for name, found in zip(ids, answer["responses"], strict=True):
            if "error" in found or found["timed_out"] or found["_shards"]["failed"]:
                problem = found.get("error", "only a part of the index answered")
                raise self._problem(f"question {name!r}", problem)
            hits = found["hits"]["hits"]
            # The server's scores are 32-bit floats, written with as few digits as they need.
            yield [(hit["_source"]["doc_id"], np.float32(hit["_score"])) for hit in hits]


class Qdrant(Server):
    """Rank documents by the inner product of vectors, on a Qdrant server.

    Parameters
    ----------
    server, fields, overwrite, batch, timeout
        See `Server`; a server may also be ":memory:", Qdrant's embedded mode. The timeout is rounded
        to whole seconds.
    collection : str
        Its name on the server.
    encoder
        As in `Dense`. A document that is too long for the encoder is cut off there. An encoder of
        `ragkit.models` keeps its vectors, so that a `fit` that was stopped encodes nothing twice.
    exact : bool
        Whether the server compares the question with every document; otherwise it searches its
        graph (HNSW), which is faster and approximate.
    system : str, optional
        See `Retriever`; "dense-", the encoder's name and "-qdrant" by default.

    Notes
    -----
    Points are numbered by the position of their documents, since Qdrant takes no other ids. As with
    `Dense`, a document without text is never found, and nothing is found for a question without
    text. Which of the documents of equal score take the last places is the server's choice.
    `attach` needs a server that keeps metadata of collections (Qdrant 1.16).

    Source: EnterpriseRAG-Bench section 6.1 (vector search through Qdrant), section 6.2 (exact
    neighbours).
    """

    kind = "Qdrant"

    def __init__(
        self,
        server=":memory:",
        *,
        collection: str = "ragkit",
        encoder="all-MiniLM-L6-v2",
        exact: bool = True,
        fields: tuple[str, ...] = ("title", "text"),
        system: str | None = None,
        overwrite: bool = False,
        batch: int = 256,
        timeout: float = 60,
    ):
        from qdrant_client.http.exceptions import ApiException

        super().__init__(server, collection, fields, overwrite, batch, timeout)
        self.exact, self.errors, made = exact, ApiException, self.client.init_options
        self._embedded = bool(made["path"]) or made["location"] == ":memory:"
        place = made["url"] or made["host"] or made["path"] or made["location"] or "localhost"
        self.address = _address(place) if "://" in place else place
        self.encoder = models.encoder(encoder) if isinstance(encoder, str) else encoder
        if getattr(self.encoder, "unfitted", False):
            raise UsageError(f"qdrant has no idf weights for {self.encoder.name}", "use dense")
        self.system = system or f"dense-{self.encoder.name}-qdrant"

    def _connect(self, server):
        from qdrant_client import QdrantClient

        if server == ":memory:":
            return QdrantClient(server)
        _address(server)
        seconds = max(1, round(self.timeout))
        return QdrantClient(url=server, timeout=seconds, check_compatibility=False)

    def _settings(self) -> dict:
        return {"encoder": self.encoder.name, "fields": list(self.fields)}

    def _described(self):
        if not self.client.collection_exists(self.name):
            return None
        metadata = self.client.get_collection(self.name).config.metadata or {}
        return dict(metadata.get(OURS, {}))

    def _delete(self) -> None:
        self.client.delete_collection(self.name)

    def _send(self, documents):
        from qdrant_client.models import Batch, Distance, VectorParams

        # The collection needs to know the width before there is a text.
        size = encode(self.encoder, ["-"], "passage").shape[1]
        params, meta = VectorParams(size=size, distance=Distance.DOT), self._settings()
        self.client.create_collection(self.name, vectors_config=params, metadata={OURS: meta})
        sent = 0
        while part := list(islice(documents, self.batch)):
            filled = {n: row for n, row in enumerate(part, start=sent) if row[1].strip()}
            sent += len(part)
            if filled:
                vectors = encode(self.encoder, [text for _, text in filled.values()], "passage")
                payloads = [{"doc_id": doc_id} for doc_id, _ in filled.values()]
                points = Batch(ids=list(filled), vectors=vectors.tolist(), payloads=payloads)
                self.client.upsert(self.name, points, wait=True)
        self.client.update_collection(self.name, metadata={OURS: {**meta, "documents": sent}})
        return sent

    def _ask(self, ids, texts, k):
        from qdrant_client.models import QueryRequest, SearchParams

        # The embedded mode is always exact, and warns when told to be.
        params = None if self._embedded else SearchParams(exact=self.exact)
        how = {"limit": k, "params": params, "with_payload": True}
        asked = [text for text in texts if text.strip()]
        vectors = encode(self.encoder, asked, "query").tolist() if asked else []
        requests = [QueryRequest(query=vector, **how) for vector in vectors]
        answers = iter(self.client.query_batch_points(self.name, requests) if asked else ())
        for text in texts:
            points = next(answers).points if text.strip() else []
            points = sorted(points, key=lambda point: (-point.score, point.id))
            yield [(point.payload["doc_id"], point.score) for point in points]


def _address(url: str) -> str:
    """Return an address without user, password and query."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = url.rpartition("@")[2]
        raise UsageError(f"{shown!r} is no address of a server", "http://HOST:PORT")
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}"
