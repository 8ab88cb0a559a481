# One rule for every notebook of notebooks/catalogue.toml that the data at hand allows.
# `make reproduce` calls this; so can you: snakemake --config profile=paper data=DIR --cores 2
# --directory build/paper, with --executor slurm or kubernetes for more than one machine.
import shlex

from ragkit.report import pipeline

plan = pipeline.make_plan(config.get("profile", "sample"), config.get("data") or None)
# A notebook of the sample has one core: more threads would wait for those of the notebook beside it.
# Memory that is freed stays with it (glibc), as an encoder takes the same again with every batch.
alone = plan.profile == "sample"
limits = "LOKY_MAX_CPU_COUNT=1 MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296 "


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
            figures=directory(f"figures/{step.name}"),
            tables=directory(f"tables/{step.name}"),
        threads: 1 if alone else step.threads
        priority: step.priority
        params:
            command=shlex.join(plan.command(step)),
        shell:
            (limits if alone else "") + "OMP_NUM_THREADS={threads} {params.command}"
