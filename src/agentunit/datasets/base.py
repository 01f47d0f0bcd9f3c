"""The home of ``DatasetCase`` by the name the catalog gives it."""

from agentunit.core.case import DatasetCase

__all__ = ["DatasetCase"]
