"""Answers of a language model behind an endpoint, each recorded in the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragkit.llm import Client, ledger_path, load_prompt
from ragkit.systems.readers.base import ABSTENTION, Document, Reader, Reading

FOLDER = Path(__file__).parent / "templates"
# WixQA, section 4: greedy decoding, and at most 1,024 new tokens.
PARAMETERS = {"temperature": 0, "max_tokens": 1024}


class OpenAI(Reader):
    """A chat model answers from the documents, with WixQA's settings unless told otherwise.

    `truncated` is how many answers of the last `read` were cut at the limit of tokens.

    After a failure (refusal, time-out, an empty reply, a budget that is spent), the reading has the
    answer None and the failure's kind and reason. What the ledger holds is not asked again.

    Parameters
    ----------
    model : str
        `openai:NAME`, see `ragkit.llm.Client`.
    ledger : path, Ledger or None, optional
        Default: `$RAGKIT_LEDGER`, else `build/llm.sqlite` of the workspace.
    parameters : mapping, optional
        Instead of `PARAMETERS`, for models that take others.
    prompt : str
        "answer", or "closed_book": the model answers from memory and is shown no document.
    client : ragkit.llm.Client, optional
        Instead of one with these options.
    options
        Further options of `ragkit.llm.Client`, such as `concurrency` and `budget`.
    """

    def __init__(
        self,
        model: str,
        *,
        ledger: Any = ...,
        parameters: Mapping[str, Any] | None = None,
        prompt: str = "answer",
        client: Client | None = None,
        **options: Any,
    ):
        if ledger is ...:
            ledger = ledger_path()
        parameters = PARAMETERS if parameters is None else parameters
        options |= {"ledger": ledger, "parameters": parameters}
        self.client = client or Client(model, **options)
        self.prompt = load_prompt(prompt, FOLDER)
        self.name, self.truncated = model, 0

    def read(self, tasks: Sequence[tuple[str, Sequence[Document]]]) -> list[Reading]:
        slots = (
            {"question": question, "documents": _numbered(documents), "abstention": ABSTENTION}
            for question, documents in tasks
        )
        needed = self.prompt.placeholders
        requests = [
            self.prompt.request({name: values[name] for name in needed}, purpose="reader")
            for values in slots
        ]
        results = self.client.complete(requests)
        self.truncated = sum(one.ok and one.finish_reason == "length" for one in results)
        return [_reading(result) for result in results]


def _reading(result) -> Reading:
    if not result.ok:
        return Reading(None, failure=f"{result.kind}: {result.reason}")
    answer = result.text.strip()
    return Reading(answer, abstained=answer.strip("\"'“” ") == ABSTENTION)


def _numbered(documents: Sequence[Document]) -> str:
    """Return the documents one below the other, each with its number and title."""
    if not documents:
        return "(No document was found.)"
    return "\n\n".join(
        f"Document {number}: {document.title.strip()}".rstrip(": ") + f"\n{document.text.strip()}"
        for number, document in enumerate(documents, start=1)
    )
