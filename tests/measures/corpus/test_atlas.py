"""Atlases: maps with clusters and their terms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragkit.errors import UsageError
from ragkit.measures import corpus


@pytest.fixture(scope="module")
def atlas(clustered):
    array = clustered[:60]
    documents = pd.DataFrame(
        {
            "doc_id": [f"d{i}" for i in range(60)],
            "source": ["slack", "a <new> source"] * 30,
            "title": [f"Title </script> {i}" for i in range(60)],
            "text": [f"word{'abc'[i % 3]} topic" for i in range(60)],
        }
    )
    return documents, array, corpus.atlas(documents, array, k=3, sample=40, seed=2)


def test_an_atlas_has_both_maps_and_names(atlas):
    documents, array, table = atlas
    assert len(table) == 80
    flat = corpus.map_tsne(array, seed=2, sample=40)
    own = table[table["method"] == "t-SNE"]
    assert np.array_equal(own[["x", "y"]], flat.coordinates)
    assert set(own["trustworthiness"]) == {flat.trustworthiness}
    labels = corpus.cluster(array, 3, 2).labels
    assert own["cluster"].tolist() == labels[flat.rows].tolist()
    names = corpus.cluster_terms(documents["text"], labels, n=2)
    assert own["terms"].iloc[0] == ", ".join(names[own["cluster"].iloc[0]])
    with pytest.raises(UsageError, match="60 documents, but 59"):
        corpus.atlas(documents, array[:59])
