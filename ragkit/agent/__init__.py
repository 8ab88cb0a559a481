"""A retrieval agent with the commands of a shell, and the sandbox that it works in.

>>> from ragkit.agent import Sandbox, corpus_tree
>>> tree = corpus_tree(documents, "build/tree")                    # doctest: +SKIP
>>> print(Sandbox(tree.root).run("grep -ril refund . | head -n 5").text)   # doctest: +SKIP
"""

from ragkit.agent.sandbox import Output, Sandbox
from ragkit.agent.tree import Tree, corpus_tree

__all__ = ["Output", "Sandbox", "Tree", "corpus_tree"]
