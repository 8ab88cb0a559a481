"""BM25 on nested samples up to 512,000 generated documents: the time and memory of one process.

The company is made first if it is not in the cache folder; that time is part of the whole.
"""

from __future__ import annotations

import resource
from functools import partial
from time import perf_counter, process_time

from ragkit import synth
from ragkit.files import read_frame
from ragkit.systems import sweep
from tests.bench import least, most

SIZES = [5_000, 16_000, 50_000, 160_000, 512_000]
MINUTES, GIGABYTES, JOBS = 20, 4, 2


def run():
    start, clock = perf_counter(), process_time()
    company = synth.cached_company(SIZES[-1], questions=500, jobs=JOBS)
    made = perf_counter() - start
    result = sweep.scaling(
        partial(synth.stream, company),
        read_frame(company / "enterpriserag_bench" / "questions.jsonl", "questions"),
        SIZES,
        {"BM25": "bm25"},
        fields=("title", "content"),
    )
    whole, clock = perf_counter() - start, process_time() - clock
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    others = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
    yield most("generation or a look at the cache, seconds", made, 60 * MINUTES)
    yield most("five sizes, seconds", whole - made, 60 * MINUTES)
    yield most("both, minutes", whole / 60, MINUTES, "min")
    yield most("processor time of this process", clock, 1200)
    # The largest of the generator's processes, times their number, bounds what they held together.
    yield most("resident memory at its highest, GB", max(own, JOBS * others), GIGABYTES, "GB")
    recall = result.summary(n_resamples=200)["mean"]
    steps = float((recall.diff().dropna() < 0).sum())
    yield least("steps at which recall@10 falls", steps, 4, name="of four")
