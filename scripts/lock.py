"""Write the lock files of locks/, one for each part, with hashes: ``python -m scripts.lock [--upgrade] [PART…]``.

Needs uv and a package index. Versions that are locked stay, unless a requirement no longer allows them or ``--upgrade``
asks for the newest. The files hold for every supported Python and system, and name no index.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

from scripts.requirements import ROOT, parts, requirements_of

LOCKS = ROOT / "locks"
OLDEST_PYTHON = "3.10"
_HEADER = """\
# The packages of the part {part!r}, written by 'make lock'; all of them are other people's.
# pip install --require-hashes -r locks/{part}.txt
"""


def lock(part: str, *, upgrade: bool) -> None:
    """Write the lock file of one part."""
    target = LOCKS / f"{part}.txt"
    if upgrade:
        target.unlink(missing_ok=True)
    command = ["uv", "pip", "compile", "-", "--universal", "--generate-hashes", "--python-version", OLDEST_PYTHON]
    # A machine may know more sources than the index; a lock must not depend on them.
    command += ["--no-config", "--no-header", "--no-annotate", "--quiet", "--output-file", str(target)]
    subprocess.run(command, input="\n".join(requirements_of(part)), text=True, check=True, cwd=ROOT)
    target.write_text(_HEADER.format(part=part) + target.read_text(encoding="utf-8"), encoding="utf-8")


def main() -> int:
    """Lock the parts that are named, else all."""
    if shutil.which("uv") is None:
        print("lock: uv is not installed. Try: make lock (or pip install uv)", file=sys.stderr)
        return 2
    wanted = [argument for argument in sys.argv[1:] if not argument.startswith("-")] or parts()
    unknown = sorted(set(wanted) - set(parts()))
    if unknown:
        print(f"lock: there is no part {unknown[0]!r}. Parts: {', '.join(parts())}", file=sys.stderr)
        return 2
    LOCKS.mkdir(exist_ok=True)
    for number, part in enumerate(wanted, 1):
        print(f"{number}/{len(wanted)} {part} …", flush=True)
        lock(part, upgrade="--upgrade" in sys.argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
