"""The endpoint: where it is, what opens it, and one attempt to get an answer from it."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from ragkit.errors import ModelError
from ragkit.llm.exchange import check_envelope

OFFICIAL = "https://api.openai.com/v1"
_RETRIED = frozenset({408, 409, 425, 429})


class Fault(Exception):
    """An attempt without an answer.

    `wait_s` is what the server asked for, None if it did not; `again` says whether another
    attempt may help, `stop` that no request of the batch can succeed.
    """

    def __init__(self, kind, reason, *, wait_s=None, again=True, stop=False):
        super().__init__(reason)
        self.kind, self.reason = kind, reason
        self.wait_s, self.again, self.stop = wait_s, again, stop


class Endpoint:
    """One endpoint as the environment describes it.

    The key stays in the environment: it is read when a connection is made, and shows in no
    attribute, repr or pickle of this class. The address may hold no secret, because libraries
    log it: one with a user, a password or a query is refused.
    """

    def __init__(self, environment: str, timeout: float):
        self.environment = environment
        self.timeout = timeout
        self._client = None

    def __repr__(self) -> str:
        return f"Endpoint({self.environment!r})"

    @property
    def configured(self) -> bool:
        """Whether the environment names an endpoint or a key at all."""
        return any(os.environ.get(f"{self.environment}_{name}") for name in ("BASE_URL", "API_KEY"))

    @property
    def url(self) -> str:
        name = f"{self.environment}_BASE_URL"
        address = os.environ.get(name) or OFFICIAL
        try:
            parts = urlsplit(address)
            valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
            bare = "@" not in parts.netloc and not parts.query and not parts.fragment
        except ValueError:
            valid = False
        if not valid:
            raise ModelError(
                f"{name} is not an address", "expected something like http://localhost:8000/v1"
            )
        if not bare:
            raise ModelError(
                f"{name} holds more than an address: a user, a password or a query",
                f"a key belongs in {self.environment}_API_KEY, where no log shows it",
            )
        return address.rstrip("/")

    @property
    def _key(self) -> str:
        return os.environ.get(f"{self.environment}_API_KEY", "").strip()

    def redact(self, text: str) -> str:
        """Return `text` with the key blacked out."""
        return text.replace(self._key, "[redacted]") if self._is_secret else text

    def holds_secret(self, text: str) -> bool:
        """Whether `text` contains the key."""
        return self._is_secret and self._key in text

    @property
    def _is_secret(self) -> bool:
        # Stand-ins such as "none" or "ollama" are words that answers may well contain.
        key = self._key
        return len(key) >= 16 or len(key) >= 6 and any(c.isdigit() for c in key)

    def connect(self) -> None:
        """Make the client of the openai package; call it in the event loop that will use it.

        Raises
        ------
        ModelError
            If the environment holds no key and the address is not this machine's.
        """
        if self._client is not None:
            return
        import openai

        name = f"{self.environment}_API_KEY"
        local = urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")
        if not self._key and not local:
            raise ModelError(
                f"no key for {self.url}: {name} is not set",
                f"export {name}=..., or {self.environment}_BASE_URL=... for a server of your own",
            )
        if not all("!" <= character <= "~" for character in self._key):
            raise ModelError(f"{name} holds a blank or a character that no key has")
        self._client = openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self.url,
            timeout=openai.Timeout(self.timeout, connect=min(10.0, self.timeout)),
            max_retries=0,
        )

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    async def attempt(self, body: Mapping[str, Any]) -> str:
        """Put `body` to the chat endpoint once; return the JSON text of the reply.

        Raises
        ------
        Fault
            If there is no usable reply.
        ModelError
            If there is no use in going on: the key is refused, the model is not there.
        """
        # Nothing of the openai package may leave this function: its frames hold the key.
        import httpx2
        import openai

        failure: Exception | None = None
        try:
            async with asyncio.timeout(self.timeout):  # httpx alone bounds each read, not all
                reply = await self._client.post(
                    "/chat/completions", cast_to=httpx2.Response, body=body
                )
        except (TimeoutError, openai.APITimeoutError):
            failure = Fault("timeout", f"no complete answer within {self.timeout:g} s")
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            text = self.redact(f"{type(cause).__name__}: {cause}")[:300]
            failure = Fault("connection", f"no answer from {self.url}: {text}")
        except openai.APIStatusError as error:
            failure = self._status(error)
        except Exception as error:  # a defect somewhere; reported, without its frames
            failure = ModelError(
                f"the call failed: {self.redact(f'{type(error).__name__}: {error}')}"
            )
        if failure is not None:
            raise failure
        try:
            text = reply.content.decode()
        except UnicodeDecodeError:
            raise Fault("garbage", "the reply is not UTF-8") from None
        wrong = check_envelope(text)
        if wrong:
            raise Fault("garbage", self.redact(wrong))
        return self.redact(text)

    def _status(self, error) -> Exception:
        status = error.status_code
        said = self.redact(str(error.message))[:300]
        code = error.body.get("code") if isinstance(error.body, dict) else None
        if status == 401:
            return ModelError(
                f"{self.url} refused the key in {self.environment}_API_KEY (401): {said}"
            )
        if status == 404:
            return ModelError(f"{self.url} knows no such model or address (404): {said}")
        reason = f"status {status}: {said}"
        if code == "insufficient_quota":
            return Fault("rate_limit", reason, again=False, stop=True)
        if status in _RETRIED or status >= 500:
            kind = "rate_limit" if status == 429 else "server_error"
            return Fault(kind, reason, wait_s=_retry_after(error.response.headers))
        return Fault("forbidden" if status == 403 else "rejected", reason, again=False)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a reply asks to wait, None if it does not or they make no sense."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        given = headers.get(name)
        if given is None:
            continue
        try:
            seconds = float(given) / scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(given).timestamp() - time.time()
            except ValueError:
                continue
            seconds = max(seconds, 0.0)
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None
