"""Documents cut into token windows, and window embeddings pooled to chunks or documents.

An encoder reads a few hundred tokens, the paper's chunks have 512 or 8,192. So texts are cut into
windows that any encoder reads whole, each window is embedded once, and a longer part is the
mean direction of its windows: chunks and documents come from the same embeddings, and no text is
silently cut off.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragkit import text as texts
from ragkit.errors import DataError, UsageError
from ragkit.measures.corpus.vectors import integer, matrix, unit

COLUMNS = ("doc_id", "source", "title", "text")


def split(
    documents: pd.DataFrame, *, tokens: int = 128, encoding: str = "cl100k_base"
) -> pd.DataFrame:
    """Cut documents into windows of so many tokens.

    Parameters
    ----------
    documents : DataFrame
        With doc_id, source, title and text.
    tokens : int, default=128
        In a window; the last of a document is shorter.
    encoding : str
        A table of `ragkit.text.ENCODINGS`; the paper's is cl100k_base.

    Returns
    -------
    DataFrame with columns doc_id, source, title, start, tokens, text
        In the order of the documents. `start` is the number of tokens before the window. The
        windows of a document joined are its text: a character that takes several tokens stays with
        its first, and a window of nothing but its others is left out.

    Raises
    ------
    UsageError
        If `tokens` is below 1 or the encoding is unknown.
    DataError
        If a column is missing, or a text is none or empty.

    References
    ----------
    EnterpriseRAG-Bench, section 3: 512-token segments of cl100k_base.
    """
    integer(tokens, "tokens", at_least=1)
    for column in COLUMNS:
        if column not in documents.columns:
            raise DataError(f"the documents lack the column {column!r}")
    table, rows = texts.encoding(encoding), []
    for doc_id, source, title, text in documents[list(COLUMNS)].itertuples(index=False):
        if not isinstance(text, str) or not text:
            raise DataError(f"the document {doc_id!r} has no text")
        codes = table.encode_ordinary(text)
        _, offsets = table.decode_with_offsets(codes)
        starts = range(0, len(codes), tokens)
        borders = [*(offsets[start] for start in starts), len(text)]
        for number, start in enumerate(starts):
            window = text[borders[number] : borders[number + 1]]
            if window:
                size = min(tokens, len(codes) - start)
                rows.append((doc_id, source, title, start, size, window))
    return pd.DataFrame(rows, columns=["doc_id", "source", "title", "start", "tokens", "text"])


def pool(
    windows: pd.DataFrame, vectors: np.ndarray, *, tokens: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Join windows to parts of so many tokens, and their embeddings to the parts' embeddings.

    Parameters
    ----------
    windows : DataFrame
        The result of `split`.
    vectors : array of shape (len(windows), d)
        Their embeddings.
    tokens : int
        In a part: 512 for the paper's chunks, 8,192 for its Table 3. A multiple of the windows'.

    Returns
    -------
    DataFrame, array of shape (m, d), float32
        Parts with the columns of `windows`, and the unit vectors of the sums of their windows'
        unit vectors, weighted by tokens.

    Raises
    ------
    UsageError
        If the numbers of windows and vectors differ, or parts would cut through windows.
    DataError
        If vectors are zero, not finite, or cancel out.
    """
    integer(tokens, "tokens", at_least=1)
    array = matrix(vectors, at_least=1)
    if len(array) != len(windows):
        raise UsageError(f"{len(windows):,} windows, but {len(array):,} vectors")
    if (windows["start"] % tokens + windows["tokens"] > tokens).any():
        raise UsageError(
            f"parts of {tokens} tokens cut through windows of {windows['tokens'].max()}",
            "take a multiple of the windows' tokens",
        )
    keys = [windows["doc_id"], windows["start"] // tokens]
    groups = windows.groupby(keys, sort=False)
    owner = groups.ngroup().to_numpy()
    sums = np.zeros((groups.ngroups, array.shape[1]))
    np.add.at(sums, owner, unit(array, dtype=np.float64) * windows["tokens"].to_numpy()[:, None])
    parts = groups.agg(
        source=("source", "first"),
        title=("title", "first"),
        start=("start", "first"),
        tokens=("tokens", "sum"),
        text=("text", "".join),
    )
    parts = parts.droplevel(1).reset_index()
    return parts, unit(sums, dtype=np.float64).astype(np.float32)
