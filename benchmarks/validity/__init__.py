"""How far AgentUnit's scores agree with people: measured on public labeled data, written into the package and docs.

``python -m benchmarks.validity`` reads ``dev/`` of the folder named by ``AGENTUNIT_DATA`` (default ``../shared/data``
beside the repository) and writes ``src/agentunit/metrics/validity.json``, ``docs/validity.md`` (the figures of now) and
``benchmarks/validity/RESULTS.md`` (all of them). A rerun on the same data gives the same bytes; ``--check`` exits 1
when the committed files say something else. Without the folder it says so in one line and does nothing. The data is not
redistributed: only figures are kept. ``--only faithfulness`` measures one family and prints its table.

Models take minutes, and their last digits depend on the processor: their figures are kept in ``recorded_FAMILY.json``,
and shown as long as rows and code are the same (``--anew`` measures all the same).

Detectors of personal data that need packages of their own are measured in an environment under ``.bench/``
(``--install-peers`` makes it); their figures are kept in ``recorded_pii.json``, for machines without it.

Adding a metric family: put one module into ``rows/`` (see ``rows/__init__.py``). Published figures of other systems
stand in ``published.json``; a family shows those whose ``family`` is its own key.
"""
