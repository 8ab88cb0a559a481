"""Numbers, lists, answers and names that must not move while the package is moved around.

What moves on purpose is listed with its reason: rows of the scoreboard in tests/goldens/moved.csv,
other values in moved_numbers.csv (golden,key,reason; a * in the key stands for anything). An
exemption beats a new golden: it says what moved and why. To write goldens anew, all or some
(`ledger`, `names`, a key of `NUMBERS`): OMP_NUM_THREADS=1 python -m tests.test_goldens [NAME ...]
"""

import ast
import csv
import hashlib
import json
import os
import pkgutil
import re
import socket
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragkit import datasets, irt, judging, models
from ragkit.cli import main
from ragkit.datasets import reported
from ragkit.judging.attacks import perturb
from ragkit.judging.verdicts import judged_answers
from ragkit.measures import corpus, diversity, metrics
from ragkit.systems.retrieval import BM25
from tests.conftest import ROOT, mirror_folder
from tests.llm.server import chat, serve

GOLDENS, SCOREBOARD = ROOT / "tests" / "goldens", ROOT / "data" / "results" / "scoreboard.csv"
COMPLETE = ("complete", GOLDENS / "ledger-requests.jsonl", "-m", "openai:toy")
OPTIONS = {"nuts": {"draws": 6, "warmup": 10}, "py-irt": {"epochs": 60}}


def digest(value):
    return hashlib.sha256(str(value).encode()).hexdigest()


def load(name, data):
    return datasets.load(name, profile="paper" if data else "sample", data=data)


def answers(data):
    own, given = load("wixqa_answers", data), load("erb_answers", data).answers
    given = given[given["system"].str.contains("answers-official|results_v6/baseline_bm25")]
    options = {"metrics": [*metrics.METRICS, *metrics.CORPUS_METRICS], "n_resamples": 9}
    pairs = [(own.answers, own.questions), (given, load("enterpriserag_bench", data).questions)]
    tables = [metrics.summarise_answers(*pair, **options) for pair in pairs]
    return {f"{r.system} {r.metric}": r.value for table in tables for r in table.itertuples()}


def public_runs(data):
    path = data / "wixqa" / "retriever_cases_agent_release_gates.jsonl"
    runs = pd.read_json(path, lines=True)[["system_id", "case_id", "retrieved_citation_ids"]]
    runs = runs.set_axis(["system", "question_id", "doc_id"], axis=1).explode("doc_id").dropna()
    runs["question_id"] = runs["question_id"].str.replace("WIXQA-EXPERT", "expertwritten")
    runs["rank"] = runs.groupby(["system", "question_id"]).cumcount() + 1
    return measures(runs.assign(score=1.0 / runs["rank"]), load("wixqa", data).questions)


def measures(runs, questions):
    names = [*metrics.RETRIEVAL_MEASURES, "AP"]
    table = metrics.summarise_retrieval(runs, questions, measures=names, n_resamples=9)
    return {f"{row.system} {row.metric}": row.value for row in table.itertuples()}


