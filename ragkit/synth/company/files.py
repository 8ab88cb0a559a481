"""The answers of the stages as files that may be edited between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ragkit.errors import DataError
from ragkit.files import read_json, read_text, write_text
from ragkit.llm import load_prompt
from ragkit.llm.requests import canonical, validator
from ragkit.synth.stages import Check, Model, Rejected, Task, needed
from ragkit.synth.stamp import write_json

PROMPTS = Path(__file__).parent / "prompts"
PASSING = ("validate", "minimal", "pool", "answer")  # stages without files: the ledger has them


class Files:
    """Ask the tasks whose files are not there, and keep the answers as files.

    The item `manifest tidegate` of the stage `manifest` is kept in `manifest/tidegate.json`, the
    item `company` in `company.json`, and the text of a document in `document/KEY.md`. Without
    `keep`, for an estimate, no file is written.
    """

    def __init__(self, folder: Path, author: Model, keep: bool = True):
        self.folder, self.author, self.keep = folder, author, keep

    def path(self, stage: str, item: str) -> Path:
        """Return the file of an item."""
        name = item.partition(" ")[2].replace(" ", "-")
        if stage == "document":
            return self.folder / stage / f"{name}.md"
        return self.folder / (f"{stage}/{name}.json" if name else f"{stage}.json")

    def answer(
        self, stage: str, tasks: Sequence[Task], check: Check | None = None, *, wait: bool = True
    ) -> list[dict | Rejected | None]:
        """Return the data of each task, from its file or from the model; see `Model.answer`.

        What a file says passes the same check, else `DataError` is raised.
        """
        if stage in PASSING:
            return self.author.answer(stage, tasks, check, wait=wait)
        found = [self.read(stage, task, check) for task in tasks]
        todo = [i for i, data in enumerate(found) if data is None]
        answers = self.author.answer(stage, [tasks[i] for i in todo], check, wait=wait)
        for i, data in zip(todo, answers, strict=True):
            found[i] = data
            if isinstance(data, dict) and not data.get("read"):
                found[i] = data | tasks[i].note
                self.write(stage, tasks[i].item, found[i])
        return found

    def flush(self) -> None:
        """See `Model.flush`."""
        self.author.flush()

    def write(self, stage: str, item: str, data: dict) -> None:
        """Keep data as the file of an item."""
        if self.keep and stage == "document":
            write_text(self.path(stage, item), data["content"])
        elif self.keep:
            write_json(self.path(stage, item), data)

    def need(self, stage: str, tasks: Sequence[Task], check: Check) -> list[dict]:
        """Return the data of each task; a rejected one ends the run."""
        found = self.answer(stage, tasks, check)
        lost = (self.path(stage, one.item) for one in found if isinstance(one, Rejected))
        hint = f"write {next(lost, '')} by hand, or use another model; what was paid for is kept in"
        return needed(found, f"{hint} the ledger")

    def read(self, stage: str, task: Task, check: Check) -> dict | None:
        """Return what the file of a task says, or None if there is none; see `answer`."""
        path = self.path(stage, task.item)
        if not path.exists():
            return None
        try:
            data = {"content": read_text(path)} if stage == "document" else read_json(path)
            errors = validator(canonical(self.author.schemas[stage])).iter_errors(data)
            fault = next((f"at {e.json_path}: {e.message:.300}" for e in errors), "")
        except DataError as error:
            fault = error.message
        if fault := fault or check(task, data):
            raise DataError(
                f"stage {stage!r}, item {task.item!r}: {path}: {fault}",
                "mend the file, or delete it to have the item asked again; what was paid for is "
                "kept in the ledger",
            )
        return data


def fragment(name: str, /, **values) -> str:
    """Return a part of a prompt that several prompts share."""
    return load_prompt(name, PROMPTS).messages(**values)[0]["content"]
