"""A retrieval agent that searches a corpus with command lines, and the sandbox that runs them.

>>> from ragkit import datasets
>>> from ragkit.systems.agent import BashAgent, corpus_tree, open_sandbox
>>> wixqa = datasets.load("wixqa").part(documents=40, questions=2)
>>> agent = BashAgent("offline").fit(wixqa.documents)
>>> runs = agent.search(wixqa.questions)
>>> len(agent.transcripts_)
2

The sandbox alone, for an agent of your own:

>>> tree = corpus_tree(wixqa.documents, "tree")
>>> open_sandbox(tree.root).run("ls | head -n 1").text
'article\\n'
"""

from ragkit.systems.agent.bash_agent import BashAgent, Step, Transcript
from ragkit.systems.agent.sandbox import Bashkit, Output, Sandbox, Sandlock, open_sandbox
from ragkit.systems.agent.tree import Tree, corpus_tree

__all__ = ["BashAgent", "Bashkit", "Output", "Sandbox", "Sandlock", "Step", "Transcript", "Tree"]
__all__ += ["corpus_tree", "open_sandbox"]
