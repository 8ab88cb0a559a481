import numpy as np
import pytest


@pytest.fixture(scope="session")
def clustered():
    """300 vectors in 24 dimensions about six centres of unequal weight."""
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(6, 24))
    labels = rng.choice(6, 300, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
    return (centres[labels] + 0.6 * rng.normal(size=(300, 24))).astype(np.float32)
