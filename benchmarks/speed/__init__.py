"""How fast AgentUnit is, beside its peers, measured in one run on one machine.

Eight questions: import time, size of a base install, scoring ready records with a metric that costs nothing, the
catalog's seven core metrics against merely reading the records, running an agent that costs nothing and scoring it, the
memory of recording, how soon a long run that was stopped goes on, and the processor time of a whole run (with
``--before FOLDER`` beside another checkout's). Run it from the root of the repository:

    python -m benchmarks.speed                      our rows, and those of peers that are installed
    python -m benchmarks.speed --install-peers      make the environments first (about 2.5 GB under .bench/)
    python -m benchmarks.speed --write-results      also write the tables to benchmarks/speed/RESULTS.md

Machines are noisy: every figure is the best of several rounds, ours and theirs in turn, with the worst beside it.
Only ``--install-peers`` and ``--install-ours`` use the network, through pip. Peers run with their telemetry off,
without keys, in a temporary folder.
"""
