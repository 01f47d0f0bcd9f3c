"""Models that run on this machine for AgentUnit: weights, and a light runtime for them (no PyTorch)."""

__version__ = "0.1.0"
