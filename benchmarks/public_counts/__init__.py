"""Counters of public trace files, one module a family: ``count(path)`` returns the cases that a file holds.

None of them imports AgentUnit. A case has the shape of ``tests/corpus``: what a family does not state for certain is
left out. A new family is a module here and a row of ``FAMILIES`` of ``benchmarks/traces_public.py``.
"""
