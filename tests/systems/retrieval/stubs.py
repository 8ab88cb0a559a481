"""The endpoints of OpenSearch and Qdrant that `ragkit.systems.retrieval.servers` uses, on loopback.

OpenSearch's ranks with the slow reference scorer, takes its parameters from the index's own
settings and mappings, and where those say nothing it does what no client would want: other
parameters, ties from the last document to the first, nothing found before a refresh. A server
stops when told, with its process, or after its lifetime.
"""

from __future__ import annotations

import base64
import json
import threading
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from qdrant_client import QdrantClient
from qdrant_client.models import Batch, VectorParams

from tests.systems.retrieval.reference import lucene_scores

LIFETIME = 120  # seconds


@dataclass
class OpenSearch:
    """The state of a server, and how it should misbehave.

    `faults` maps the last part of a path ("_bulk", "_msearch", an index) to a list of statuses,
    one for each of the next requests; "partial" loses a shard.
    """

    user: str = ""
    password: str = ""
    legacy: bool = False  # scores with the factor k1 + 1, as up to OpenSearch 2
    url: str = ""
    indices: dict = field(default_factory=dict)
    faults: dict = field(default_factory=lambda: defaultdict(list))
    asked: list = field(default_factory=list)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        parts = [part for part in urlsplit(path).path.split("/") if part]
        last = parts[-1] if parts else ""
        self.asked.append(f"{method} {last}")
        fault = self.faults[last].pop(0) if self.faults[last] else None
        if isinstance(fault, int):
            return fault, error("made_up", "as the test wants it", fault)
        name = parts[0] if parts else ""
        if method == "PUT" and len(parts) == 1:
            self.indices[name] = {**json.loads(body), "documents": {}, "seen": {}}
            return 200, {"acknowledged": True, "index": name}
        if name not in self.indices:
            return 404, error("index_not_found_exception", f"no such index [{name}]", 404)
        index = self.indices[name]
        if len(parts) == 1:
            if method == "DELETE":
                del self.indices[name]
            return 200, {"acknowledged": True}
        if last == "_mapping":
            if method == "GET":
                return 200, {name: {"mappings": index["mappings"]}}
            index["mappings"].update(json.loads(body))
            return 200, {"acknowledged": True}
        if last == "_refresh":
            index["seen"] = dict(index["documents"])
            return 200, {}
        lines = [json.loads(line) for line in body.decode().splitlines()]
        if last == "_bulk":
            return 200, self._bulk(index, lines)
        if last == "_msearch":
            found = [self._hits(index, asked, fault == "partial") for asked in lines[1::2]]
            return 200, {"took": 1, "responses": found}
        return 400, error("illegal_argument_exception", f"no endpoint {path}", 400)

    def _bulk(self, index, lines):
        items, known = [], index["mappings"]["properties"]
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            ((operation, about),) = action.items()
            result = {"_id": about["_id"], "status": 201}
            if "poison" in document.get("text", "") or set(document) - set(known):
                result |= error("mapper_parsing_exception", "failed to parse", 400)
            else:
                index["documents"][about["_id"]] = document
            items.append({operation: result})
        return {"items": items, "errors": any("error" in r for i in items for r in i.values())}

    def _hits(self, index, asked, partial):
        ((name, match),) = asked["query"]["match"].items()
        if "forbidden" in match["query"]:
            return error("too_many_clauses", "maxClauseCount", 400)
        documents = list(index["seen"].values())
        how = index["mappings"]["properties"][name]
        settings = index["settings"]
        assert settings["analysis"]["analyzer"][how["analyzer"]]["type"] == "standard"
        given = settings["index"]["similarity"].get(how["similarity"], {"k1": 0.3, "b": 0.1})
        k1, b = given["k1"], given["b"]
        texts = [document[name] for document in documents]
        scores = [float(s) for s in lucene_scores(texts, match["query"], k1=k1, b=b)]
        sort = [next(iter(key)) for key in asked.get("sort", ["_score"])]
        by_position = sort == ["_score", "position"]
        order = sorted(
            (n for n in range(len(texts)) if scores[n] > 0),
            key=lambda n: (-scores[n], documents[n]["position"] if by_position else -n),
        )
        factor = k1 + 1 if self.legacy else 1
        kept = index["mappings"]["_source"]["includes"]
        hits = [
            {
                "_id": str(n),
                "_score": float(f"{factor * scores[n]:.9g}"),
                "_source": {key: documents[n][key] for key in asked["_source"] if key in kept},
            }
            for n in order[: asked.get("size", 10)]
        ]
        shards = {"total": 1, "successful": 1 - partial, "failed": int(partial)}
        return {"status": 200, "timed_out": False, "_shards": shards, "hits": {"hits": hits}}


class Qdrant:
    """A server whose answers are those of the client's embedded mode."""

    user = url = ""

    def __init__(self):
        self.client = QdrantClient(":memory:", force_disable_check_same_thread=True)
        self.lock = threading.Lock()
        self.asked: list[dict] = []

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        _, name, *rest = urlsplit(path).path.strip("/").split("/")
        with self.lock:
            result = self._result(method, name, rest, json.loads(body or b"{}"))
        return 200, {"result": result, "status": "ok", "time": 0.0}

    def _result(self, method, name, rest, body):
        client = self.client
        if rest == ["exists"]:
            return {"exists": client.collection_exists(name)}
        if rest == ["points"] and method == "PUT":
            client.upsert(name, Batch(**body["batch"]))
            return {"operation_id": 0, "status": "completed"}
        if rest == ["points", "query", "batch"]:
            self.asked += body["searches"]
            found = [
                client.query_points(name, query=asked["query"]["nearest"], limit=asked["limit"])
                for asked in body["searches"]
            ]
            return [answer.model_dump(mode="json") for answer in found]
        assert not rest, f"no endpoint {rest}"
        if method == "GET":
            return client.get_collection(name).model_dump(mode="json")
        if method == "DELETE":
            return client.delete_collection(name)
        if method == "PATCH":
            return client.update_collection(name, metadata=body["metadata"])
        vectors = VectorParams(**body["vectors"])
        return client.create_collection(name, vectors_config=vectors, metadata=body["metadata"])


def error(kind: str, reason: str, status: int) -> dict:
    return {"error": {"type": kind, "reason": reason, "root_cause": []}, "status": status}


@contextmanager
def serve(stub):
    """Run a server in a thread; `stub.answer(method, path, body)` gives status and reply."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def reply(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, content = 401, error("security_exception", "no", 401)
            if not stub.user or self.headers.get("Authorization") == _basic(stub):
                status, content = stub.answer(self.command, self.path, body)
            sent = json.dumps(content).encode() if self.command != "HEAD" else b""
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)
            except ConnectionError:
                self.close_connection = True  # the client of a slow reply has gone

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = reply

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
    end = threading.Timer(LIFETIME, server.shutdown)
    end.daemon = True
    end.start()
    stub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield stub
    finally:
        end.cancel()
        server.shutdown()
        server.server_close()


def _basic(stub) -> str:
    return "Basic " + base64.b64encode(f"{stub.user}:{stub.password}".encode()).decode()
