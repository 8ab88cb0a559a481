"""A sweep on a cluster: joblib's Dask backend, with the workers of a local one."""

from __future__ import annotations

import joblib
import pytest

from ragkit.systems import sweep
from tests.systems.test_sweep import DOCUMENTS, FLAT, PLAIN, QUESTIONS

LOADED = "'ragkit.systems.sweep.running' in __import__('sys').modules"


@pytest.mark.slow
def test_workers_of_dask_compute_what_one_process_does(tmp_path):
    from dask.distributed import Client, LocalCluster

    both = [PLAIN, FLAT]
    alone = sweep.run(both, DOCUMENTS, QUESTIONS, store=tmp_path / "alone")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(host="127.0.0.1", **options) as cluster, Client(cluster) as client:
        assert not any(client.run(eval, LOADED).values())
        with joblib.parallel_config("dask"):
            found = sweep.run(both, DOCUMENTS, QUESTIONS, store=tmp_path / "many", jobs=2)
        assert any(client.run(eval, LOADED).values())  # a worker ran the tasks
    assert found.failures.empty
    assert found.runs.equals(alone.runs)
    # What the workers kept is there for a run without them.
    left = sweep.plan(both, DOCUMENTS, QUESTIONS, store=tmp_path / "many")
    assert left["to_rank"].tolist() == [0, 0]
