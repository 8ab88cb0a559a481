"""What requests cost: tokens, counted without network, and prices from a file of the user's."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragkit import checks, text
from ragkit.display import card
from ragkit.errors import DataError, MissingData, UsageError
from ragkit.llm.requests import canonical

FILE = Path(__file__).with_name("prices.toml")


@dataclass(frozen=True)
class Prices:
    """A price list: `models` maps a model's name to dollars per million tokens in and out.

    >>> Prices({"mine": (1.0, 2.0)}, "2026-01-01", "p.toml").cost("mine", 1_000_000, 500_000)
    2.0
    """

    models: Mapping[str, tuple[float, float]]
    date: str
    path: str

    def cost(
        self, model: str, prompt_tokens: int | None, completion_tokens: int | None
    ) -> float | None:
        """Return the price in US dollars, or None if the price or a count is unknown.

        `model` is the name with or without `openai:`.
        """
        pair = self.models.get(model.removeprefix("openai:"))
        if None in (pair, prompt_tokens, completion_tokens):
            return None
        return (pair[0] * prompt_tokens + pair[1] * completion_tokens) / 1e6


def load_prices() -> Prices:
    """Read the price file that `RAGKIT_PRICES` names, else the package's.

    Raises `MissingData` if the file does not exist, and `DataError` if it is not TOML, has no date,
    or a price is not a number of at least 0.

    >>> prices = load_prices()
    >>> prices.models["gpt-4o-mini"]
    (0.15, 0.6)
    """
    path = Path(os.environ.get("RAGKIT_PRICES") or FILE)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingData(f"there is no price file {path}", f"copy {FILE} and edit it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not TOML: {error}") from None
    if "date" not in table or table.get("currency") != "USD":
        raise DataError(f'{path}: expected a date and currency = "USD" at the top')
    models = table.get("models", {})
    if not isinstance(models, dict):
        raise DataError(f"{path}: models should be a table")
    for name, entry in models.items():
        try:
            if set(entry) != {"input", "output"}:
                raise TypeError
            models[name] = tuple(checks.number(entry[w], w, least=0) for w in ("input", "output"))
        except (TypeError, UsageError):
            needs = "input and output, in dollars per million tokens"
            raise DataError(f"{path}: model {name!r} needs {needs}") from None
    return Prices(models, str(table["date"]), str(path))


def dollars(cost: float | None) -> str:
    """Return a cost for display, such as `$0.0123`, or `unknown`.

    >>> dollars(0.01234), dollars(None)
    ('$0.01234', 'unknown')
    """
    if cost is None:
        return "unknown"
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:.4g}"


@dataclass(frozen=True)
class Estimate:
    """Calls, tokens and price of a batch; `str(estimate)` says them in two lines.

    `completion_tokens` is the sum of the requests' token limits, None if one has none. `cost_low`
    is the price of the prompts alone, `cost_high` with answers of full length; each is None where
    it is unknown. The repair of an invalid answer is not included.
    """

    model: str
    requests: int
    cached: int
    calls: int
    prompt_tokens: int
    completion_tokens: int | None
    cost_low: float | None
    cost_high: float | None
    prices: str

    def _repr_html_(self) -> str:
        first, second = str(self).split("\n")
        after = "Next: `complete` with the same requests asks them; nothing has been asked so far."
        return card("Estimate", {"requests": first, "tokens and price": second}, after=after)

    def __str__(self) -> str:
        encoding, exact = encoding_name(self.model)
        limit = self.completion_tokens
        out = "no limit on output tokens" if limit is None else f"at most {limit:,} out"
        if self.calls == 0:
            price = "nothing to pay"
        elif self.cost_low is None:
            price = f"price unknown: no {self.model.removeprefix('openai:')!r} in {self.prices}"
        elif self.cost_high is None:
            price = f"at least {dollars(self.cost_low)} (set max_tokens to bound it), {self.prices}"
        else:
            price = f"{dollars(self.cost_low)} to {dollars(self.cost_high)}, {self.prices}"
        return (
            f"{self.model}: {self.requests:,} requests, {self.cached:,} in the ledger, "
            f"{self.calls:,} calls\n{self.prompt_tokens:,} tokens in "
            f"({'counted' if exact else 'estimated'} with {encoding}), {out}; {price}"
        )


def encoding_name(model: str) -> tuple[str, bool]:
    """Return the encoding for a model's name, and whether it is that model's own.

    For models without a known encoding it is `o200k_base`, which gives an estimate.

    >>> encoding_name("gpt-4o"), encoding_name("my-model")
    (('o200k_base', True), ('o200k_base', False))
    """
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model.removeprefix("openai:"))
    except KeyError:
        return "o200k_base", False
    return (name, True) if name in text.ENCODINGS else ("o200k_base", False)


def count_tokens(string: str, model: str = "gpt-4o") -> int:
    """Return the number of tokens of `string`; special tokens count as plain text.

    >>> count_tokens("Is 7 prime?")
    5
    """
    return len(text.encoding(encoding_name(model)[0]).encode_ordinary(string))


def request_tokens(plain: Mapping[str, Any]) -> tuple[int, int | None]:
    """Return the tokens of a request, as `Request.plain` gives it, and the limit of its answer.

    As in chat models with the encodings `cl100k` and `o200k`, every message takes three tokens
    beside its text, and the reply three more. How providers present a schema or tools to the
    model is not public: their JSON is counted as text.

    >>> from ragkit.llm import Request
    >>> request_tokens(Request("Is 7 prime?", parameters={"max_tokens": 5}).plain("gpt-4o"))
    (12, 5)
    """
    values = [value for message in plain["messages"] for value in message.values()]
    counted = filter(None, (*values, plain["schema"], plain["tools"]))
    strings = [value if isinstance(value, str) else canonical(value) for value in counted]
    tokens = sum(count_tokens(string, plain["model"]) for string in strings)
    return 3 + 3 * len(plain["messages"]) + tokens, answer_limit(plain)


def answer_limit(plain: Mapping[str, Any]) -> int | None:
    """Return the largest number of tokens of an answer to a request, None without a limit."""
    limits = plain["parameters"]
    return limits.get("max_completion_tokens", limits.get("max_tokens"))
