"""A software bill of materials (CycloneDX 1.6, JSON) for each of our distributions, from the lock files.

It lists what ``pip install`` brings along, with the version and the hashes that were locked. The same commit gives the
same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from scripts.lock import LOCKS

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)\s*(?:;\s*(?P<marker>[^\\]+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Pin(NamedTuple):
    """One locked version of a package, and where it applies."""

    name: str
    version: str
    marker: str | None
    hashes: tuple[str, ...]


def pins(lock: Path) -> Iterator[Pin]:
    """What a lock file pins, in its order."""
    blocks = re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8"))
    for block in blocks:
        first = next((line for line in block.splitlines() if not line.startswith("#")), "")
        match = _PIN.match(first.strip())
        if match is not None:
            yield Pin(match["name"], match["version"], match["marker"], tuple(_HASH.findall(block)))


def bill(distribution: str, version: str, part: str, own: dict[str, str], epoch: int) -> dict[str, Any]:
    """The bill of one distribution; ``own`` are our other distributions that it brings along, with their versions."""
    components = [_own_component(name, stated) for name, stated in sorted(own.items())]
    components += [_component(pin) for pin in pins(LOCKS / f"{part}.txt")]
    root = _own_component(distribution, version)
    content = json.dumps(components, sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, f'{distribution} {version} {content}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, timezone.utc).isoformat(),
            "component": root,
            "properties": [{"name": "agentunit:source", "value": f"locks/{part}.txt"}],
        },
        "components": components,
        "dependencies": [{"ref": root["bom-ref"], "dependsOn": sorted({each["bom-ref"] for each in components})}],
    }


def _own_component(name: str, version: str) -> dict[str, Any]:
    # No package URL: it would name a package of an index, and ours are on none.
    weights = name != "agentunit-eval"
    return {
        "type": "library",
        "bom-ref": f"{name}@{version}",
        "name": name,
        "version": version,
        "licenses": [{"expression": "MIT AND Apache-2.0" if weights else "MIT"}],
    }


def _component(pin: Pin) -> dict[str, Any]:
    url = f"pkg:pypi/{pin.name}@{pin.version}"
    made: dict[str, Any] = {
        "type": "library",
        "bom-ref": url,
        "name": pin.name,
        "version": pin.version,
        "purl": url,
        # CycloneDX has one list of hashes a component; these are of the files that the version consists of.
        "properties": [{"name": "agentunit:sha256", "value": each} for each in pin.hashes],
    }
    if pin.marker is not None:
        made["properties"].append({"name": "agentunit:marker", "value": pin.marker})
        made["bom-ref"] = f"{url}#{pin.marker}"
    return made