def ranked(name, most, data):
    bench, found = load(name, data), {}
    asked = bench.questions if data else titled(bench.documents)
    questions = asked.iloc[:: len(asked) // most][:most]
    for mode in ("lucene", "flashrag"):
        runs = BM25(mode=mode).fit(bench.documents).search(questions, k=10)
        for question, part in runs.groupby("question_id", sort=False):
            found[f"{mode} {question}"] = " ".join(digest(doc)[:6] for doc in part["doc_id"])
            found[f"{mode} {question} scores"] = part["score"].astype(float).round(6).tolist()
        found |= measures(runs, questions)
    return found


def fitted(engine, data):
    scores = load("lsat6", data).scores if data else irt.simulate(20, 60, seed=3).scores
    options = {"likelihood": "bernoulli" if data else "cb", **OPTIONS.get(engine, {})}
    result = irt.fit(scores, engine=engine, seed=1, **options)
    people = result.subjects.iloc[:: len(result.subjects) // 20]
    found = {name: result.items[name].tolist() for name in ("diff", "disc", "se_diff", "se_disc")}
    return found | {name: people[name].tolist() for name in ("theta", "se_theta")}


def public_verdicts(data):
    found = {}
    for key, part in judged_answers(data=data).groupby(["judge", "system"]):
        found[" ".join(key)] = [len(part), part["correct"].mean(), part["completeness"].mean()]
    questions = judging.read_questions(data / "enterpriserag_bench" / "questions.jsonl")[0]
    given = load("erb_answers", data).answers
    given = given[given["system"].str.endswith("answers-official")]
    return found | offline(questions, given, "answers-official")


def offline(questions, said, name):
    """The harness with the judge that needs no model: its means, and every verdict."""
    report = judging.evaluate(questions, said, judging.load_judge("offline"))
    means = report.summary.query("group == 'overall'").dropna(subset="value")
    found = {f"{name}: {row.metric}": [row.n, row.value] for row in means.itertuples()}
    verdicts = report.questions.set_index("question_id")["correctness"].astype(float)
    return found | {f"{name}: verdicts": digest(sorted(verdicts.to_dict().items()))}


def titled(documents):
    """Questions that do not change when a label of the sample is mended: documents by their titles."""
    first = documents["text"].map(lambda text: " ".join(text.split()[:40]))
    made = documents.assign(question_id=documents["doc_id"], text=documents["title"], type="title")
    facts = [(line,) for line in first]
    return made.assign(answer=first, facts=facts, gold_doc_ids=[(d,) for d in made["doc_id"]])


def sample_verdicts(data):
    questions, found = titled(load("enterpriserag_bench", data).documents).head(100), {}
    for change, part in perturb(questions).groupby("change"):
        asked = questions[questions["question_id"].isin(part["question_id"])]
        found |= offline(asked, part.assign(system=change, doc_ids=[()] * len(part)), change)
    return found


def table_4(data):
    texts = load("liverag", data).questions["text"].tolist()
    return diversity.profile(texts, models.embed(texts))


def geometry(data):
    rng, labels = np.random.default_rng(0), np.arange(160) % 4
    vectors = rng.normal(size=(4, 16))[labels] + 0.6 * rng.normal(size=(160, 16))
    ids, similarity = corpus.neighbours(vectors, k=5)
    return {
        "silhouette": corpus.silhouette(vectors, labels),
        "trustworthiness": corpus.trustworthiness(vectors, vectors[:, :2]),
        "neighbours": digest(ids.tolist()),
        "similarities": similarity.mean(axis=0).tolist(),
    }


# name -> what is measured, relative and absolute tolerance, whether it needs the mirror
NUMBERS = {
    "answers": (answers, 1e-12, True),
    "public-runs": (public_runs, 1e-12, True),
    "bm25-wixqa": (partial(ranked, "wixqa", 160), 2e-6, True),
    "bm25-company": (partial(ranked, "enterpriserag_bench", 60), 2e-6, False),
    "bm25-helpcentre": (partial(ranked, "wixqa", 60), 2e-6, False),
    "public-verdicts": (public_verdicts, 1e-9, True),
    "sample-verdicts": (sample_verdicts, 1e-9, False),
    "table-4": (table_4, 1e-5, True),
    "geometry": (geometry, 1e-6, False),
}
for engine, tolerance in {"em": 1e-6, "nuts": 1e-4, "py-irt": 1e-4}.items():
    NUMBERS[f"irt-{engine}-simulated"] = (partial(fitted, engine), tolerance, False)
    if engine != "nuts":
        NUMBERS[f"irt-{engine}-lsat6"] = (partial(fitted, engine), tolerance, True)


def keyed(name, *columns):
    with open(GOLDENS / name, encoding="utf-8", newline="") as stream:
        found = {tuple(row[column] for column in columns): row for row in csv.DictReader(stream)}
    assert all(row.get("reason", "none needed").strip() for row in found.values()), name
    return found


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name, request):
    measure, tolerance, mirrored = NUMBERS[name]
    found = measure(request.getfixturevalue("mirror") if mirrored else None)
    listed = [key for golden, key in keyed("moved_numbers.csv", "golden", "key") if golden == name]
    moved = re.compile("|".join(re.escape(key).replace(r"\*", ".*") for key in listed))
    for key, value in json.loads((GOLDENS / f"{name}.json").read_text("utf-8")).items():
        if not moved.fullmatch(key):
            want = value if isinstance(value, str) else pytest.approx(value, tolerance, tolerance)
            assert found.get(key) == want, f"{name}: {key}"


def test_scoreboard():
    tables = (SCOREBOARD, "moved.csv", "scoreboard.csv")
    now, listed, golden = (keyed(t, *reported.KEY) for t in tables)
    printed = {}
    for paper in reported.PAPERS:
        printed |= keyed(ROOT / "data" / "reported" / f"{paper}.csv", *reported.KEY)
    for key, old in golden.items():
        assert key in now, f"{key} is gone"
        new, number = (float(row["measured"] or "nan") for row in (now[key], old))
        same = now[key]["printed"] == old["printed"]
        declared = printed[key]["status"] if old["status"].startswith("not ") else ""
        same = same and now[key]["status"] in (old["status"], declared)
        same = same and new == pytest.approx(number, rel=1e-6, nan_ok=True)
        assert same or key in listed, f"{key} moved: list it in moved.csv with the reason"


def llm(*arguments):
    with pytest.raises(SystemExit) as stopped:
        main(["llm", *map(str, arguments)])
    return stopped.value.code or 0


def test_a_shipped_ledger_replays_without_network(tmp_path, monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("went to the network"))
    monkeypatch.setenv("RAGKIT_REPLAY", "1")
    shipped, ledger = GOLDENS / "ledger.jsonl", tmp_path / "ledger.sqlite"
    again, out = tmp_path / "again.jsonl", tmp_path / "out.jsonl"
    assert llm("import", shipped, "--ledger", ledger) == 0
    assert llm("export", again, "--ledger", ledger) == 0
    assert again.read_bytes() == shipped.read_bytes()
    for source in (ledger, shipped):
        assert llm(*COMPLETE, "-o", out, "--ledger", source) == 1  # one request was filtered
        assert out.read_bytes() == (GOLDENS / "ledger-answers.jsonl").read_bytes()


def used_names():
    """The names of ragkit that notebooks and README import, or reach through a module."""
    readme = (ROOT / "README.md").read_text("utf-8")
    texts = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        texts.append("\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code"))
    found = set(re.findall(r"`(ragkit(?:\.\w+)+)", readme))
    for nodes in (list(ast.walk(ast.parse(text))) for text in texts):
        imports = (n for n in nodes if isinstance(n, ast.ImportFrom))
        bound = {a.asname or a.name: f"{n.module}.{a.name}" for n in imports for a in n.names}
        uses = [ast.unparse(n).partition(".") for n in nodes if isinstance(n, ast.Attribute)]
        reached = {f"{bound[name]}.{rest}" for name, _, rest in uses if name in bound}
        found |= reached | set(bound.values())
    return {name for name in found if re.fullmatch(r"ragkit[.\w]+", name) and resolves(name)}


