"""`ragkit evaluate`: judge a system's answers, or two systems against each other."""

from __future__ import annotations

from pathlib import Path

import click

from ragkit.errors import ModelError, UsageError

_FILE = click.Path(dir_okay=False, path_type=Path)
_POSITIVE = click.IntRange(1)
PARTS, RULES = ("both", "answers", "documents"), ("paper", "code")


@click.command(name="evaluate", context_settings={"show_default": True})
@click.option("--questions", required=True, type=_FILE, help="With gold answers and facts.")
@click.option("--answers", required=True, type=_FILE, help="With answer, doc_ids, or both.")
@click.option("--versus", type=_FILE, help="Another system's answers: compare the two systems.")
@click.option("--judge", "judge_name", required=True, metavar="J", help="openai:MODEL, or offline.")
@click.option("--out", required=True, type=_FILE, help="The report, as JSON.")
@click.option("--system", help="The system to evaluate. Default: all that the file names.")
@click.option("--versus-system", help="The other system of a comparison.")
@click.option("--parts", type=click.Choice(PARTS), default="both", help="What to evaluate.")
@click.option("--documents", type=_FILE, help="Document texts: a panel finds valid extra ones.")
@click.option(
    "--panel", multiple=True, metavar="J", help="A member of the panel. Default: --judge, 3 times."
)
@click.option("--correct-gold/--fixed-gold", default=None, help="Correct gold sets by the panel.")
@click.option(
    "--rules", type=click.Choice(RULES), default="paper", help="How votes decide a class."
)
@click.option("--cutoff", type=_POSITIVE, help="Use at most so many documents per answer.")
@click.option("--repeat", type=_POSITIVE, default=1, help="Verdicts on each answer and fact.")
@click.option("--round", type=click.IntRange(0), default=0, help="Each round has new verdicts.")
@click.option("--seed", type=int, default=0)
@click.option("--skip-bad", is_flag=True, help="Leave out bad lines and list them.")
@click.option("--dry-run", is_flag=True, help="Show verdicts and price, without asking.")
@click.option("--ledger", type=_FILE, help="Default: $RAGKIT_LEDGER, else build/llm.sqlite.")
@click.option("--replay", is_flag=True, help="Take verdicts from the ledger alone.")
@click.option("--budget", type=float, metavar="USD", help="Stop before a judge costs more.")
@click.option("--concurrency", type=_POSITIVE, default=8)
@click.option("--timeout", type=click.FloatRange(0.001), default=120.0)
@click.option("--temperature", type=float)
@click.option("--max-tokens", type=_POSITIVE)
def command(**given):
    """Judge answers: correctness, completeness, document recall, invalid extra documents.

    All questions count; one without an answer earns nothing. Files are JSON lines, CSV, TSV or
    Parquet; answers have question_id and, where there are several, system: each system's report
    goes to NAME.SYSTEM.json. Documents may also be the released zip. Corrected questions (by
    default only in a comparison with --documents) go to NAME.corrected.jsonl. The rules are those
    of the paper or of its released code. Of repeated verdicts more than half decide; each --round
    gets verdicts independent of the others.

    The report holds every verdict and the metrics with intervals; `ragkit.judging.read` returns
    frames of it. The same command again continues a run that was stopped, and judges again what
    failed. Exit status 1 if a verdict is missing; the report is written nevertheless.
    """
    from ragkit.judging import Options, compare, estimate, evaluate, load_judge, read_answers
    from ragkit.judging.inputs import read_questions

    if given["versus"] is None and given["versus_system"]:
        raise UsageError("--versus-system goes with --versus")
    asked = dict.fromkeys([given["judge_name"], *given["panel"]])
    judges = {name: load_judge(name, **_client_options(name, given)) for name in asked}
    judge, questions, answers = judges[given["judge_name"]], given["questions"], given["answers"]
    names = "documents correct_gold rules cutoff repeat round seed parts skip_bad"
    panel = [judges[name] for name in given["panel"]] or None
    options = Options(panel=panel, **{name: given[name] for name in names.split()})
    systems = [given["system"]]
    if given["versus"] is None and given["system"] is None:
        frame = read_questions(questions, skip_bad=options.skip_bad)[0]
        systems = read_answers(answers, frame, skip_bad=options.skip_bad)[0]["system"].unique()
    out, lost = given["out"], 0
    try:
        if given["dry_run"]:
            others = [(given["versus"], given["versus_system"])] if given["versus"] else []
            parts = [
                estimate(questions, [(answers, one), *others], judge, options) for one in systems
            ]
            _show_estimate(sum(parts, []))
            return
        if given["versus"]:
            pair = (given["system"], given["versus_system"])
            report = compare(
                questions, answers, given["versus"], judge, options, systems=pair, out=out
            )
            lost = _show_comparison(report)
            click.echo(f"written to {out}")
        else:
            for one in systems:
                path = out
                if len(systems) > 1:
                    name = one.replace("/", "-")
                    path = out.with_name(f"{out.stem}.{name}{out.suffix}")
                report = evaluate(questions, answers, judge, options, system=one, out=path)
                _show(one or report.data["system"], report.data["counts"], report.data["aggregate"])
                lost += report.data["counts"]["missing_verdicts"]
                click.echo(f"written to {path}")
            for row in report.data["skipped"]:
                click.echo(f"left out: {row['file']}: {row['reason']}", err=True)
    finally:
        for one in judges.values():
            one.close()
    if lost:
        raise ModelError(
            f"{lost:,} verdicts are missing, none of them counted as 0",
            "the same command asks for them again; ragkit llm ledger --failures says why",
        )


