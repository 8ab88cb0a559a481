"""Documents cut into token windows, and window embeddings pooled to chunks or documents.

An encoder reads a few hundred tokens; the paper's chunks have 512 or 8,192. So texts are cut into
windows that any encoder reads whole, each window is embedded once, and a longer part is the mean
direction of its windows. Chunks and documents come from the same embeddings, and no text is lost.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragkit import checks
from ragkit import text as texts
from ragkit.errors import DataError, UsageError
from ragkit.measures.corpus.vectors import matrix, unit

COLUMNS = ["doc_id", "source", "title", "start", "tokens", "text"]


def split(
    documents: pd.DataFrame, *, tokens: int = 128, encoding: str = "cl100k_base"
) -> pd.DataFrame:
    """Cut documents into windows of at most `tokens` tokens of an encoding (`ragkit.text.ENCODINGS`).

    The joined windows of a document are its text: a character of several tokens stays with its
    first token, and a window of only its other tokens is left out. Raises `UsageError` if `tokens`
    is below 1 or the encoding is unknown, `DataError` if a column of a documents frame is missing
    or a document has no text.

    Returns
    -------
    DataFrame with columns doc_id, source, title, start, tokens, text
        In the order of the documents; `start` is the number of tokens before the window.

    References
    ----------
    EnterpriseRAG-Bench, section 3: 512-token segments of cl100k_base.
    """
    checks.whole(tokens, "tokens")
    table, rows, columns = texts.encoding(encoding), [], ["doc_id", "source", "title", "text"]
    for column in columns:
        if column not in documents.columns:
            raise DataError(f"the documents lack the column {column!r}")
    for doc_id, source, title, text in documents[columns].itertuples(index=False):
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
    return pd.DataFrame(rows, columns=COLUMNS)


def pool(
    windows: pd.DataFrame, vectors: np.ndarray, *, tokens: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Join windows to parts of at most `tokens` tokens, and their embeddings to embeddings of parts.

    Parameters
    ----------
    windows : DataFrame
        The result of `split`.
    vectors : array of shape (len(windows), d)
        Their embeddings.
    tokens : int
        Tokens in a part, a multiple of the windows': 512 for the paper's chunks, 8,192 for its
        Table 3.

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
    checks.whole(tokens, "tokens")
    array = matrix(vectors, at_least=1)
    if len(array) != len(windows):
        raise UsageError(f"{len(windows):,} windows, but {len(array):,} vectors")
    if (windows["start"] % tokens + windows["tokens"] > tokens).any():
        raise UsageError(
            f"parts of {tokens} tokens cut through windows of {windows['tokens'].max()}",
            "take a multiple of the windows' tokens",
        )
    groups = windows.groupby(["doc_id", windows["start"] // tokens], sort=False)
    sums = np.zeros((groups.ngroups, array.shape[1]))
    weighted = unit(array, dtype=np.float64) * windows["tokens"].to_numpy()[:, None]
    np.add.at(sums, groups.ngroup().to_numpy(), weighted)
    how = {"source": "first", "title": "first", "start": "first", "tokens": "sum", "text": "".join}
    parts = groups.agg(how).droplevel(1).reset_index()
    return parts, unit(sums, dtype=np.float64).astype(np.float32)