def resolves(name):
    try:
        return pkgutil.resolve_name(name) is not None
    except (ModuleNotFoundError, AttributeError):
        return False


def test_a_name_resolves_or_the_changelog_says_where_it_went():
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    moves = re.findall(r"- `(ragkit[\w.]+)` is now `(ragkit[\w.]+)`", changes)
    lost = []
    for name in json.loads((GOLDENS / "names.json").read_text("utf-8")):
        paths = {name}  # every name that it has had
        for _ in range(4):
            paths |= {
                new + path.removeprefix(old)
                for old, new in moves
                for path in paths
                if f"{path}.".startswith(f"{old}.")
            }
        if not any(resolves(path) or f"`{path}`" in changes for path in paths):
            lost.append(name)
    assert not lost, f"not found, and not in CHANGELOG.md: {lost}"


def write(*names):
    """Write goldens anew; the list of names only grows: what is gone is for the changelog."""
    names, cache, made = names or [*NUMBERS, "ledger", "names"], tempfile.mkdtemp(), {}
    os.environ["RAGKIT_CACHE"] = cache
    for name in NUMBERS.keys() & names:
        made[name] = NUMBERS[name][0](mirror_folder() if NUMBERS[name][2] else None)
    if "names" in names:
        made["names"] = sorted(used_names() | set(json.loads((GOLDENS / "names.json").read_text())))
    for name, value in made.items():
        (GOLDENS / f"{name}.json").write_text(json.dumps(value, indent=0) + "\n", "utf-8")
    if "ledger" in names:
        replies = json.loads((GOLDENS / "ledger-replies.json").read_text("utf-8"))

        def reply(body, *_):
            said = sum(message["role"] == "assistant" for message in body["messages"])
            return chat(**replies[body["messages"][0]["content"]][said])

        ledger = ("--ledger", Path(cache) / "ledger.sqlite")
        with serve(reply) as server:
            os.environ["OPENAI_BASE_URL"] = server.url
            llm(*COMPLETE, "-o", GOLDENS / "ledger-answers.jsonl", *ledger)
        llm("export", GOLDENS / "ledger.jsonl", *ledger)


if __name__ == "__main__":
    write(*sys.argv[1:])
