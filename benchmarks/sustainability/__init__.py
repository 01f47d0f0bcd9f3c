"""AgentUnit's probe beside CodeCarbon: the same work measured by both at once, and what measuring costs.

python -m benchmarks.sustainability                    # needs .bench/codecarbon
python -m benchmarks.sustainability --install-peer     # makes it first (about 300 MB)
"""
