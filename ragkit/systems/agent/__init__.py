"""A retrieval agent with the commands of a shell, and the sandbox that it works in.

    >>> from ragkit.systems.agent import BashAgent, Sandbox, corpus_tree
    >>> agent = BashAgent("offline").fit(documents)                           # doctest: +SKIP
    >>> runs = agent.search(questions)                                         # doctest: +SKIP
    >>> print(agent.transcripts_["qst_0001"])                                  # doctest: +SKIP

The sandbox alone, for an agent of your own:

    >>> tree = corpus_tree(documents, "build/tree")                            # doctest: +SKIP
    >>> print(Sandbox(tree.root).run("grep -ril refund . | head -n 5").text)   # doctest: +SKIP
"""

from ragkit.systems.agent.bash_agent import BashAgent
from ragkit.systems.agent.sandbox import Output, Sandbox
from ragkit.systems.agent.transcript import Step, Transcript
from ragkit.systems.agent.tree import Tree, corpus_tree

__all__ = ["BashAgent", "Output", "Sandbox", "Step", "Transcript", "Tree", "corpus_tree"]
