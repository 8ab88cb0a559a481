"""Vectors of an endpoint that speaks OpenAI's protocol: asked in batches, each paid once."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from itertools import islice

import numpy as np

from ragkit import checks
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.llm import count_tokens, dollars, load_prices
from ragkit.llm.endpoint import Endpoint, Fault
from ragkit.store import Store
from ragkit.text import encoding

MAX_TOKENS = 8191  # of a text; what is beyond is cut off
TOKENS, TEXTS = 100_000, 256  # of one request
ATTEMPTS, BACKOFF_S = 6, 0.5
COUNTED = 1000  # texts whose tokens an estimate counts
DIMENSIONS = {"text-embedding-3-large": 3072, "text-embedding-3-small": 1536}


class EndpointEncoder:
    """The embedding model `openai:NAME` of an endpoint, kept in the store by its texts.

    The environment names address and key as for `ragkit.llm.Client`. A text is cut after 8,191
    tokens, as `tiktoken` counts them. All requests for vectors that were answered are kept, so that
    a run that was stopped continues.

    Parameters
    ----------
    model : str
        `openai:NAME`.
    budget : float, optional
        US dollars that this encoder may spend (`spent`); it needs a price of the model.
    environment : str
        As of `ragkit.llm.Client`.

    Attributes
    ----------
    dimension : int or None
        Known for OpenAI's models; vectors of another length raise `DataError`.
    """

    def __init__(self, model: str, *, budget: float | None = None, environment: str = "OPENAI"):
        if not model.removeprefix("openai:") or not model.startswith("openai:"):
            hint = "as in openai:text-embedding-3-large"
            raise UsageError(f"no encoder is called {model!r}", hint)
        self.name = self.identity = model
        self.dimension = DIMENSIONS.get(model.removeprefix("openai:"))
        self.endpoint = Endpoint(environment, 120.0)
        self.budget, self.spent, self.calls, self.prices = budget, 0.0, 0, load_prices()

    def __repr__(self) -> str:
        return f"<encoder {self.name}>"

    def encode(self, texts: Sequence[str], kind: str | None = "passage") -> np.ndarray:
        """Return unit vectors of n texts: float32, shape (n, dimension).

        `kind` makes no difference. Raises `ModelError` if the endpoint cannot be used or the
        budget does not suffice for the next request, and `DataError` for vectors that are none, or
        of another length than the others.
        """
        items = checks.strings(texts, "texts")
        if not items:
            raise UsageError("there is no text to encode")
        with Store() as store:
            for part in self._portions(items):
                store.map(self._ask, part, batch=len(part), **self._kept)
            rows = store.map(self._ask, items, **self._kept)
        lengths = {len(row) for row in rows}
        if len(lengths) > 1:
            said = ", ".join(map(str, sorted(lengths)))
            raise DataError(f"{self.name} gave vectors of different lengths: {said}")
        return np.stack(rows)

    def estimate(self, texts: Sequence[str]) -> tuple[int, int, float | None]:
        """Return the texts that are not kept, their tokens and price; of many texts, by a sample."""
        texts = list(dict.fromkeys(texts))
        sample = texts[:: max(1, len(texts) // COUNTED)]
        with Store() as store:
            share = store.missing(sample, **self._kept) / len(sample) if sample else 0.0
        letters = sum(map(len, sample)) or 1
        counted = sum(min(count_tokens(text, self.name), MAX_TOKENS) for text in sample)
        tokens = round(share * sum(map(len, texts)) * counted / letters)
        return round(share * len(texts)), tokens, self.prices.cost(self.name, tokens, 0)

    @property
    def _kept(self) -> dict:
        return {"step": "embed", "code": (), "given": [self.name, MAX_TOKENS]}

    def _portions(self, texts: list[str]):
        """Yield texts in portions that are asked and kept together."""
        waiting = iter(dict.fromkeys(texts))
        while part := list(islice(waiting, TEXTS)):
            while len(part) > 1 and sum(map(len, part)) / 3 > TOKENS:
                half = len(part) // 2
                yield part[:half]
                part = part[half:]
            yield part

    def _ask(self, texts: list[str]) -> list[np.ndarray]:
        cut, model = [], self.name.removeprefix("openai:")
        codec, tokens = encoding("cl100k_base"), 0
        for text in texts:
            ids = codec.encode_ordinary(text)
            tokens += min(len(ids), MAX_TOKENS)
            cut.append(text if len(ids) <= MAX_TOKENS else codec.decode(ids[:MAX_TOKENS]))
        cost = self.prices.cost(self.name, tokens, 0)
        if self.budget is not None and (cost is None or self.spent + cost > self.budget):
            said = f"{dollars(self.spent)} of {dollars(self.budget)} are spent on vectors"
            raise ModelError(
                f"the budget would be exceeded: {said}; the next {len(texts):,} texts cost "
                f"{dollars(cost)}",
                "what was answered is kept: the same command with a larger --budget goes on",
            )
        with self.endpoint.connect() as connection:
            # An empty text has no vector: a blank stands for it.
            body = {"model": model, "input": [text or " " for text in cut]}
            reply = json.loads(self._attempts(connection, body, len(texts)))
        self.calls, self.spent = self.calls + 1, self.spent + (cost or 0.0)
        rows = sorted(reply["data"], key=lambda row: row["index"])
        return [self._vector(row["embedding"], text) for row, text in zip(rows, texts, strict=True)]

    def _attempts(self, connection, body: dict, count: int) -> str:
        options = {"service": "embeddings", "check": partial(_wrong, count=count)}
        for attempt in range(ATTEMPTS):
            try:
                return self.endpoint.attempt(connection, body, **options)
            except Fault as caught:
                fault = caught
            if not fault.again:
                break
            time.sleep(max(fault.wait_s or 0.0, BACKOFF_S * 2**attempt))
        hint = "the vectors so far are kept; the same command goes on"
        raise ModelError(f"{self.name} gave no vectors: {fault}", hint)

    def _vector(self, numbers: list[float], text: str) -> np.ndarray:
        vector = np.asarray(numbers, dtype=np.float64)
        if self.dimension not in (None, len(vector)):
            raise DataError(
                f"{self.name} should give vectors of length {self.dimension}, found {len(vector)}",
                f"another model answers at {self.endpoint.url}: name it as it is called there",
            )
        return unit(vector[None], [text], self.name)[0].astype(np.float32)


def unit(vectors: np.ndarray, texts: Sequence[str], name: str) -> np.ndarray:
    """Return vectors scaled to length 1; `DataError` names the text of one without direction."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = ~(np.isfinite(norms) & (norms > 0)).ravel()
    if bad.any():
        text = texts[int(bad.argmax())]
        raise DataError(f"{name} gives a vector without direction for {text!r:.80}")
    return vectors / norms


def _wrong(text: str, count: int) -> str | None:
    """Return what is wrong with a reply to a request for `count` vectors."""
    try:
        rows = json.loads(text)["data"]
        numbers = {row["index"] for row in rows}
        good = all(isinstance(row["embedding"], list) for row in rows)
    except (ValueError, KeyError, TypeError):
        return f"the reply holds no vectors: {text!r:.200}"
    if not good or numbers != set(range(count)):
        return f"the reply holds {len(numbers)} of {count} vectors"
    return None
