"""One metric, one backend, one trace format and one reporter for AgentUnit."""
