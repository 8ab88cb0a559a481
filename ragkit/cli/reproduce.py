"""`ragkit reproduce`: run the notebooks, and `--preflight` to only look."""

from __future__ import annotations

import fcntl
import os
import time

import click

from ragkit.errors import RagkitError


@click.command()
@click.option("--profile", default="sample", show_default=True, help="sample or paper.")
@click.option("--data", default="", help="A folder with real files; default: $RAGKIT_DATA.")
@click.option("--cores", type=int, default=os.cpu_count() or 1, show_default="all")
@click.option("--preflight", is_flag=True, help="Only say what would run.")
@click.option("--force", is_flag=True, help="Run everything, fresh or not.")
@click.option("--report/--no-report", default=True, help="Write build/PROFILE/report.html.")
@click.option("--export", is_flag=True, help="Then export to figures/ and data/results/.")
def command(profile, data, cores, preflight, force, report, export):
    """Run all notebooks that the data at hand allows; what is fresh is not run again.

    The exit status is 1 if a notebook failed. Notebooks that depend on a failed one are not run,
    all others are; the same command resumes.
    """
    from ragkit.report import pipeline

    plan = pipeline.make_plan(profile, data or os.environ.get("RAGKIT_DATA"))
    plan.root.mkdir(parents=True, exist_ok=True)
    with open(plan.root / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RagkitError(f"another run of the profile {profile!r} is under way") from None
        late = {step.name for step in plan.runnable} if force else pipeline.stale(plan)
        _show(plan, late)
        if preflight:
            return
        failed = _run(plan, late, cores, force) if late else []
        page = plan.root / "report.html"
        if report and not failed and (late or not page.is_file()):
            done = pipeline.snakemake(
                plan, "--report", str(page), "--quiet", "all", capture_output=True, text=True
            )
            if done.returncode:
                raise RagkitError(f"no report: {done.stderr.strip()[-500:]}")
    if failed:
        raise RagkitError(
            f"failed or not run: {', '.join(failed)}",
            f"the log of each is in {plan.root / 'logs'}, Snakemake's own in "
            f"{plan.root / '.snakemake' / 'log'}; the same command resumes",
        )
    click.echo(f"\n{len(plan.runnable)} notebooks done: {page}")
    if export:
        written = pipeline.export(plan)
        click.echo(f"{len(written)} files exported to figures/ and data/results/")


def _run(plan, late: set[str], cores: int, force: bool) -> list[str]:
    from ragkit.report import pipeline

    arguments = ["--cores", str(cores), "--keep-going", "--rerun-incomplete", "--quiet", "all"]
    if force:
        arguments.append("--forceall")
    start = time.monotonic()
    done = pipeline.snakemake(plan, *arguments)
    click.echo(f"{time.monotonic() - start:.0f} s", err=True)
    if not done.returncode:
        return []
    unfinished = sorted(pipeline.stale(plan) & late)
    if not unfinished:
        raise RagkitError(f"the workflow failed with status {done.returncode}")
    return unfinished


def _show(plan, late: set[str]) -> None:
    where = f", data from {plan.data}" if plan.data else ""
    click.echo(f"profile {plan.profile}{where}\n")
    width = max(len(step.name) for step in plan.steps)
    for step in plan.steps:
        if step.name in plan.missing:
            reason, how = plan.missing[step.name]
            state, colour, detail = "missing", "yellow", f"{reason}; get it: {how}"
        elif step.name in late:
            state, colour, detail = "to run", "cyan", ""
        else:
            state, colour, detail = "fresh", "green", ""
        click.echo(
            f"  {click.style(f'{state:<8}', fg=colour)} {step.name:<{width}}  {detail}".rstrip()
        )
    n = len(plan.missing)
    click.echo(f"\n  {len(late)} to run, {len(plan.runnable) - len(late)} fresh, {n} missing\n")
