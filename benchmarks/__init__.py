"""Measurements of AgentUnit against its peers. Nothing here is part of the installed package."""
