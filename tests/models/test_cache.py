"""The cache of vectors: laws, two processes, a kill, damage, another model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.models import cache
from ragkit.models.cache import VectorCache, key, through

ONE, OTHER = "1" * 64, "2" * 64
ROOT = Path(__file__).resolve().parents[2]


def vectors(*numbers, dimension=3):
    return np.array([[number] * dimension for number in numbers], dtype=np.float32)


def keys(*numbers):
    return [key(str(number)) for number in numbers]


def test_what_was_put_is_got_by_another_instance(tmp_path):
    VectorCache(tmp_path, ONE, 3).put(keys(1, 2), vectors(1, 2))
    again = VectorCache(tmp_path, ONE, 3)
    found, known = again.get(keys(2, 9, 1))
    assert known.tolist() == [True, False, True]
    assert found[known].tolist() == [[2] * 3, [1] * 3]
    assert len(again) == 2


def test_keys_do_not_run_together():
    assert key("ab", "c") != key("a", "bc")
    assert key("a") != key("a", "")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=12), st.randoms())
def test_any_order_of_writers_and_readers_agrees_with_a_dict(tmp_path_factory, calls, random):
    folder = tmp_path_factory.mktemp("cache")
    stores, kept = [VectorCache(folder, ONE, 2) for _ in range(3)], set()
    for numbers in calls:
        numbers = list(dict.fromkeys(numbers))
        if numbers:
            random.choice(stores).put(keys(*numbers), vectors(*numbers, dimension=2))
            kept |= set(numbers)
        found, known = random.choice(stores).get(keys(*range(31)))
        assert set(np.flatnonzero(known).tolist()) == kept
        assert (found[known] == np.array(sorted(kept))[:, None]).all()


def test_two_instances_append_to_shards_of_their_own(tmp_path):
    first, second = VectorCache(tmp_path, ONE, 3), VectorCache(tmp_path, ONE, 3)
    first.put(keys(1), vectors(1))
    second.put(keys(2), vectors(2))
    assert len(list(tmp_path.glob("*.vectors"))) == 2
    assert first.get(keys(1, 2))[1].all()


def test_a_shard_that_nobody_holds_is_used_again(tmp_path):
    for number in range(3):
        code = f"""
            from ragkit.models.cache import VectorCache, key
            import numpy as np
            VectorCache({str(tmp_path)!r}, "1" * 64, 3).put([key("{number}")], np.ones((1, 3)))
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, cwd=ROOT)
    assert [path.name for path in tmp_path.glob("*.vectors")] == ["000.vectors"]
    assert len(VectorCache(tmp_path, ONE, 3)) == 3


