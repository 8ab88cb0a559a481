import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def mirror():
    """The folder of real response matrices, or a skip."""
    for folder in (os.environ.get("RAGKIT_DATA"), ROOT.parent / "shared" / "data"):
        if folder and (Path(folder) / "irt").is_dir():
            return Path(folder)
    pytest.skip("no data mirror: set RAGKIT_DATA to a folder that has irt/")
