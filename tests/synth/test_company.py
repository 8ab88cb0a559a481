"""A company from a page: every stage by a loopback model, its files, its faults, its batches."""

from __future__ import annotations

import json

from click.testing import CliRunner

from ragkit.cli import root
from tests.conftest import bytes_of
from tests.synth.company_mock import SIZE, Mock, rounds
from tests.synth.conftest import rows


def command_line(*arguments):
    return CliRunner().invoke(root, ["generate", "company", *map(str, arguments)])


def options_of(page, **more):
    given = SIZE | more
    return [x for name, v in given.items() for x in (f"--{name.replace('_', '-')}", v)] + [
        "--page",
        page,
    ]


def test_batches_lead_to_the_same_bytes_as_a_run(page, endpoint, tmp_path):
    endpoint(Mock())
    done = command_line("--out", tmp_path / "asked", *options_of(page), "--yes")
    assert done.exit_code == 0, (done.output, done.exception)
    out, batch, ledger = (tmp_path / name for name in ("out", "b.jsonl", "l.sqlite"))
    given = ("--out", out, *options_of(page), "--batch", batch, "--ledger", ledger)
    mock, made = Mock(), (".json", ".jsonl", ".md")
    assert rounds(mock, lambda: command_line(*given), batch, ledger)
    twice = {item for item, count in mock.asked.items() if count > 1}
    assert twice == {"question project_related-01"}, twice  # it has read more
    assert bytes_of(out, *made) == bytes_of(tmp_path / "asked", *made)
    found = json.loads((out / "statistics.json").read_text())
    assert found["kinds"] == {"project": 24, "cluster": 8, "volume": 22, "misc": 3} | {
        "near-duplicate": found["documents"] - 57
    }
    documents = rows(out / "enterpriserag_bench" / "documents.jsonl")
    assert len({row["path"] for row in documents}) == len(documents) == found["documents"]
    # Killed and begun again, everything is in files: nothing is asked.
    before = sum(mock.asked.values())
    assert rounds(mock, lambda: command_line(*given), batch, ledger) == 0
    assert sum(mock.asked.values()) == before
