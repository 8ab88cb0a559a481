"""What encoders and rerankers share: tokenizer, onnxruntime session, threads, kept outputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache as remember
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragkit import checks, display
from ragkit.errors import ModelError
from ragkit.models.registry import Card, card, need, verified
from ragkit.store import Store

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAX_CHARACTERS = 1 << 17  # of a text that a model reads
BATCH = 64  # outputs computed, and then stored, together
CHUNK = 1024  # outputs read from the store together
Cache = bool | str | os.PathLike  # where outputs are kept; see `Encoder.encode`


class Model:
    """A model whose files are present; they are verified and loaded on first use."""

    kind: str  # of its card
    library: tuple[str, str]  # the class of sentence-transformers, and its method

    def __init__(self, card: Card, folder: Path, threads: int):
        self.card, self.folder, self.threads = card, folder, threads
        self.name, self.max_tokens = card.name, card.max_tokens

    def __reduce__(self):
        return type(self), (self.card, self.folder, self.threads)  # without what is loaded

    def __repr__(self) -> str:
        return f"<{self.card.kind} {self.name}>"

    @property
    def dimension(self) -> int:
        """Length of an output."""
        return self.card.dimension

    @cached_property
    def identity(self) -> str:
        """Digest of the weights and of the settings that decide outputs, in hexadecimal."""
        return verified(self.card, self.folder)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the start and end of each token in a text, without special tokens."""
        return self._tokenizer.encode(text, add_special_tokens=False).offsets

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
        file = self.folder / self.card.tokenizer
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

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.add_session_config_entry("session.x64quantprecision", str(int(overflows())))
        return onnxruntime.InferenceSession(
            self.folder / "model.onnx", options, providers=["CPUExecutionProvider"]
        )

    def _run(self, *texts: str) -> np.ndarray:
        """Return the session's first output for one text or pair.

        Quantized layers scale by the largest activation of a batch: one input is a batch.
        """
        tokens = self._truncating.encode(*texts)
        columns = {"input_ids": "ids", "attention_mask": "attention_mask"}
        columns |= {"token_type_ids": "type_ids"}
        feed = {name: np.array([getattr(tokens, of)]) for name, of in columns.items()}
        return self._session.run(None, feed)[0][0]

    @cached_property
    def _model(self):
        """The model as sentence-transformers loads it from the folder."""
        import sentence_transformers
        from transformers.utils import logging

        _ = self.identity
        logging.disable_progress_bar()
        loader = getattr(sentence_transformers, self.library[0])
        try:
            model = loader(str(self.folder), local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"{self.name}: the files in {self.folder} could not be loaded ({said})",
                f"delete them and run: {self.card.command}",
            ) from error
        model.max_seq_length = self.max_tokens
        return model

    def _predict(self, inputs: list, **options) -> np.ndarray:
        """Return what sentence-transformers computes of inputs, with `threads` threads."""
        import torch

        method, before = getattr(self._model, self.library[1]), torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            return np.asarray(method(inputs, show_progress_bar=False, **options), np.float32)
        finally:
            torch.set_num_threads(before)

    def _kept(
        self, compute: Callable[[list], np.ndarray], items: Sequence, cache: Cache
    ) -> np.ndarray:
        """Return `compute(items)`, a row for each item, from the store that `cache` names.

        Longer texts or pairs are computed first, which makes batches of similar length.
        """
        path = None if cache is True else ":memory:"
        if not isinstance(cache, bool):
            path = Path(cache, "store.sqlite")
        options = {"step": self.card.kind, "given": self.identity, "batch": BATCH}
        rows = np.empty((len(items), self.dimension), dtype=np.float32)
        bars = display.Bar(self.name, len(items), "text")
        with bars as bar, Store(path) as store:
            for start in range(0, len(items), CHUNK):
                part = range(start, min(start + CHUNK, len(items)))
                order = sorted(part, key=lambda n: -len("".join(items[n])))
                own = [items[n] for n in order]
                rows[order] = store.map(compute, own, code=(type(self).__module__,), **options)
                bar.update(len(part))
        return rows


def overflows() -> bool:
    """Return whether sums of int8 products may overflow here, which puts scores .3 off.

    They do on x86 processors without VNNI. The exact sums cost two thirds more time with it.
    """
    try:
        return "vnni" not in Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:  # another system than Linux
        return True


def opened(kind: type[Model], name: str, threads: int) -> Model:
    """Return the model of a name, the same object for the same number of threads."""
    entry = card(name, kind.kind)
    return _opened(kind, entry, need(entry), checks.whole(threads, "threads"))


@remember
def _opened(kind: type[Model], *arguments) -> Model:
    return kind(*arguments)
