"""Search servers behind the interface of `BM25`: OpenSearch for words, Qdrant for vectors.

>>> from ragkit.systems.retrieval.servers import OpenSearch
>>> search = OpenSearch("http://localhost:9200", index="articles").fit(documents)
>>> runs = search.search(questions, k=10)

`fit` sends documents in batches and keeps none of them; `attach()` uses what an earlier `fit` left
on the server, if it was finished and with the same settings. Keys and certificates belong into a
client of your own, which is taken in place of an address; no message shows them.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np

from ragkit import models
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.systems.retrieval.frames import (
    check_fields,
    check_whole,
    document_texts,
    query_texts,
    runs_frame,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

OURS = "ragkit"  # the part of a server's metadata that is about this package
AT_ONCE = 100  # queries in one request
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,199}")  # no wildcard: `overwrite` deletes by name


class _Server:
    """What both servers share: batches, checks, and how an earlier `fit` is recognised."""

    def __init__(self, name, fields, system, overwrite, batch, timeout):
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is no name for {self.thing}",
                "lower-case letters, digits, '-', '_' and '.', a letter or digit first",
            )
        if not timeout > 0:
            raise UsageError(f"timeout should be above 0 seconds, found {timeout!r}")
        self.name, self.fields, self.system = name, check_fields(fields), system
        self.overwrite, self.timeout = overwrite, float(timeout)
        self.batch = check_whole(batch, "batch")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} at {self.address}>"

    def fit(self, documents: pd.DataFrame | Iterable[pd.DataFrame | Mapping]):
        """Send documents to the server.

        Parameters
        ----------
        documents : DataFrame, or iterable of DataFrames or of mappings
            As in `BM25.fit`; an iterable is read once, batch by batch.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If a document is not what it should be (as in `BM25.fit`), or something of that name
            is on the server and `overwrite` is false.
        ModelError
            If the server is not there, refuses the credentials, takes too long or fails. What it
            has by then stays there, unfinished: `attach` refuses it.
        """
        self.__dict__.pop("documents_", None)
        texts = document_texts(documents, self.fields)
        first = next(texts)
        with self._talking("creating " + self.thing):
            if self._exists():
                if not self.overwrite:
                    raise DataError(
                        f"{self.thing} {self.name!r} is already at {self.address}",
                        "attach() to use it, overwrite=True to replace it, or another name",
                    )
                self._delete()
        self.documents_ = self._send(first, texts)
        return self

    def attach(self):
        """Use what an earlier `fit` left on the server.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If nothing of that name is there, or it was made by something else, with other
            settings, or not to its end.
        ModelError
            As in `fit`.
        """
        with self._talking("looking for " + self.thing):
            found = self._described() if self._exists() else None
        where = f"{self.thing} {self.name!r} at {self.address}"
        if found is None:
            raise DataError(f"{where} is not there, or not made by ragkit", "call fit(documents)")
        documents = found.pop("documents", None)
        if documents is None:
            raise DataError(f"{where} was not finished", "fit(documents) with overwrite=True")
        for key, value in self._settings().items():
            if found.get(key) != value:
                raise DataError(
                    f"{where} has {key} {found.get(key)!r}, expected {value!r}",
                    "change the setting, or fit(documents) under another name",
                )
        self.documents_ = int(documents)
        return self

    def search(self, queries: pd.DataFrame | Iterable[str], k: int = 10) -> pd.DataFrame:
        """Return the best documents for each query.

        Parameters
        ----------
        queries : DataFrame with question_id and text, or iterable of str
            Strings get their position, from "0", as question_id.
        k : int, at least 1
            How many documents at most.

        Returns
        -------
        DataFrame
            `runs`: system, question_id, rank (from 1), doc_id, score.

        Raises
        ------
        UsageError
            If k is out of range, or neither `fit` nor `attach` was called.
        DataError
            If a query is no string, or a question_id is empty, no string or there before.
        ModelError
            If the server is not there, refuses the credentials, takes too long or fails.
        """
        if not hasattr(self, "documents_"):
            raise UsageError(
                f"{type(self).__name__} has nothing to search yet",
                "call fit(documents), or attach() to use what is on the server",
            )
        k = min(check_whole(k, "k"), self.documents_)
        if k > self.most:
            raise UsageError(f"{self.kind} returns at most {self.most:,} documents, found k={k:,}")
        ids, texts = query_texts(queries)
        found = []
        for start in range(0, len(ids), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            found += self._ask(ids[part], texts[part], k)
        return runs_frame(self.system, ids, found)

    def _gone(self, doing: str, hint: str) -> ModelError:
        return ModelError(f"no {self.kind} answers at {self.address} ({doing})", hint)

    def _late(self, doing: str) -> ModelError:
        return ModelError(
            f"{self.kind} at {self.address} took longer than {self.timeout:g} s ({doing})",
            "a larger timeout= or a smaller batch=",
        )

    def _refused(self, doing: str, status: int, how: str) -> ModelError:
        return ModelError(
            f"{self.kind} at {self.address} refuses the credentials (status {status}, {doing})", how
        )

    def _failed(self, doing: str, status, reason: str) -> ModelError:
        return ModelError(
            f"{self.kind} at {self.address} failed with status {status} ({doing}): {reason:.300}",
            "see the server's log",
        )


class OpenSearch(_Server):
    """Rank documents by BM25 on an OpenSearch server.

    Parameters
    ----------
    server : str or opensearchpy.OpenSearch
        An address, perhaps with `USER:PASSWORD@`, or a client, which may hold certificates.
    index : str
        Its name on the server.
    k1, b, fields
        As in `BM25`.
    system : str
        The name in the `system` column.
    shards : int, at least 1
        Pieces that the server spreads over its machines; statistics are always those of the whole
        index.
    overwrite : bool
        Whether `fit` may delete an index of that name.
    batch : int
        Documents sent at once; a batch is cut at 10 MB.
    timeout : float
        Seconds for each request, with an address.

    Attributes
    ----------
    documents_ : int

    Notes
    -----
    The index says what it depends on, whatever the server's defaults are: the standard analyzer,
    BM25 with `k1` and `b`. Documents of equal score come in the order in which they were given.
    The lists are those of `BM25` in mode "lucene". The scores are those of the server: up to
    OpenSearch 2 they have a constant factor k1 + 1, which changes no order but by rounding.
    The texts are indexed, not stored.

    Source: EnterpriseRAG-Bench section 6.1 (BM25 through OpenSearch, one field).
    """

    kind, thing = "OpenSearch", "the index"
    most = 10_000  # max_result_window, as servers have it

    def __init__(
        self,
        server="http://localhost:9200",
        *,
        index: str,
        k1: float = 1.2,
        b: float = 0.75,
        fields: tuple[str, ...] = ("title", "text"),
        system: str = "bm25-opensearch",
        shards: int = 1,
        overwrite: bool = False,
        batch: int = 500,
        timeout: float = 30,
    ):
        super().__init__(index, fields, system, overwrite, batch, timeout)
        if not 0 <= k1 < float("inf"):
            raise UsageError(f"k1 should be 0 or more, found {k1!r}")
        if not 0 <= b <= 1:
            raise UsageError(f"b should be from 0 to 1, found {b!r}")
        self.k1, self.b, self.shards = float(k1), float(b), check_whole(shards, "shards")
        if isinstance(server, str):
            from opensearchpy import OpenSearch as Client

            self.address = _address(server)
            self.client = Client([server], timeout=self.timeout)
        else:
            self.client = server
            (host, *_) = server.transport.hosts
            scheme = "https" if host.get("use_ssl") else "http"
            self.address = f"{scheme}://{host['host']}:{host.get('port', 9200)}"

    def _settings(self) -> dict:
        return {"k1": self.k1, "b": self.b, "fields": list(self.fields)}

    def _exists(self) -> bool:
        return self.client.indices.exists(index=self.name)

    def _delete(self) -> None:
        self.client.indices.delete(index=self.name)

    def _described(self) -> dict | None:
        (index,) = self.client.indices.get_mapping(index=self.name).values()
        return index["mappings"].get("_meta", {}).get(OURS)

    def _body(self) -> dict:
        return {
            "settings": {
                "index": {
                    "number_of_shards": self.shards,
                    "number_of_replicas": 0,
                    "refresh_interval": -1,  # `fit` refreshes once, at its end
                    "similarity": {OURS: {"type": "BM25", "k1": self.k1, "b": self.b}},
                },
                "analysis": {
                    "analyzer": {
                        OURS: {
                            "type": "standard",
                            "stopwords": "_none_",
                            "max_token_length": 255,
                        }
                    }
                },
            },
            "mappings": {
                "dynamic": "strict",
                "_meta": {OURS: self._settings()},
                "_source": {"includes": ["doc_id"]},
                "properties": {
                    "position": {"type": "integer"},
                    "doc_id": {"type": "keyword", "index": False, "doc_values": False},
                    "text": {"type": "text", "analyzer": OURS, "similarity": OURS},
                },
            },
        }

    def _send(self, first, others) -> int:
        from opensearchpy.helpers import streaming_bulk

        sent = 0

        def actions():
            nonlocal sent
            document = first
            while document is not None:
                doc_id, text = document
                yield {"_id": str(sent), "position": sent, "doc_id": doc_id, "text": text}
                sent += 1
                document = next(others, None)

        with self._talking("indexing"):
            self.client.indices.create(index=self.name, body=self._body())
            done = streaming_bulk(
                self.client,
                actions(),
                index=self.name,
                chunk_size=self.batch,
                max_chunk_bytes=10_000_000,
                max_retries=5,
                initial_backoff=1,
            )
            for _ in done:
                pass
            self.client.indices.refresh(index=self.name)
            meta = {OURS: {**self._settings(), "documents": sent}}
            self.client.indices.put_mapping(index=self.name, body={"_meta": meta})
        return sent

    def _ask(self, ids, texts, k) -> Iterator[tuple[list[str], Sequence[float]]]:
        lines = []
        for text in texts:
            lines += [
                {},
                {
                    "query": {"match": {"text": {"query": text, "operator": "or"}}},
                    "size": k,
                    "sort": [{"_score": "desc"}, {"position": "asc"}],
                    "track_scores": True,
                    "track_total_hits": False,
                    "_source": ["doc_id"],
                },
            ]
        with self._talking("searching"):
            answer = self.client.msearch(
                body=lines, index=self.name, search_type="dfs_query_then_fetch"
            )
        for question_id, response in zip(ids, answer["responses"], strict=True):
            doing = f"query {question_id!r}"
            if "error" in response:
                raise self._failed(doing, response.get("status"), _reason(response["error"]))
            if response.get("timed_out") or response["_shards"]["failed"]:
                raise self._failed(doing, 200, "only a part of the index answered")
            hits = response["hits"]["hits"]
            # The server's scores are 32-bit floats, written with as few digits as they need.
            scores = np.array([hit["_score"] for hit in hits], dtype=np.float32)
            yield [hit["_source"]["doc_id"] for hit in hits], scores

    @contextmanager
    def _talking(self, doing: str):
        from opensearchpy import exceptions
        from opensearchpy.helpers import BulkIndexError

        try:
            yield
        except exceptions.ConnectionTimeout:
            raise self._late(doing) from None
        except exceptions.ConnectionError:
            raise self._gone(doing, "start the server, or check address and certificates") from None
        except (exceptions.AuthenticationException, exceptions.AuthorizationException) as error:
            how = "http://USER:PASSWORD@HOST:9200, or a client of your own"
            raise self._refused(doing, error.status_code, how) from None
        except BulkIndexError as error:
            (problem,) = error.errors[0].values()
            reason = f"document {int(problem['_id']) + 1}: {_reason(problem.get('error'))}"
            raise self._failed(doing, problem.get("status"), reason) from None
        except exceptions.TransportError as error:
            raise self._failed(doing, error.status_code, _reason(error.info)) from None


class Qdrant(_Server):
    """Rank documents by the inner product of their vectors with the query's, on a Qdrant server.

    Parameters
    ----------
    server : str or qdrant_client.QdrantClient
        An address; ":memory:" for Qdrant's embedded mode; or a client, which may hold an API key.
    collection : str
        Its name on the server.
    encoder : str or object
        A name of `ragkit.models`, or anything with `name` and `encode(texts, kind=)`, where kind
        is "query" or "passage", that gives an array of shape (n, d). A text that is too long for
        it is cut off there. One of `ragkit.models` keeps its vectors, so that a `fit` that was
        stopped encodes nothing twice.
    fields : tuple of str
        As in `BM25`.
    exact : bool
        Whether the server compares the query with every document; otherwise it searches its graph
        (HNSW), faster and without a promise.
    system : str, optional
        The name in the `system` column; "dense-", the encoder's name and "-qdrant" by default.
    overwrite : bool
        Whether `fit` may delete a collection of that name.
    batch : int
        Documents encoded and sent at once.
    timeout : float
        Seconds for each request, with an address; whole ones.

    Attributes
    ----------
    documents_ : int

    Notes
    -----
    Points are numbered by the position of their documents, since Qdrant takes no other ids; the
    document's own id is in the payload. As with `Dense`, a document without text is never found,
    and a query without text finds nothing. Equal scores among the documents found come in that
    order; which of several equal ones take the last place is the server's choice. `attach` needs a
    server that keeps metadata of collections (Qdrant 1.16).

    Source: EnterpriseRAG-Bench section 6.1 (vector search through Qdrant), section 6.2 (exact
    neighbours).
    """

    kind, thing = "Qdrant", "the collection"
    most = float("inf")

    def __init__(
        self,
        server=":memory:",
        *,
        collection: str,
        encoder="all-MiniLM-L6-v2",
        fields: tuple[str, ...] = ("title", "text"),
        exact: bool = True,
        system: str | None = None,
        overwrite: bool = False,
        batch: int = 256,
        timeout: float = 60,
    ):
        from qdrant_client import QdrantClient

        self.encoder = models.encoder(encoder) if isinstance(encoder, str) else encoder
        self.exact, self._ours = exact, isinstance(self.encoder, models.Encoder)
        system = system or f"dense-{self.encoder.name}-qdrant"
        super().__init__(collection, fields, system, overwrite, batch, timeout)
        if server == ":memory:":
            self.client, self.address = QdrantClient(":memory:"), ":memory:"
        elif isinstance(server, str):
            self.address = _address(server)
            seconds = max(1, round(self.timeout))
            self.client = QdrantClient(url=server, timeout=seconds, check_compatibility=False)
        else:
            self.client, made = server, server.init_options
            place = made["url"] or made["host"] or made["path"] or made["location"] or "localhost"
            self.address = _address(place) if "://" in place else place
        made = self.client.init_options
        self._embedded = bool(made["path"]) or made["location"] == ":memory:"

    def _settings(self) -> dict:
        return {"encoder": self.encoder.name, "fields": list(self.fields)}

    def _exists(self) -> bool:
        return self.client.collection_exists(self.name)

    def _delete(self) -> None:
        self.client.delete_collection(self.name)

    def _described(self) -> dict | None:
        metadata = self.client.get_collection(self.name).config.metadata or {}
        found = metadata.get(OURS)
        return dict(found) if found else None

    def _send(self, first, others) -> int:
        from qdrant_client.models import Batch, Distance, VectorParams

        sent, created, part = 0, False, [first, *islice(others, self.batch - 1)]
        while part:
            filled = [(sent + n, *row) for n, row in enumerate(part) if row[1].strip()]
            numbers, ids, texts = zip(*filled, strict=True) if filled else ((), (), ())
            if not created or filled:
                # Without any text, one stands in: the collection needs to know the width.
                vectors = self._vectors(texts or ["-"], "passage")
            with self._talking("indexing"):
                if not created:
                    width = vectors.shape[1]
                    self.client.create_collection(
                        self.name,
                        vectors_config=VectorParams(size=width, distance=Distance.DOT),
                        metadata={OURS: self._settings()},
                    )
                    created = True
                if filled:
                    payloads = [{"doc_id": doc_id} for doc_id in ids]
                    points = Batch(ids=numbers, vectors=vectors.tolist(), payloads=payloads)
                    self.client.upsert(self.name, points, wait=True)
            sent += len(part)
            part = list(islice(others, self.batch))
        with self._talking("indexing"):
            meta = {OURS: {**self._settings(), "documents": sent}}
            self.client.update_collection(self.name, metadata=meta)
        return sent

    def _ask(self, ids, texts, k) -> Iterator[tuple[list[str], Sequence[float]]]:
        from qdrant_client.models import QueryRequest, SearchParams

        asked = [text for text in texts if text.strip()]
        # The embedded mode is always exact, and warns when told to be.
        options = None if self._embedded else SearchParams(exact=self.exact)
        requests = [
            QueryRequest(query=vector, limit=k, params=options, with_payload=True)
            for vector in (self._vectors(asked, "query").tolist() if asked else ())
        ]
        with self._talking("searching"):
            answers = self.client.query_batch_points(self.name, requests=requests) if asked else []
        answers = iter(answers)
        for text in texts:
            points = next(answers).points if text.strip() else []
            points = sorted(points, key=lambda point: (-point.score, point.id))
            yield [point.payload["doc_id"] for point in points], [p.score for p in points]

    def _vectors(self, texts, kind: str) -> np.ndarray:
        options = {"cache": True} if self._ours else {}
        vectors = self.encoder.encode(list(texts), kind=kind, **options)
        vectors = np.asarray(vectors, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise DataError(
                f"{self.encoder.name} made an array of shape {vectors.shape} of {len(texts)} texts"
            )
        bad = ~np.isfinite(vectors).all(axis=1)
        if bad.any():
            raise DataError(
                f"{self.encoder.name} made NaN or infinity of the text "
                f"{texts[int(bad.argmax())]!r:.80}"
            )
        return vectors

    @contextmanager
    def _talking(self, doing: str):
        from qdrant_client.http import exceptions

        try:
            yield
        except exceptions.ResponseHandlingException as error:
            if "Timeout" in type(error.source).__name__:
                raise self._late(doing) from None
            raise self._gone(doing, "start the server, or check its address") from None
        except exceptions.UnexpectedResponse as error:
            if error.status_code in (401, 403):
                how = "a client of your own: QdrantClient(url=..., api_key=...)"
                raise self._refused(doing, error.status_code, how) from None
            reason = error.content.decode("utf-8", "replace")
            raise self._failed(doing, error.status_code, reason) from None


def _address(url: str) -> str:
    """Return an address without user, password and query."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        shown = url.rpartition("@")[2]
        raise UsageError(f"{shown!r} is no address of a server", "http://HOST:PORT")
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}"


def _reason(error) -> str:
    """Return what OpenSearch says about an error, in one line."""
    if isinstance(error, dict):
        inner = error.get("error", error)
        if isinstance(inner, dict):
            words = [inner.get("type"), inner.get("reason")]
            return ": ".join(str(word) for word in words if word)
        return str(inner)
    return str(error)
