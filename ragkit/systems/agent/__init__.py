"""A retrieval agent that searches a corpus with command lines, and the sandbox that runs them.

    >>> from ragkit.systems.agent import BashAgent, corpus_tree, open_sandbox
    >>> agent = BashAgent("offline").fit(documents)                           # doctest: +SKIP
    >>> runs = agent.search(questions)                                         # doctest: +SKIP
    >>> print(agent.transcripts_["qst_0001"])                                  # doctest: +SKIP

The sandbox alone, for an agent of your own:

    >>> tree = corpus_tree(documents, "build/tree")                            # doctest: +SKIP
    >>> open_sandbox(tree.root).run("grep -ril refund . | head -n 5").text     # doctest: +SKIP
"""

from ragkit.systems.agent.bash_agent import BashAgent, Step, Transcript
from ragkit.systems.agent.sandbox import Bashkit, Output, Sandbox, Sandlock, open_sandbox
from ragkit.systems.agent.tree import Tree, corpus_tree

__all__ = ["BashAgent", "Bashkit", "Output", "Sandbox", "Sandlock", "Step", "Transcript", "Tree"]
__all__ += ["corpus_tree", "open_sandbox"]
