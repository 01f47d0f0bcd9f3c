"""What spans mean: one module a vocabulary, and facts that all of them are read into."""

from __future__ import annotations

from agentunit.traces.spans import Span
from agentunit.traces.vocabularies import frameworks, gen_ai, openinference, platforms
from agentunit.traces.vocabularies.values import Facts

__all__ = ["Facts", "facts_of"]


def facts_of(span: Span) -> Facts:
    """What a span says. A span that carries two vocabularies states the same twice, so that one of them is read.

    >>> attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 7}
    >>> facts = facts_of(Span("t", "s", attributes=attributes))
    >>> facts.kind, facts.model, facts.usage
    ('llm', 'm', {'prompt_tokens': 7})
    """
    facts = Facts()
    attributes = span.attributes
    if openinference.speaks(attributes):
        openinference.read(span, facts)
    elif not platforms.read(span, facts) and gen_ai.speaks(attributes):
        gen_ai.read(span, facts)
    platforms.read_trace_facts(attributes, facts)
    frameworks.read(span, facts)
    return facts
