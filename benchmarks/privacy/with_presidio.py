"""Times Presidio's recognizers in this process, called directly: ``python with_presidio.py FILE ROUNDS``.

FILE holds a JSON list of texts. Only recognizers of types that ours finds too, and none that needs a model.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import tldextract

# Its list of domains would be fetched from the network otherwise; the one in the package is used.
tldextract.extract = tldextract.TLDExtract(suffix_list_urls=())

from presidio_analyzer import predefined_recognizers as predefined  # noqa: E402

NAMES = (
    "CreditCard",
    "Crypto",
    "Date",
    "Email",
    "Iban",
    "Ip",
    "MacAddress",
    "Phone",
    "UsLicense",
    "UsPassport",
    "UsSsn",
)


def main() -> None:
    """Print what was measured as one JSON object."""
    texts = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    recognizers = [getattr(predefined, f"{name}Recognizer")() for name in NAMES]
    seconds: list[float] = []
    n_found = 0
    for _ in range(int(sys.argv[2])):
        n_found = 0
        start = time.process_time()
        for text in texts:
            for recognizer in recognizers:
                n_found += len(recognizer.analyze(text, recognizer.supported_entities, None) or ())
        seconds.append(time.process_time() - start)
    n_bytes = sum(len(text.encode()) for text in texts)
    print(json.dumps({"elapsed_s": min(seconds), "n_found": n_found, "n_bytes": n_bytes, "recognizers": len(NAMES)}))


if __name__ == "__main__":
    main()
