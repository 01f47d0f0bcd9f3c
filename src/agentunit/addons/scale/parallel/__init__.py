"""Files scored and rewritten by several processes, or by the tasks of an engine, in the order of the input."""
