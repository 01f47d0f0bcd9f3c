"""One part of each kind that a package can add to AgentUnit."""
