"""Runs that are kept: what an agent did, and what metrics said about it."""

from agentunit.store.opening import open_store

__all__ = ["open_store"]
