# One rule for every notebook of notebooks/catalogue.toml that the data at hand allows.
# `make reproduce` calls this; so can you: snakemake --config profile=paper data=DIR --cores 2
# --directory build/paper, with --executor slurm or kubernetes for more than one machine.
import shlex

from ragkit.report import pipeline

plan = pipeline.make_plan(config.get("profile", "sample"), config.get("data") or None)


report: "notebooks/report.rst"


rule all:
    input:
        [f"notebooks/{step.name}.ipynb" for step in plan.runnable],


for step in plan.runnable:

    rule:
        name:
            step.name
        input:
            plan.inputs(step),
        output:
            notebook=f"notebooks/{step.name}.ipynb",
            measured=str(pipeline.measured(plan.root, step.name)),
            html=report(f"html/{step.name}.html", category="Notebooks", labels={"notebook": step.name}),
            figures=report(
                directory(f"figures/{step.name}"),
                patterns=["{figure}.png"],
                category="Figures",
                subcategory=step.name,
                labels={"figure": "{figure}"},
            ),
            tables=report(
                directory(f"tables/{step.name}"),
                patterns=["{table}.html"],
                category="Tables",
                subcategory=step.name,
                labels={"table": "{table}"},
            ),
        threads: step.threads
        params:
            command=shlex.join(plan.command(step)),
        shell:
            "OMP_NUM_THREADS={threads} {params.command}"
