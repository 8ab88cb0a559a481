from __future__ import annotations

import multiprocessing
import shutil

import numpy as np
import pandas as pd
import pytest

from ragkit import paths, store
from ragkit.errors import DataError
from ragkit.store import Store

CODE = ("ragkit.errors",)


def test_only_what_is_missing_is_computed(tmp_path):
    asked = []

    def double(items):
        asked.append(list(items))
        return [2 * item for item in items]

    with Store(tmp_path / "s.sqlite") as kept:
        assert kept.map(double, [1, 2, 1], step="double", code=CODE) == [2, 4, 2]
        assert kept.missing([1, 2, 3], step="double", code=CODE) == 1
    with Store(tmp_path / "s.sqlite") as kept:
        assert kept.map(double, [3, 2, 1], step="double", code=CODE) == [6, 4, 2]
        assert kept.map(double, [1], step="double", code=CODE, given={"seed": 1}) == [2]
    assert asked == [[1, 2], [3], [1]]


def test_a_run_that_fails_keeps_the_batches_before(tmp_path):
    def fragile(items):
        if 3 in items:
            raise RuntimeError("stop")
        return items

    kept = Store(tmp_path / "s.sqlite")
    with pytest.raises(RuntimeError):
        kept.map(fragile, [1, 2, 3, 4], step="s", code=CODE, batch=2)
    assert kept.missing([1, 2, 3, 4], step="s", code=CODE) == 2


def test_none_is_tried_again(tmp_path):
    kept = Store(tmp_path / "s.sqlite")
    assert kept.map(lambda items: [None], ["q"], step="s", code=CODE) == [None]
    assert kept.map(lambda items: ["a"], ["q"], step="s", code=CODE) == ["a"]


def test_arrays_and_frames_come_back_as_they_were(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for _ in range(2):
        kept = Store(tmp_path / "s.sqlite")
        got = kept.call(array.copy, step="array", code=CODE, given=1)
        np.testing.assert_array_equal(got, array)
        assert got.dtype == array.dtype
        got[0, 0] = 9  # it is the caller's own
        with pytest.raises(TypeError, match="dtype object cannot be stored"):
            kept.call(lambda: np.array([{}]), step="array", code=CODE, given=2)
        pd.testing.assert_frame_equal(
            kept.call(lambda: frame, step="frame", code=CODE, given=1), frame
        )
        kept.close()


def test_too_few_results_are_refused(tmp_path):
    with pytest.raises(ValueError, match="2 items gave 1"):
        Store(":memory:").map(lambda items: items[:1], [1, 2], step="s", code=CODE)


def test_a_file_that_is_no_store(tmp_path):
    path = tmp_path / "s.sqlite"
    path.write_text("something else entirely, and long enough to be looked at" * 20)
    with pytest.raises(DataError, match="not a store"):
        Store(path)


def _write(path, start):
    with Store(path) as kept:
        kept.map(lambda items: items, list(range(start, start + 50)), step="s", code=CODE, batch=5)


def test_processes_share_a_file(tmp_path):
    path = tmp_path / "s.sqlite"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(path, 25 * n)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert Store(path).missing(list(range(101)), step="s", code=CODE) == 1


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of a few modules in which a test may edit."""
    root = tmp_path / "root"
    (root / "ragkit" / "box" / "prompts").mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "paths.py"):
        shutil.copy(paths.ROOT / "ragkit" / name, root / "ragkit" / name)
    for name, text in {
        "__init__.py": "from ragkit.box import one, other\n",
        "one.py": '"""One."""\nfrom ragkit.box import two\nLATE = "ragkit.box.late"\n',
        "two.py": "X = 1\nif TYPE_CHECKING:\n    from ragkit.box import typed\n",
        "typed.py": "Z = 1\n",
        "late.py": "Y = 1\n",
        "other.py": "Z = 1\n",
        "prompts/ask.md": "Ask.\n",
    }.items():
        (root / "ragkit" / "box" / name).write_text(text)
    monkeypatch.setattr(paths, "ROOT", root)

    def digest():
        for cached in (store.code_digest, store._imported, store._package_data):
            cached.cache_clear()
        return store.code_digest("ragkit.box.one")

    yield root / "ragkit", digest
    for cached in (store.code_digest, store._imported, store._package_data):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("file", "text", "changes"),
    [
        ("box/one.py", '"""Another."""\nfrom ragkit.box import two  # why\nLATE = "ragkit.box.late"\n', False),
        ("box/one.py", '"""One."""\nfrom ragkit.box import two\nLATE = "ragkit.box.late"\nA = 1\n', True),
        ("box/two.py", "X = 2\nif TYPE_CHECKING:\n    from ragkit.box import typed\n", True),
        ("box/late.py", "Y = 2\n", True),
        ("box/prompts/ask.md", "Ask twice.\n", True),
        ("box/other.py", "Z = 2\n", False),
        ("box/__init__.py", "from ragkit.box import one, late\n", True),
        ("box/typed.py", "Z = 2\n", False),
        ("errors.py", "class RagkitError(Exception): pass\n", False),
    ],
)  # fmt: skip
def test_what_a_result_depends_on(copied, file, text, changes):
    package, digest = copied
    before = digest()
    (package / file).write_text(text)
    assert (digest() != before) == changes


def test_library_versions_count(monkeypatch, copied):
    package, digest = copied
    (package / "box" / "two.py").write_text("import numpy\n")
    before = digest()
    monkeypatch.setattr(store.metadata, "version", lambda name: "0.0")
    assert digest() != before


def test_a_digest_is_of_content():
    frame = pd.DataFrame({"a": [1, 2], "b": [("x",), ("y",)]})
    assert store.digest(frame) == store.digest(frame.set_axis([7, 8]))
    assert store.digest(frame) != store.digest(frame.assign(a=[1, 3]))
    assert store.digest(["a", "b"]) != store.digest(["ab"])
    assert store.digest(pd.DataFrame({"a": [pd.NA, pd.Timestamp("2026-01-01"), np.int64(1)]}))
