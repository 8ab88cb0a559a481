"""What encoders and rerankers share: a tokenizer, a session of onnxruntime, threads, a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragkit.errors import DataError, ModelError, UsageError
from ragkit.models import cache as caching
from ragkit.models.registry import Card, need, verified

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

# A token has some four characters; of a longer text only a beginning is looked at.
LEAD, MOST = 64, 1 << 20
# Characters that are looked at together when a text's tokens are listed.
SEGMENT = 1 << 17


class Model:
    """A model whose files are at hand; they are checked and loaded when they are first needed.

    Parameters
    ----------
    card : Card
    folder : pathlib.Path
    threads : int

    Attributes
    ----------
    name : str
    max_tokens : int
        Longer inputs are cut off there; special tokens and prefixes count.
    """

    def __init__(self, card: Card, folder: Path, threads: int):
        self.card, self.folder, self.threads = card, folder, threads
        self.name, self.max_tokens = card.name, card.max_tokens

    def __repr__(self) -> str:
        return f"<{self.card.kind} {self.name}>"

    @cached_property
    def identity(self) -> str:
        """64 hexadecimal digits that stand for the weights and settings: the key of caches."""
        return verified(self.card, self.folder)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where each token of a text begins and ends, special tokens left out."""
        spans, at = [], 0
        while at < len(text):
            end = at + SEGMENT
            if end < len(text):  # a very long text in pieces, cut where a word begins
                end = text.rfind(" ", at + 1, end) if " " in text[at + 1 : end] else end
            piece = self._tokenizer.encode(text[at:end], add_special_tokens=False)
            spans += [(at + start, at + stop) for start, stop in piece.offsets]
            at = end
        return spans

    def windows(self, text: str, tokens: int, overlap: int) -> list[str]:
        """Return a text in pieces of so many tokens, each sharing some with the one before.

        The last piece ends with the text; a text that is short enough is one piece, unchanged.
        """
        spans = self.spans(text)
        if len(spans) <= tokens:
            return [text]
        starts = range(0, len(spans) - overlap, tokens - overlap)
        ends = [min(start + tokens, len(spans)) - 1 for start in starts]
        return [text[spans[a][0] : spans[b][1]] for a, b in zip(starts, ends, strict=True)]

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        """The tokenizer without padding and truncation."""
        _ = self.identity
        file = self.folder / "tokenizer.json"
        if file.is_file():
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(file))
        else:
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(self.folder).backend_tokenizer
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    @cached_property
    def _cutting(self) -> Tokenizer:
        """The tokenizer that cuts off what is too long; of a pair, the longer text first."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(self._tokenizer.to_str())
        tokenizer.enable_truncation(self.max_tokens, strategy="longest_first")
        return tokenizer

    @cached_property
    def _session(self):
        import onnxruntime

        _ = self.identity
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(
            self.folder / "model.onnx", options, providers=["CPUExecutionProvider"]
        )

    def _run(self, tokens: Encoding) -> np.ndarray:
        """Return the first output for one input.

        One at a time: quantised layers scale by the largest activation of a whole batch, so that
        what stands beside an input would change its output.
        """
        inputs = {
            "input_ids": tokens.ids,
            "attention_mask": tokens.attention_mask,
            "token_type_ids": tokens.type_ids,
        }
        feed = {name: np.array([values], dtype=np.int64) for name, values in inputs.items()}
        return self._session.run(None, feed)[0][0]

    def _lead(self, text: str, tokens: int) -> str:
        """Return a text, or so much of its beginning as has more than so many tokens.

        Of a beginning that has fewer, blanks or one endless word, a million characters are taken.
        """
        size = LEAD * tokens
        while size < min(len(text), MOST):
            lead = text[:size]
            # The last word may be half a word, and be other tokens than the whole.
            if len(self._tokenizer.encode(lead, add_special_tokens=False)) > tokens + 256:
                return lead
            size *= 2
        return text[:MOST]

    def _store(self, cache):
        folder = caching.place(cache)
        if folder is None:
            return None
        return caching.opened(folder, self.name, self.identity, self.card.dimension)

    @contextmanager
    def _torch_threads(self) -> Iterator[None]:
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def _loaded(self, load):
        """Return what `load(folder, device)` makes of the weights, by torch."""
        import torch
        from transformers.utils import logging

        _ = self.identity
        logging.disable_progress_bar()
        device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            return load(str(self.folder), device=device, local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"{self.name}: the files in {self.folder} could not be loaded ({said})",
                f"delete them and run: {self.card.command}",
            ) from error


def at_hand(card: Card, threads: int) -> Path:
    """Return the folder of a model, after a look at the options."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise UsageError(f"threads should be a whole number from 1, found {threads!r}")
    return need(card)


def strings(texts: Sequence[str], what: str) -> list[str]:
    """Return texts as a list.

    Raises
    ------
    DataError
        If they are one string, or one of them is none or holds half a surrogate pair.
    """
    if isinstance(texts, str):
        raise DataError(f"expected several {what}s, found one string", "put it into a list")
    texts = list(texts)
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DataError(f"{what} {number} should be a string, found {text!r:.80}")
        if not text.isascii():
            try:
                text.encode("utf-8")
            except UnicodeEncodeError as error:
                raise DataError(
                    f"{what} {number} is no valid Unicode: half a surrogate pair at "
                    f"character {error.start + 1}"
                ) from None
    return texts
