"""One language model behind one endpoint, and a ledger of its answers.

>>> from ragkit.llm import Client, Request, tally
>>> client = Client("openai:gpt-4o-mini", ledger="llm.sqlite")
>>> results = client.complete([Request("Is 7 prime?", parameters={"max_tokens": 5})])
>>> tally(results)
'1 of 1 requests answered'

Every result is a `Value` or a `Failure`, in the order of the requests. A request that the ledger
holds is not asked again; a ledger can be exported, shared and replayed without network.
"""

from ragkit.llm.client import Client, ReplayMiss, import_results, write_batch
from ragkit.llm.exchange import Exchange, Failure, ToolCall, Value, tally
from ragkit.llm.ledger import Ledger, ledger_path
from ragkit.llm.prices import Estimate, Prices, count_tokens, dollars, load_prices
from ragkit.llm.rehearsal import Rehearsal, Share
from ragkit.llm.requests import Prompt, Request, load_prompt

__all__ = [
    "Client",
    "Estimate",
    "Exchange",
    "Failure",
    "Ledger",
    "Prices",
    "Prompt",
    "Rehearsal",
    "ReplayMiss",
    "Request",
    "Share",
    "ToolCall",
    "Value",
    "count_tokens",
    "dollars",
    "import_results",
    "ledger_path",
    "load_prices",
    "load_prompt",
    "tally",
    "write_batch",
]
