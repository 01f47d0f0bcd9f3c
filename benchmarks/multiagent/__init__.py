"""How fast the multi-agent measures are, and how their time grows beside networkx in the same run.

Three sizes have a target: 100,000 interactions among 50 agents, a full mesh of 400 agents, and 5,000 agents with 50,000
connections. The table of growth takes the graph measures alone: density, centralisation, path length, clustering,
bottlenecks and the worst single loss. networkx has no worst loss and computes the others; the numbers are compared.

    python -m benchmarks.multiagent                   print the tables
    python -m benchmarks.multiagent --write-results   also write them to RESULTS.md
"""
