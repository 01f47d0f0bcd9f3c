"""How fast OpenTelemetry traces become records, and how much memory that takes.

Traces of agent runs are made up in three ways: in the vocabulary of OpenInference (one large document), in that of
OpenTelemetry GenAI (one export request a line), and as the worst case for any reader, spans of many small attributes.
Each step on the way is timed in a process of its own, on one core:

* elements: the file is pulled apart into spans, nothing is decoded
* packed: spans with their trace ids and what they share, as the reader hands them out (faster than the step before
  where a request a line can be taken apart at once)
* spans: every span is decoded
* records: the whole way, with spans put together by trace and read into records

    python -m benchmarks.traces                   print the tables
    python -m benchmarks.traces --write-results   also write them to RESULTS.md
"""
