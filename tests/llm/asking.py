"""What the fault tests and the benchmark ask, and how."""

from ragkit.llm import Client, Request
from tests.llm.server import SCHEMA


def requests(count):
    return [
        Request(
            f"Statement {i}: is it so?",
            schema=SCHEMA,
            parameters={"temperature": 0, "max_tokens": 50},
            purpose="judge",
        )
        for i in range(count)
    ]


def client(ledger, **options):
    options = {"concurrency": 32, "timeout": 3.0, "backoff": 0.1, "max_attempts": 12} | options
    return Client("openai:toy", ledger=ledger, **options)
