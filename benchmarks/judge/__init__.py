"""How well the judge's client keeps a judge busy, beside other clients in the same run.

The judge is a loopback server in a process of its own that takes 200 ms a call. With 50 calls at once, 2,000 calls take
8 s at best; the share of that is measured for the client alone, for httpx and openai behind a semaphore, and for
``agentunit.score`` from records to scores. A second run over the cache must make no call, and memory must not
grow with the number of questions.

    python -m benchmarks.judge                   print the tables
    python -m benchmarks.judge --install-peers   first make the environments of httpx and openai under .bench/
    python -m benchmarks.judge --write-results   also write them to RESULTS.md
"""
