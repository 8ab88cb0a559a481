"""What a token costs, from a file that the user keeps."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ragkit.errors import DataError, MissingData

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
        """Return the price in US dollars, or None if the price or a count is not known.

        `model` is the name with or without the `openai:` in front.
        """
        pair = self.models.get(model.removeprefix("openai:"))
        if pair is None or prompt_tokens is None or completion_tokens is None:
            return None
        return (pair[0] * prompt_tokens + pair[1] * completion_tokens) / 1e6


def load_prices(path: str | Path | None = None) -> Prices:
    """Read a price file: `path`, else the one that `RAGKIT_PRICES` names, else the package's.

    Raises
    ------
    MissingData
        If the file is not there.
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
        complete = isinstance(entry, dict) and set(entry) == {"input", "output"}
        if not complete or not all(
            type(price) in (int, float) and 0 <= price < float("inf") for price in entry.values()
        ):
            raise DataError(
                f"{path}: model {name!r} needs input and output, in dollars per million tokens"
            )
        models[name] = (float(entry["input"]), float(entry["output"]))
    return Prices(models, str(table["date"]), str(path))


def dollars(cost: float | None) -> str:
    """Return a cost for people: `$0.0123`, or `unknown`."""
    if cost is None:
        return "unknown"
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:.4g}"
