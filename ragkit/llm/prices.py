"""Prices of tokens, from a file that the user maintains."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragkit import checks
from ragkit.errors import DataError, MissingData, UsageError

FILE = Path(__file__).with_name("prices.toml")


@dataclass(frozen=True)
class Prices:
    """A price list: `models` maps a model's name to dollars per million tokens in and out."""

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


def load_prices(path: str | Path | None = None) -> Prices:
    """Read a price file: `path`, else the one that `RAGKIT_PRICES` names, else the package's.

    Raises
    ------
    MissingData
        If the file does not exist.
    DataError
        If it is not TOML, has no date, or a price is not a number of at least 0.
    """
    path = Path(path or os.environ.get("RAGKIT_PRICES") or FILE)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingData(f"there is no price file {path}", f"copy {FILE} and edit it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not TOML: {error}") from None
    if "date" not in table or table.get("currency") != "USD":
        raise DataError(f'{path}: expected a date and currency = "USD" at the top')
    models = {}
    for name, entry in table.get("models", {}).items():
        try:
            if set(entry) != {"input", "output"}:
                raise TypeError
            models[name] = tuple(
                checks.number(entry[way], way, least=0) for way in ("input", "output")
            )
        except (TypeError, UsageError):
            raise DataError(
                f"{path}: model {name!r} needs input and output, in dollars per million tokens"
            ) from None
    return Prices(models, str(table["date"]), str(path))


def dollars(cost: float | None) -> str:
    """Return a cost for display, such as `$0.0123`, or `unknown`."""
    if cost is None:
        return "unknown"
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:.4g}"
