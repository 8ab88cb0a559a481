"""Ask the fault test's requests from a process of its own: python -m tests.llm.worker LEDGER N."""

import json
import sys

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


if __name__ == "__main__":
    with client(sys.argv[1]) as asking:
        print("go", flush=True)
        results = asking.complete(requests(int(sys.argv[2])), progress=False)
    print(json.dumps([result.to_dict() for result in results]), flush=True)
