"""The endpoint: its address, its key, and one attempt to get an answer from it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragkit.errors import ModelError
from ragkit.llm.exchange import check_envelope

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class Fault(Exception):
    """An attempt without an answer.

    `wait_s` is the wait that the server asked for, or None; `again` says whether another attempt
    may succeed, `stop` that no request of the batch can.
    """

    def __init__(self, kind, reason, *, wait_s=None, again=True, stop=False):
        super().__init__(reason)
        self.kind, self.reason = kind, reason
        self.wait_s, self.again, self.stop = wait_s, again, stop


class Endpoint:
    """An endpoint as the environment describes it.

    The key stays in the environment: it is read when a connection is made, and is in no
    attribute, repr or pickle of this class. An address with a user, a password or a query is
    refused, because libraries log addresses.
    """

    def __init__(self, environment: str, timeout: float):
        self.environment, self.timeout = environment, timeout

    @property
    def url(self) -> str:
        name = f"{self.environment}_BASE_URL"
        address = os.environ.get(name) or "https://api.openai.com/v1"
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ModelError(
                f"{name} is not an address", "expected something like http://localhost:8000/v1"
            )
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ModelError(
                f"{name} holds more than an address: a user, a password or a query",
                f"a key belongs in {self.environment}_API_KEY, where no log shows it",
            )
        return address.rstrip("/")

    @property
    def _key(self) -> str:
        return os.environ.get(f"{self.environment}_API_KEY", "").strip()

    def holds_secret(self, text: str) -> bool:
        """Return whether `text` contains the key."""
        # Placeholders such as "none" or "ollama" are words that answers may contain.
        key = self._key
        return (len(key) >= 16 or len(key) >= 6 and any(c.isdigit() for c in key)) and key in text

    def redact(self, text: str) -> str:
        """Return `text` with the key replaced."""
        return text.replace(self._key, "[redacted]") if self.holds_secret(text) else text

    def connect(self) -> AsyncOpenAI:
        """Return a client of the openai package, for use in one event loop.

        Raises
        ------
        ModelError
            If the environment holds no key and the address is not this machine's.
        """
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
        return openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self.url,
            timeout=openai.Timeout(self.timeout, connect=min(10.0, self.timeout)),
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(verify=_certificates()),
        )

    async def attempt(self, connection: AsyncOpenAI, body: Mapping[str, Any]) -> str:
        """Send `body` to the chat endpoint once; return the JSON text of the reply.

        Raises
        ------
        Fault
            If there is no usable reply.
        ModelError
            If no request can succeed: the key is refused, the model does not exist.
        """
        # No exception of the openai package may leave this function: its frames hold the key.
        import httpx2
        import openai

        text = ""
        try:
            async with asyncio.timeout(self.timeout):  # httpx bounds each read, not their sum
                reply = await connection.post(
                    "/chat/completions", cast_to=httpx2.Response, body=body
                )
            text = self.redact(reply.content.decode())
            wrong = check_envelope(text)
            failure = Fault("garbage", wrong) if wrong else None
        except (TimeoutError, openai.APITimeoutError):
            failure = Fault("timeout", f"no complete answer within {self.timeout:g} s")
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            said = self.redact(f"{type(cause).__name__}: {cause}")[:300]
            failure = Fault("connection", f"no answer from {self.url}: {said}")
        except openai.APIStatusError as error:
            failure = self._status(error)
        except UnicodeDecodeError:
            failure = Fault("garbage", "the reply is not UTF-8")
        except Exception as error:  # a defect, reported without its frames
            failure = ModelError(
                f"the call failed: {self.redact(f'{type(error).__name__}: {error}')}"
            )
        if failure is not None:
            raise failure
        return text

    def _status(self, error) -> Exception:
        status = error.status_code
        reason = f"status {status}: {self.redact(str(error.message))[:300]}"
        if status == 401:
            return ModelError(f"{self.url} refused the key in {self.environment}_API_KEY: {reason}")
        if status == 404:
            return ModelError(f"{self.url} knows no such model or address: {reason}")
        if isinstance(error.body, dict) and error.body.get("code") == "insufficient_quota":
            return Fault("rate_limit", reason, again=False, stop=True)
        if status in (408, 409, 425, 429) or status >= 500:
            kind = "rate_limit" if status == 429 else "server_error"
            return Fault(kind, reason, wait_s=_retry_after(error.response.headers))
        return Fault("forbidden" if status == 403 else "rejected", reason, again=False)


@cache
def _certificates():
    import httpx2

    return httpx2.create_ssl_context()  # takes a tenth of a second


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a reply asks to wait, by number or date, or None."""
    given, seconds = headers.get("retry-after", ""), -1.0
    with suppress(ValueError):
        seconds = max(parsedate_to_datetime(given).timestamp() - time.time(), 0.0)
    with suppress(ValueError):
        seconds = float(given)
    with suppress(ValueError):
        seconds = float(headers.get("retry-after-ms", "")) / 1000
    return seconds if 0 <= seconds < float("inf") else None
