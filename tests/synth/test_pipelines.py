"""What holds of both pipelines that ask about a folder or a page: price, batches, killed runs."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter

import pytest
from click.testing import CliRunner

from ragkit.cli import root
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.files import read_jsonl
from ragkit.llm import Ledger, count_tokens
from ragkit.llm.prices import request_tokens
from ragkit.synth import datamorgana, helpcentre, sample
from ragkit.synth.stages import AuthorOptions, Model
from tests.conftest import bytes_of
from tests.synth import players
from tests.synth.company_mock import Dying, imported, results, rounds
from tests.synth.players import Player

MODEL = "openai:toy"
MADE = (".json", ".jsonl")


class Pipeline:
    """A pipeline with a folder or a page to ask about, and the model that plays."""

    def __init__(self, name, folder):
        self.asks = name == "questions"
        self.play = players.morgana if self.asks else players.centre
        self.module = datamorgana if self.asks else helpcentre
        self.settings = {"seed": 5, "author": MODEL}
        if name == "a page":
            page = folder / "page.md"
            page.write_text(players.PAGE, "utf-8")
            self.settings |= {"page": page, "articles": 43, "expertwritten": 6, "simulated": 6}
        elif name == "articles":
            self.settings["documents"] = players.kayaks(folder / "own")
        else:
            documents = players.lighthouses(folder / "web")
            self.settings |= {"documents": documents, "questions": 40}

    def price(self, **options):
        return "\n".join(self.module.estimate(**self.settings, **options))

    def make(self, out, **options):
        if self.asks:
            return datamorgana.make_questions(**self.settings, **options).write(out / "q.jsonl")
        return helpcentre.generate_helpcentre(out, **self.settings, **options)

    def run(self, out, *more, **changed):
        out.mkdir(exist_ok=True)
        given = {k: v for k, v in (self.settings | changed).items() if v is not None}
        words = [x for name, value in given.items() for x in (f"--{name}", value)]
        name, target = ("datamorgana", out / "q.jsonl") if self.asks else ("helpcentre", out)
        return CliRunner().invoke(
            root, ["generate", name, "--out", *map(str, (target, *words, *more))]
        )


@pytest.fixture(params=["articles", "a page", "questions"])
def pipeline(request, tmp_path):
    return Pipeline(request.param, tmp_path)


def calls(text):
    return int(re.search(r"([\d,]+) calls", text)[1].replace(",", ""))


def test_the_estimate_is_within_a_fifth_of_the_ledger(pipeline, endpoint, tmp_path):
    foreseen = calls(pipeline.price())
    endpoint(Player(pipeline.play))
    ledger = tmp_path / "ledger.sqlite"
    pipeline.make(tmp_path / "out", author_options=AuthorOptions(ledger))
    with Ledger(ledger, readonly=True) as book:
        assert foreseen == pytest.approx(len(book), rel=0.2)
    # What is in the ledger is not paid for again.
    assert calls(pipeline.price(author_options=AuthorOptions(ledger))) == 0


def test_every_stage_is_told_as_it_begins_and_ends(pipeline, endpoint, tmp_path):
    endpoint(Player(pipeline.play))
    told = []
    pipeline.make(tmp_path / "out", progress=lambda *step: told.append(step))
    begun, ended = told[::2], told[1::2]
    assert [(stage, tasks) for stage, _, tasks in begun] == [(s, n) for s, _, n in ended]
    assert all(done == 0 for _, done, _ in begun)
    assert all(done == tasks for _, done, tasks in ended)
    prompts = (datamorgana.make if pipeline.asks else helpcentre).PROMPTS
    known = json.loads((prompts / "schemas.json").read_text("utf-8")).keys()
    assert {"check" if pipeline.asks else "review"} < {stage for stage, *_ in told} <= known


def test_batches_lead_to_the_same_files_as_a_run(pipeline, endpoint, tmp_path):
    endpoint(Player(pipeline.play))
    done = pipeline.run(tmp_path / "asked", "--yes")
    assert done.exit_code == 0, (done.output, done.exception)
    batch, ledger = tmp_path / "b.jsonl", tmp_path / "l.sqlite"
    more = ("--batch", batch, "--ledger", ledger)
    assert rounds(
        Player(pipeline.play), lambda: pipeline.run(tmp_path / "out", *more), batch, ledger
    )
    assert bytes_of(tmp_path / "out", *MADE) == bytes_of(tmp_path / "asked", *MADE)


def test_half_a_batch_and_a_foreign_one(pipeline, tmp_path):
    batch, ledger = tmp_path / "b.jsonl", tmp_path / "l.sqlite"
    for _ in range(3):
        done = pipeline.run(tmp_path / "out", "--batch", batch, "--ledger", ledger)
        assert "requests written to" in done.output, (done.output, done.exception)
        lines = read_jsonl(batch)
        assert lines
        half = results(Player(pipeline.play), lines[::2])
        imported(ledger, half)
    with pytest.raises(DataError, match="'foreign'"):
        imported(ledger, [half[0] | {"custom_id": "foreign"}, *half[1:]])


def test_a_killed_run_goes_on_and_pays_for_nothing_twice(pipeline, endpoint, tmp_path):
    options = {"author_options": AuthorOptions(tmp_path / "ledger.sqlite", concurrency=1)}
    asked = Counter()

    def play(prompt):
        asked[prompt] += 1
        return pipeline.play(prompt)

    server = endpoint(Dying(Player(play), 15))
    with pytest.raises(ModelError, match="no such key"):
        pipeline.make(tmp_path / "out", **options)
    server = endpoint(Player(play))
    pipeline.make(tmp_path / "out", **options)
    assert asked.total() == len(asked) == sum(server.asked.values()) + 15
    endpoint(Player(pipeline.play))
    pipeline.make(tmp_path / "whole")
    assert bytes_of(tmp_path / "out", *MADE) == bytes_of(tmp_path / "whole", *MADE)


def test_a_budget_stops_it_before_it_is_spent(pipeline, endpoint, tmp_path, monkeypatch):
    prices = tmp_path / "prices.toml"
    prices.write_text(
        'date = 2026-01-01\ncurrency = "USD"\n[models]\ntoy = {input = 1, output = 1}'
    )
    monkeypatch.setenv("RAGKIT_PRICES", str(prices))
    server = endpoint(Player(pipeline.play))
    options = AuthorOptions(tmp_path / "ledger.sqlite", budget=1e-9)
    with pytest.raises(ModelError, match="raise the budget|budget"):
        pipeline.make(tmp_path / "out", author_options=options)
    assert not server.asked


@pytest.mark.parametrize(
    ("author", "says"),
    [
        (None, "no author is named: a model has to write"),
        ("offline", "no author is called 'offline'"),
    ],
)
def test_a_model_has_to_be_named(pipeline, tmp_path, author, says):
    done = pipeline.run(tmp_path / "out", "--yes", author=author)
    assert isinstance(done.exception, UsageError)
    assert says in str(done.exception)
    assert "--author openai:MODEL" in done.exception.hint
    assert not list((tmp_path / "out").iterdir())


def test_a_dry_run_asks_and_writes_nothing(pipeline, tmp_path):
    done = pipeline.run(tmp_path / "out", "--dry-run")
    assert done.exit_code == 0, (done.output, done.exception)
    assert calls(done.output) > 0
    assert "price unknown: no 'toy'" in done.output
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["make_questions", "generate_helpcentre"])
def test_the_sample_would_have_been_estimated_within_a_fifth(name, tmp_path, monkeypatch):
    """Calls and tokens of an estimate beside those of the ledger that careful authors filled."""
    module = {"make_questions": datamorgana, "generate_helpcentre": helpcentre}[name]
    make, real, foreseen = getattr(sample, name), Counter(), []

    class Spied(Model):
        def answer(self, stage, tasks, check=None, **options):
            found = super().answer(stage, tasks, check, **options)
            for task, data in zip(tasks, found, strict=True):
                real["calls"] += 1
                real["in"] += request_tokens(self.request(stage, task).plain(self.name))[0]
                real["out"] += count_tokens(json.dumps(data)) if isinstance(data, dict) else 0
            return found

    def made(*inputs, **asked):
        given = asked | {"author_options": AuthorOptions(tmp_path / "empty.sqlite")}
        given.pop("progress")
        said = module.estimate(*(inputs if module is datamorgana else ()), **given)[-1]
        numbers = re.search(r"([\d,]+) calls, ([\d,]+) tokens in and ([\d,]+) out", said).groups()
        foreseen.extend(int(number.replace(",", "")) for number in numbers)
        monkeypatch.setattr(sys.modules[make.__module__], "Model", Spied)
        return make(*inputs, **asked)

    monkeypatch.setattr(sample, name, made)
    sample.write_sample(tmp_path / "out")
    assert foreseen == pytest.approx([real["calls"], real["in"], real["out"]], rel=0.2)
