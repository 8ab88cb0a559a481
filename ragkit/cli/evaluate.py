"""`ragkit evaluate`: judge a system's answers, or two systems against each other."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ragkit.errors import ModelError, UsageError

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(name="evaluate")
@click.option("--questions", required=True, type=_FILE, help="JSON lines with gold and facts.")
@click.option(
    "--answers",
    required=True,
    type=_FILE,
    help="JSON lines with question_id and answer, document_ids, or both.",
)
@click.option("--versus", type=_FILE, help="A second system's answers: compare the two.")
@click.option("--judge", "judge_name", required=True, metavar="J", help="openai:MODEL, or offline.")
@click.option("--out", required=True, type=_FILE, help="The report, as JSON.")
@click.option("--name", help="The system's name. Default: that of the file of answers.")
@click.option("--versus-name", help="The second system's.")
@click.option(
    "--documents",
    type=_FILE,
    help="Texts of documents (the released zip, or JSON lines with doc_id and text): a panel then "
    "tells valid extra documents from invalid ones.",
)
@click.option(
    "--panel", multiple=True, metavar="J", help="A member of the panel. Default: --judge, 3 times."
)
@click.option(
    "--correct-gold/--fixed-gold",
    default=None,
    help="Correct the gold sets by the panel; corrected questions go to NAME.corrected.jsonl. "
    "Default: only in a comparison with --documents.",
)
@click.option(
    "--rules",
    type=click.Choice(["paper", "code"]),
    default="paper",
    show_default=True,
    help="How votes make a document's class: by the paper, or as its released code does.",
)
@click.option("--cutoff", type=click.IntRange(1), help="Look at no more documents per answer.")
@click.option(
    "--repeat",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Verdicts each; more than half decide, so better odd.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--only", multiple=True, metavar="ID", help="Evaluate this question alone.")
@click.option("--again", is_flag=True, help="With --only: get new verdicts for it.")
@click.option("--missing", is_flag=True, help="Evaluate what the report --out still lacks.")
@click.option("--overwrite", is_flag=True, help="Start anew where the report exists.")
@click.option("--skip-bad", is_flag=True, help="Leave out bad lines and list them.")
@click.option("--dry-run", is_flag=True, help="Say verdicts and price; ask nothing.")
@click.option("--ledger", type=_FILE, help="Default: $RAGKIT_LEDGER, else build/llm.sqlite.")
@click.option("--replay", is_flag=True, help="Take verdicts from the ledger alone.")
@click.option("--budget", type=float, metavar="USD", help="Stop before a judge costs more.")
@click.option("--concurrency", type=click.IntRange(1), default=8, show_default=True)
@click.option("--timeout", type=click.FloatRange(0.001), default=120.0, show_default=True)
@click.option("--temperature", type=float)
@click.option("--max-tokens", type=click.IntRange(1))
def command(**given):
    """Judge answers: correctness, completeness, document recall, invalid extra documents.

    The report holds every verdict and the metrics with intervals; `ragkit.judging.read` makes
    frames of it. A run that was stopped goes on when it is started again. Exit status 1 if a
    verdict is missing; the report is written all the same.
    """
    from ragkit.judging import compare, estimate, evaluate

    judges = _Judges(given)
    judge = judges.load(given["judge_name"])
    panel = [judges.load(name) for name in given["panel"]] or None
    shared = {
        "documents": given["documents"],
        "panel": panel,
        "cutoff": given["cutoff"],
        "repeat": given["repeat"],
        "only": given["only"],
        "skip_bad": given["skip_bad"],
    }
    if given["versus"] is None and given["versus_name"]:
        raise UsageError("--versus-name goes with --versus")
    try:
        if given["dry_run"]:
            _show_estimate(
                estimate(
                    given["questions"],
                    given["answers"],
                    judge,
                    versus=given["versus"],
                    systems=(given["name"], given["versus_name"]),
                    correct_gold=bool(given["correct_gold"]),
                    **shared,
                )
            )
            return
        run = {
            **shared,
            "out": given["out"],
            "rules": given["rules"],
            "seed": given["seed"],
            "again": given["again"],
            "retry_missing": given["missing"],
            "overwrite": given["overwrite"],
            "progress": _progress if sys.stderr.isatty() else None,
        }
        if given["versus"]:
            report = compare(
                given["questions"],
                given["answers"],
                given["versus"],
                judge,
                systems=(given["name"], given["versus_name"]),
                correct_gold=given["correct_gold"],
                **run,
            )
            lost = _show_comparison(report)
        else:
            report = evaluate(
                given["questions"],
                given["answers"],
                judge,
                system=given["name"],
                correct_gold=bool(given["correct_gold"]),
                **run,
            )
            lost = _show(report)
    finally:
        judges.close()
    click.echo(f"written to {given['out']}")
    if lost:
        raise ModelError(
            f"{lost:,} verdicts are missing, none of them counted as 0",
            "--missing asks again; ragkit llm ledger --failures says why",
        )


class _Judges:
    """Judges by name, each made once, so that a panel of one judge shares its ledger."""

    def __init__(self, given: dict):
        from ragkit.cli.llm import _path

        limits = {name: given[name] for name in ("temperature", "max_tokens")}
        self.options = {
            "ledger": _path(given["ledger"]),
            "parameters": {name: value for name, value in limits.items() if value is not None},
            "concurrency": given["concurrency"],
            "timeout": given["timeout"],
            "budget": given["budget"],
            "replay": given["replay"] or None,
        }
        self.made: dict = {}

    def load(self, name: str):
        from ragkit.judging import load_judge

        if name not in self.made:
            options = self.options if name.startswith("openai:") else {}
            self.made[name] = load_judge(name, **options)
        return self.made[name]

    def close(self) -> None:
        for judge in self.made.values():
            judge.close()


def _progress(done: int, total: int) -> None:
    click.echo(f"\r{done:,} of {total:,} questions", err=True, nl=done == total)


def _show_estimate(parts: list[dict]) -> None:
    for part in parts:
        click.echo(f"{part['what']}: {part['verdicts']:,} verdicts by {part['judge']}")
        click.echo(f"  {part['estimate'] or 'nothing to pay'}".replace("\n", "\n  "))
    if len(parts) > 1:
        from ragkit.llm import dollars

        asked = [part["estimate"] for part in parts if part["estimate"]]
        ends = [
            [getattr(one, end) if one.calls else 0.0 for one in asked]
            for end in ("cost_low", "cost_high")
        ]
        low, high = (dollars(None if None in costs else sum(costs)) for costs in ends)
        verdicts = sum(part["verdicts"] for part in parts)
        click.echo(f"together: {verdicts:,} verdicts; cost at least {low}, at most {high}")


def _show(report) -> int:
    counts = report.data["counts"]
    _show_counts(report.data["system"], counts)
    _show_metrics(report.data["aggregate"]["overall"])
    for line in report.data["skipped"]:
        click.echo(f"left out: {line['file']}: line {line['line']}: {line['reason']}", err=True)
    return counts["missing_verdicts"]


def _show_comparison(report) -> int:
    lost = 0
    for side, system in zip("ab", report.data["systems"], strict=True):
        counts = report.data["counts"][side]
        _show_counts(system, counts)
        _show_metrics(report.data["aggregate"][side]["overall"])
        lost += counts["missing_verdicts"]
    found = report.data["preferences"]
    click.echo(
        f"preferred: {found['a']:,} a, {found['b']:,} b, {found['tie']:,} ties; "
        f"{found['n']:,} of {found['of']:,} questions judged"
    )
    return lost + found["missing"]


def _show_counts(system: str, counts: dict) -> None:
    line = f"{system}: {counts['evaluated']:,} of {counts['questions']:,} questions evaluated"
    for name in ("unanswered", "without_answer", "without_documents", "corrected"):
        if counts[name]:
            line += f", {counts[name]:,} {name.replace('_', ' ')}"
    click.echo(line)


def _show_metrics(metrics: dict) -> None:
    from tabulate import tabulate

    rows = []
    for metric, entry in metrics.items():
        if entry["of"]:
            interval = "" if entry["low"] is None else f"{entry['low']:.3f} to {entry['high']:.3f}"
            value = "-" if entry["value"] is None else f"{entry['value']:.4f}"
            row = [metric, value, interval, f"{entry['n']:,} of {entry['of']:,}"]
            if "alpha" in entry:
                row += ["-" if entry[k] is None else f"{entry[k]:.3f}" for k in ("spread", "alpha")]
            rows.append(row)
    headers = ["metric", "value", "95 % interval", "judged"]
    if any(len(row) > 4 for row in rows):
        headers += ["spread", "alpha"]
    click.echo(tabulate(rows, headers=headers, disable_numparse=True))
