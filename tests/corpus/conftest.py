"""Makers and counters are run as scripts: pytest must not import them in search of doctests."""

collect_ignore_glob = ["*/make*.py", "*/expect*.py"]
