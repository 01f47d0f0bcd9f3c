"""Agents that run: spans received, files that grow, scores that change, and who is told."""