def _client_options(name: str, given: dict) -> dict:
    from ragkit.cli.llm import _path

    if not name.startswith("openai:"):
        return {}
    limits = {name: given[name] for name in ("temperature", "max_tokens")}
    return {
        "ledger": _path(given["ledger"]),
        "parameters": {name: value for name, value in limits.items() if value is not None},
        "replay": given["replay"] or None,
        **{name: given[name] for name in ("concurrency", "timeout", "budget")},
    }


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


def _show_comparison(report) -> int:
    for side, system in zip("ab", report.data["systems"], strict=True):
        _show(system, report.data["counts"][side], report.data["aggregate"][side])
    found = report.data["preferences"]
    click.echo(
        f"preferred: {found['a']:,} a, {found['b']:,} b, {found['tie']:,} ties; "
        f"{found['n']:,} of {found['of']:,} questions that both answered were judged"
    )
    return found["missing"] + sum(n["missing_verdicts"] for n in report.data["counts"].values())


def _show(system: str, counts: dict, aggregate: dict) -> None:
    """Print a system's metrics, each with the number of questions that it is over."""
    from tabulate import tabulate

    line = f"{system}: {counts['answered']:,} of {counts['questions']:,} questions answered"
    line += f"; {counts['unsure_verdicts']:,} of {counts['verdicts']:,} verdicts unsure"
    for name in ("missing_verdicts", "without_documents", "corrected"):
        if counts[name]:
            line += f", {counts[name]:,} {name.replace('_', ' ')}"
    click.echo(line)
    rows = []
    for metric, entry in aggregate["overall"].items():
        if entry["of"]:
            interval = "" if entry["low"] is None else f"{entry['low']:.3f} to {entry['high']:.3f}"
            value = "-" if entry["value"] is None else f"{entry['value']:.4f}"
            row = [metric, value, interval, f"{entry['n']:,} of {entry['of']:,}"]
            if "alpha" in entry:
                row += ["-" if entry[k] is None else f"{entry[k]:.3f}" for k in ("spread", "alpha")]
            rows.append(row)
    headers = ["metric", "value", "95 % interval", "questions"]
    if any(len(row) > 4 for row in rows):
        headers += ["spread", "alpha"]
    click.echo(tabulate(rows, headers=headers, disable_numparse=True))
