"""The endpoint: its address, its key, and one attempt to get an answer from it."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ragkit.errors import ModelError
from ragkit.llm.exchange import check_envelope

if TYPE_CHECKING:
    import httpx2

# Where the vendors speak OpenAI's protocol, by the name that begins the environment variables.
ADDRESSES = {
    "OPENAI": "https://api.openai.com/v1",
    "ANTHROPIC": "https://api.anthropic.com/v1",
    "GEMINI": "https://generativelanguage.googleapis.com/v1beta/openai",
}


class Fault(Exception):
    """An attempt without an answer.

    `wait_s` is the wait that the server asked for, or None; `again` says whether another attempt
    may succeed.
    """

    def __init__(self, kind: str, reason: str, *, wait_s: float | None = None, again: bool = True):
        super().__init__(reason)
        self.kind, self.reason, self.wait_s, self.again = kind, reason, wait_s, again


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
        """The address; `ModelError` if it is not a URL, or may hold a secret."""
        name = f"{self.environment}_BASE_URL"
        address = os.environ.get(name) or ADDRESSES.get(self.environment)
        if address is None:  # a key must not go to another vendor
            hint = f"export {name}=https://..., the address that speaks OpenAI's protocol"
            raise ModelError(f"{name} is not set", hint)
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            hint = "expected something like http://localhost:8000/v1"
            raise ModelError(f"{name} is not an address", hint)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ModelError(
                f"{name} holds more than an address: a user, a password or a query",
                f"a key belongs in {self.environment}_API_KEY, where no log shows it",
            )
        return address.rstrip("/")

    @property
    def schema_in_prompt(self) -> bool:
        """Whether `NAME_JSON=prompt` says that the endpoint takes no JSON schema."""
        return os.environ.get(f"{self.environment}_JSON") == "prompt"

    @property
    def _key(self) -> str:
        return os.environ.get(f"{self.environment}_API_KEY", "").strip()

    def redact(self, text: str) -> str:
        """Return `text` with the key replaced."""
        key = self._key
        # Placeholders such as "none" or "ollama" are words that answers may contain.
        secret = len(key) >= 16 or len(key) >= 6 and any(c.isdigit() for c in key)
        return text.replace(key, "[redacted]") if secret else text

    @property
    def lacks(self) -> str:
        """The name of the variable that has to hold a key; empty if one is there or not needed."""
        return "" if self._key or is_local(self.url) else f"{self.environment}_API_KEY"

    def connect(self) -> httpx2.Client:
        """Return a connection for any number of threads.

        Raises `ModelError` if there is no key and the address is not this machine's.
        """
        import httpx2

        if name := self.lacks:
            raise ModelError(
                f"no key for {self.url}: {name} is not set",
                f"export {name}=..., or {self.environment}_BASE_URL=... for a server of your own",
            )
        name = f"{self.environment}_API_KEY"
        if not all("!" <= character <= "~" for character in self._key):
            raise ModelError(f"{name} holds a blank or a character that no key has")
        return httpx2.Client(
            headers={"Authorization": f"Bearer {self._key or 'none'}"},
            timeout=httpx2.Timeout(self.timeout, connect=min(10.0, self.timeout)),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=True,
            verify=_certificates(),
        )

    def attempt(
        self,
        connection: httpx2.Client,
        body: Mapping[str, Any],
        *,
        service: str = "chat/completions",
        check: Callable[[str], str | None] = check_envelope,
    ) -> str:
        """Send `body` to a service of the endpoint once; return the JSON text of the reply.

        `check` returns what is wrong with a reply. Unless told otherwise it is that of a chat.
        Raises `Fault` if there is no usable reply, and `ModelError` if no request can succeed: the
        key is refused, the model does not exist.
        """
        # No exception of the library may leave this function: its frames hold the key.
        import httpx2

        try:
            reply, text = self._post(connection, body, service)
            wrong = check(text) if reply.is_success else None
            if reply.is_success and wrong is None:
                return text
            failure = Fault("garbage", wrong) if wrong else self._status(reply, text)
        except httpx2.TimeoutException:
            failure = Fault("timeout", f"no complete answer within {self.timeout:g} s")
        except httpx2.HTTPError as error:
            said = self.redact(f"{type(error).__name__}: {error}")[:300]
            failure = Fault("connection", f"no answer from {self.url}: {said}")
        except UnicodeDecodeError:
            failure = Fault("garbage", "the reply is not UTF-8")
        except Exception as error:  # a defect, reported without its frames
            said = self.redact(f"{type(error).__name__}: {error}")
            failure = ModelError(f"the call failed: {said}")
        raise failure

    def _post(self, connection: httpx2.Client, body: Mapping[str, Any], service: str):
        """Return the reply and its text without the key."""
        import httpx2

        ends, content = time.monotonic() + self.timeout, b""
        with connection.stream("POST", f"{self.url}/{service}", json=body) as reply:
            for part in reply.iter_bytes():
                content += part
                if time.monotonic() > ends:  # the library bounds each read, not their sum
                    raise httpx2.ReadTimeout("the answer is not complete")
        return reply, self.redact(
            content.decode(errors="strict" if reply.is_success else "replace")
        )

    def _status(self, reply: httpx2.Response, text: str) -> Exception:
        error, status = {}, reply.status_code
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            error = dict(json.loads(text)["error"])
        reason = f"status {status}: {error.get('message') or text}"[:300]
        if status == 401:
            return ModelError(f"{self.url} refused the key in {self.environment}_API_KEY: {reason}")
        if status == 404:
            return ModelError(f"{self.url} knows no such model or address: {reason}")
        if status == 400 and re.search(r"response_format|json_schema", reason):
            hint = f"export {self.environment}_JSON=prompt, which puts the schema into the prompt"
            return ModelError(f"{self.url} takes no JSON schema: {reason}", hint)
        if status in (408, 409, 425, 429) or status >= 500:
            kind = "rate_limit" if status == 429 else "server_error"
            again = error.get("code") != "insufficient_quota"
            return Fault(kind, reason, wait_s=_retry_after(reply.headers), again=again)
        return Fault("forbidden" if status == 403 else "rejected", reason, again=False)


def is_local(url: str) -> bool:
    """Return whether an address is one of this machine.

    >>> is_local("http://127.0.0.1:8080/v1"), is_local("https://api.openai.com/v1")
    (True, False)
    """
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


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
