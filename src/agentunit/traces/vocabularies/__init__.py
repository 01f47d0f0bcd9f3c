"""What spans mean: a table of attributes and the facts they state, and the readers that its rows refer to."""

from __future__ import annotations

from agentunit.traces.vocabularies._facts import facts_of
from agentunit.traces.vocabularies.values import Facts

__all__ = ["Facts", "facts_of"]
