"""Which runs went wrong, without labels: those that differ from other runs of the same task.

``signatures`` keeps of each record what it changed, what it answered and how it went, in a few hundred bytes; ``tasks``
says which records are of one task, ``tool_marks`` which tools change something, ``ranking`` how far a run differs from
its peers, and ``evidence`` in words why.
"""
