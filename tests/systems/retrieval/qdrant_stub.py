"""The few endpoints of Qdrant that `ragkit.systems.retrieval.servers` uses, answered by its embedded mode.

Run it with `opensearch_stub.serve`.
"""

from __future__ import annotations

import json
import threading
from urllib.parse import urlsplit

from qdrant_client import QdrantClient
from qdrant_client.models import Batch, VectorParams


class Stub:
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
