"""``make torture``: kill it, starve it, feed it garbage, and count what was lost.

Each part does harm at random moments or with random data, and then compares what is left with a pass that nobody
disturbed. When harm is done depends on the machine; verdicts do not: nothing here is late, it is only lost or not lost.
A part that needs what is not there (gRPC, root, faketime) is skipped by name.

    python -m benchmarks.torture                       the short form, as in CI
    python -m benchmarks.torture --full                the full counts, as every night
    python -m benchmarks.torture --only kill --seed 7  one part, or one row of it (kill:import), as it was before

A new verb is one ``Scenario`` (``scenarios_*.py``), a new reader one line in ``fuzz/targets.py``, a new hostile agent
one function in ``agents.py``, a new attack one function and one line in ``attacks.py``.
"""
