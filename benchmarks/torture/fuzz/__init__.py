"""Structure-aware fuzzing of everything that reads: which targets there are, how inputs are made, and who runs them.

A worker process makes its inputs itself, from its seed: the same seed makes the same inputs. What reads an input in a
new way (another error, another number of records) becomes a seed of its own, so that later inputs start from there.
"""
