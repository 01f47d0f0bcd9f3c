"""Runs in a browser: the pages' data, a local server, bundles for any host, and one self-contained file."""
