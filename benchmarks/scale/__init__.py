"""Scale: what scoring on every core costs and gains, beside one process in the same run.

    python -m benchmarks.scale                        # pace, OTLP, growth, model: about six minutes on two quiet cores
    python -m benchmarks.scale --sizes 1000 --stream 0 --records 1000 --rounds 1 --otlp-megabytes 2    # does it work?
    python -m benchmarks.scale --write-results        # RESULTS.md and the plot of docs/performance.md

Every row is a fresh process that scores with the command line's own code. CPU time counts all processes of the row,
starting Python does not count. "Two at once" are two independent processes, each with half of the records: what two
cores can do at most. Efficiency is their time over that of one job with two workers on all records.
"""