@pytest.mark.parametrize("cut", [1, 5, 20, 59])
def test_a_file_cut_short_loses_only_its_last_block(tmp_path, cut):
    store = VectorCache(tmp_path, ONE, 3)
    store.put(keys(1, 2), vectors(1, 2))
    store.put(keys(3), vectors(3))
    os.close(store._writer)
    file = tmp_path / "000.vectors"
    os.truncate(file, file.stat().st_size - cut)
    again = VectorCache(tmp_path, ONE, 3)
    assert again.get(keys(1, 2, 3))[1].tolist() == [True, True, False]
    with pytest.warns(RuntimeWarning, match="000.vectors ends .* bytes after its last whole block"):
        again.put(keys(3), vectors(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, known = VectorCache(tmp_path, ONE, 3).get(keys(1, 2, 3))
    assert known.all()
    assert found[:, 0].tolist() == [1, 2, 3]


def test_a_header_cut_short_is_begun_anew(tmp_path):
    store = VectorCache(tmp_path, ONE, 3)
    store.put(keys(1), vectors(1))
    os.close(store._writer)
    os.truncate(tmp_path / "000.vectors", 10)
    again = VectorCache(tmp_path, ONE, 3)
    assert not again.get(keys(1))[1].any()
    again.put(keys(1), vectors(1))
    assert VectorCache(tmp_path, ONE, 3).get(keys(1))[1].all()


def test_flipped_bits_are_noticed_and_computed_anew(tmp_path):
    store = VectorCache(tmp_path, ONE, 3)
    store.put(keys(1), vectors(1))
    store.put(keys(2), vectors(2))
    file = tmp_path / "000.vectors"
    raw = bytearray(file.read_bytes())
    raw[cache.HEADER.size + cache.BLOCK.size + cache.KEY + 1] ^= 255
    file.write_bytes(raw)
    again = VectorCache(tmp_path, ONE, 3)
    with pytest.warns(RuntimeWarning, match="is damaged after byte 56"):
        assert again.get(keys(1, 2))[1].tolist() == [False, True]
    again.put(keys(1), vectors(1))
    with pytest.warns(RuntimeWarning, match="damaged"):
        found, known = VectorCache(tmp_path, ONE, 3).get(keys(1, 2))
    assert known.all()
    assert found[:, 0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("identity", "dimension"), [(OTHER, 3), (ONE, 4)], ids=["model", "dimension"]
)
def test_a_file_of_another_model_is_left_alone(tmp_path, identity, dimension):
    store = VectorCache(tmp_path, identity, dimension)
    store.put(keys(1), vectors(1, dimension=dimension))
    os.close(store._writer)
    before = (tmp_path / "000.vectors").read_bytes()
    mine = VectorCache(tmp_path, ONE, 3)
    with pytest.warns(RuntimeWarning, match="000.vectors is not of this model"):
        assert not mine.get(keys(1))[1].any()
    mine.put(keys(1), vectors(7))
    assert (tmp_path / "000.vectors").read_bytes() == before
    assert mine.get(keys(1))[0][0, 0] == 7


def test_a_full_disk_keeps_what_was_there(tmp_path, monkeypatch):
    store = VectorCache(tmp_path, ONE, 3)
    store.put(keys(1), vectors(1))
    real = os.write

    def full(handle, data):
        if len(data) <= 20:
            raise OSError(28, "No space left on device")
        return real(handle, data[:20])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space") as caught:
        store.put(keys(2), vectors(2))
    assert caught.value.filename == str(tmp_path / "000.vectors")
    monkeypatch.undo()
    store.put(keys(3), vectors(3))
    assert VectorCache(tmp_path, ONE, 3).get(keys(1, 2, 3))[1].tolist() == [True, False, True]


def test_through_computes_each_text_once_and_longest_first(tmp_path):
    asked = []

    def compute(places):
        asked.append(places)
        return vectors(*places)

    store = VectorCache(tmp_path, ONE, 3)
    names = keys("a", "bb", "a", "ccc")
    options = {"dimension": 3, "sizes": [1, 2, 1, 3], "batch": 2}
    first = through(store, names, compute, **options)
    assert asked == [[3, 1], [0]]
    assert first[:, 0].tolist() == [0, 1, 0, 3]
    assert (through(store, names, compute, **options) == first).all()
    assert len(asked) == 2
    assert through(None, [], compute, dimension=3, sizes=[], batch=2).shape == (0, 3)


WORKER = """
    import sys, time
    import numpy as np
    from ragkit.models.cache import VectorCache, key, through

    def compute(places):
        time.sleep(0.005)
        print(len(places), flush=True)
        return np.array([[n, n] for n in places], dtype=np.float32)

    store = VectorCache(sys.argv[1], "1" * 64, 2)
    names = [key(str(n)) for n in range(1000)]
    through(store, names, compute, dimension=2, sizes=list(range(1000, 0, -1)), batch=10)
"""


def worker(folder):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WORKER), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def test_a_killed_run_loses_at_most_its_last_batch(tmp_path):
    process = worker(tmp_path)
    computed = sum(int(process.stdout.readline()) for _ in range(20))
    process.send_signal(signal.SIGKILL)
    computed += sum(map(int, process.stdout.read().split()))
    process.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a block may be cut
        kept = len(VectorCache(tmp_path, ONE, 2))
    assert 0 < computed - 10 <= kept <= computed < 1000
    rest = worker(tmp_path)
    assert sum(map(int, rest.stdout.read().split())) == 1000 - kept
    assert rest.wait() == 0


def test_two_processes_share_a_cache_at_once(tmp_path):
    both = [worker(tmp_path), worker(tmp_path)]
    for process in both:
        process.stdout.read()
        assert process.wait() == 0
    found, known = VectorCache(tmp_path, ONE, 2).get(keys(*range(1000)))
    assert known.all()
    assert (found[:, 0] == np.arange(1000)).all()


def test_a_forked_child_writes_a_shard_of_its_own(tmp_path):
    store = VectorCache(tmp_path, ONE, 3)
    store.put(keys(1), vectors(1))
    child = os.fork()
    if child == 0:
        store.put(keys(2), vectors(2))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    store.put(keys(3), vectors(3))
    assert store.get(keys(1, 2, 3))[1].all()
    assert len(list(tmp_path.glob("*.vectors"))) == 2


def test_many_small_blocks_take_little_more_than_their_vectors(tmp_path):
    store = VectorCache(tmp_path, ONE, 384)
    matrix = np.random.default_rng(0).standard_normal((20_000, 384), dtype=np.float32)
    names = keys(*range(20_000))
    for start in range(0, 20_000, 64):
        store.put(names[start : start + 64], matrix[start : start + 64])
    found, known = VectorCache(tmp_path, ONE, 384).get(names)
    assert known.all()
    assert (found == matrix).all()
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert size < 20_000 * (384 * 4 + 40)
