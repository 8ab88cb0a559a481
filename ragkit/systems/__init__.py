"""Systems: retrievers, readers, the agent, and sweeps over them."""
