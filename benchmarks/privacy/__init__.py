"""How fast personal data is found, beside Presidio's recognizers, and whether odd texts can slow it down.

Two questions, each answered in fresh processes on one core, in CPU time:

* speed: megabytes a second of the whole base detector (patterns, names and addresses) on made-up mails and prose,
  beside Presidio's recognizers of the same types called directly, without its engine and without a language model
* odd texts: the cost of a megabyte of text made to look like personal data without being any, beside ordinary prose

    python -m benchmarks.privacy                      our rows, and Presidio's where it is installed
    python -m benchmarks.privacy --install-peers      make its environment first (about 300 MB under .bench/)
    python -m benchmarks.privacy --write-results      also write the tables to RESULTS.md
"""
