"""`ragkit evaluate`: judge a system's answers, or two systems against each other."""

from __future__ import annotations

import click

from ragkit.cli.llm import client_options
from ragkit.errors import ModelError, UsageError


def run(questions, answers, versus, judge, out, system, versus_system, panel, dry_run, **given):
    from ragkit.judging import Options, compare, estimate, evaluate, load_judge, read_answers
    from ragkit.judging.inputs import read_questions

    if versus is None and versus_system:
        raise UsageError("--versus-system goes with --versus")
    for_client = client_options(given)
    judges = {
        name: load_judge(name, **(for_client if name.startswith("openai:") else {}))
        for name in dict.fromkeys([judge, *panel])
    }
    own = judges[judge]
    options = Options(panel=[judges[name] for name in panel] or None, **given)
    systems = [system]
    if versus is None and system is None:
        frame = read_questions(questions, skip_bad=options.skip_bad)[0]
        systems = read_answers(answers, frame, skip_bad=options.skip_bad)[0]["system"].unique()
    reports, lost = dict.fromkeys(systems, out), 0
    if len(systems) > 1:
        parts = {one: f"{out.stem}.{one.replace('/', '-')}{out.suffix}" for one in systems}
        reports = {one: out.with_name(part) for one, part in parts.items()}
        if len(set(reports.values())) < len(systems):
            raise UsageError("two systems would have one report", "--system chooses one of them")
    try:
        if dry_run:
            others = [(versus, versus_system)] if versus else []
            parts = [
                estimate(questions, [(answers, one), *others], own, options) for one in systems
            ]
            _show_estimate(sum(parts, []))
            return
        for one in systems:
            path = reports[one]
            if versus:
                pair = (system, versus_system)
                report = compare(questions, answers, versus, own, options, systems=pair, out=path)
                lost += _show(report) + _show_preferences(report.data["preferences"])
                for row in report.data["differences"]:
                    said = "{metric}: {difference:+.4f} ({low:.3f} to {high:.3f}), p {p:.3g}; "
                    said += "a difference of {detectable:.3f} would be found four times of five"
                    click.echo(said.format(**row) if row["low"] is not None else row["metric"])
            else:
                report = evaluate(questions, answers, own, options, system=one, out=path)
                lost += _show(report)
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


def _show_preferences(found: dict) -> int:
    """Print what the panel prefers; return how many preferences are missing."""
    click.echo(
        f"preferred: {found['a']:,} a, {found['b']:,} b, {found['tie']:,} ties; "
        f"{found['n']:,} of {found['of']:,} questions that both answered were judged"
    )
    return found["missing"]


def _show(report) -> int:
    """Print each system's metrics and the number of questions that each metric is over.

    Return how many verdicts are missing.
    """
    from tabulate import tabulate

    for system, counts in report.data["counts"].items():
        line = f"{system}: {counts['answered']:,} of {counts['questions']:,} questions answered"
        line += f"; {counts['unsure_verdicts']:,} of {counts['verdicts']:,} verdicts unsure"
        for name in ("missing_verdicts", "without_documents", "corrected"):
            if counts[name]:
                line += f", {counts[name]:,} {name.replace('_', ' ')}"
        click.echo(line)
        table, rows = report.data["summary"], []
        for entry in table:
            if (entry["system"], entry["group"]) != (system, "overall") or not entry["of"]:
                continue
            interval = "" if entry["low"] is None else f"{entry['low']:.3f} to {entry['high']:.3f}"
            value = "-" if entry["value"] is None else f"{entry['value']:.4f}"
            row = {"metric": entry["metric"], "value": value, "95 % interval": interval}
            row["questions"] = f"{entry['n']:,} of {entry['of']:,}"
            for name in ("spread", "alpha") if entry["by_repeat"] else ():
                row[name] = "-" if entry[name] is None else f"{entry[name]:.3f}"
            rows.append(row)
        click.echo(tabulate(rows, headers="keys", disable_numparse=True))
    if counts["without_facts"] and report.data["settings"]["parts"] != "documents":
        lacking = f"{counts['without_facts']:,} of {counts['questions']:,} questions have no facts"
        click.echo(f"{lacking}: completeness and score are those of the others")
    for row in report.data["labelled"]:
        said = "{system}: correctness by {n:,} labels and {of:,} verdicts "
        if row["value"] is None:
            said += "cannot be estimated: label two answers or more, not all"
        else:
            said += "{value:.4f} ({low:.3f} to {high:.3f}); by the labels alone "
            said += "{labels:.4f} ({labels_low:.3f} to {labels_high:.3f})"
        click.echo(said.format(**row))
    return sum(counts["missing_verdicts"] for counts in report.data["counts"].values())
