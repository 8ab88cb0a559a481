"""What encoders and rerankers share: tokenizer, onnxruntime session, threads, kept outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragkit.errors import ModelError
from ragkit.models.registry import Card, verified
from ragkit.store import Store

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

# Characters per token that are tokenized before a long text is truncated, and the limit.
CHARACTERS_PER_TOKEN, MAX_CHARACTERS = 64, 1 << 20
SEGMENT = 1 << 17  # characters that are tokenized together when the tokens of a text are listed
BATCH = 64  # outputs computed, and then stored, together
CHUNK = 8192  # outputs read from the store together


class Model:
    """A model whose files are present; they are verified and loaded on first use."""

    def __init__(self, card: Card, folder: Path, threads: int):
        self.card, self.folder, self.threads = card, folder, threads
        self.name, self.max_tokens = card.name, card.max_tokens

    def __reduce__(self):
        return type(self), (self.card, self.folder, self.threads)  # without what is loaded

    def __repr__(self) -> str:
        return f"<{self.card.kind} {self.name}>"

    @cached_property
    def identity(self) -> str:
        """Digest of the weights and of the settings that decide outputs, in hexadecimal."""
        return verified(self.card, self.folder)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each token in a text, without special tokens."""
        spans, at = [], 0
        while at < len(text):
            end = at + SEGMENT
            if end < len(text):  # tokenize a very long text in segments that end at a space
                end = text.rfind(" ", at + 1, end) if " " in text[at + 1 : end] else end
            piece = self._tokenizer.encode(text[at:end], add_special_tokens=False)
            spans += [(at + start, at + stop) for start, stop in piece.offsets]
            at = end
        return spans

    def windows(self, text: str, tokens: int, overlap: int) -> list[str]:
        """Return a text in windows of `tokens` tokens that overlap by `overlap` tokens.

        The last window ends with the text; a text of at most `tokens` tokens is returned whole.
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
    def _truncating(self) -> Tokenizer:
        """The tokenizer that truncates to `max_tokens`; of a pair, the longer text first."""
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
        """Return the session's first output for one input, so that no batch changes it.

        Quantized layers scale by the largest activation of a batch.
        """
        inputs = {
            "input_ids": tokens.ids,
            "attention_mask": tokens.attention_mask,
            "token_type_ids": tokens.type_ids,
        }
        feed = {name: np.array([values], dtype=np.int64) for name, values in inputs.items()}
        return self._session.run(None, feed)[0][0]

    def _beginning(self, text: str, tokens: int) -> str:
        """Return a text, or a beginning of at most a million characters with enough tokens."""
        size = CHARACTERS_PER_TOKEN * tokens
        while size < min(len(text), MAX_CHARACTERS):
            lead = text[:size]
            # The last word may be cut, and then has other tokens than the whole word.
            if len(self._tokenizer.encode(lead, add_special_tokens=False)) > tokens + 256:
                return lead
            size *= 2
        return text[:MAX_CHARACTERS]

    def _kept(
        self,
        compute: Callable[[list], np.ndarray],
        items: Sequence,
        sizes: Sequence[int],
        cache: bool | str | os.PathLike,
        progress: bool,
    ) -> np.ndarray:
        """Return `compute(items)`, a row for each item, from the store that `cache` names.

        Longer items (by `sizes`) are computed first, which makes batches of similar length.
        """
        from tqdm.auto import tqdm

        path = (
            ":memory:" if cache is False else None if cache is True else Path(cache, "store.sqlite")
        )
        rows = np.empty((len(items), self.card.dimension), dtype=np.float32)
        with tqdm(total=len(items), unit="text", disable=not progress) as bar:

            def batch(part: list) -> np.ndarray:
                computed = compute(part)
                bar.update(len(part))
                return computed

            for start in range(0, len(items), CHUNK):
                stop = min(start + CHUNK, len(items))
                order = sorted(range(start, stop), key=lambda n: -sizes[n])
                with Store(path) as store:
                    rows[order] = store.map(
                        batch,
                        [items[n] for n in order],
                        step=self.card.kind,
                        code=(type(self).__module__,),
                        given=self.identity,
                        batch=BATCH,
                    )
                bar.update(stop - bar.n)
        return rows

    def _load(self, loader):
        """Return what a loader of sentence-transformers reads from the folder."""
        from transformers.utils import logging

        _ = self.identity
        logging.disable_progress_bar()
        try:
            return loader(str(self.folder), local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"{self.name}: the files in {self.folder} could not be loaded ({said})",
                f"delete them and run: {self.card.command}",
            ) from error

    def _predict(self, method, inputs: list, **options) -> np.ndarray:
        """Return `method(inputs)` of sentence-transformers, computed with `threads` threads."""
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            return np.asarray(method(inputs, show_progress_bar=False, **options), np.float32)
        finally:
            torch.set_num_threads(before)
