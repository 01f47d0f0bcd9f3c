"""The minute that convinces: an export of Langfuse that we did not write becomes a correct comment, without a key.

How long it takes from a clone is printed by the commands themselves; here it is what they say that counts. The figures
of the comment are held against a count by code that knows nothing of AgentUnit (``benchmarks/public_counts``).
"""

from __future__ import annotations

import os
import re
import socket
import tarfile
from pathlib import Path

import pytest
from benchmarks.public_counts import langfuse
from click.testing import CliRunner

from agentunit.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("AGENTUNIT_DATA") or ROOT / ".." / "shared" / "data")
PLACE = "traces/langfuse/seeder/"


@pytest.fixture
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    archive = DATA / "traces.tar.xz"
    if not archive.is_file():
        pytest.skip(f"no {archive}: AGENTUNIT_DATA names the folder of public trace files")
    folder = tmp_path / "langfuse-export"
    folder.mkdir()
    with tarfile.open(archive) as opened:
        for member in opened:
            if member.isfile() and member.name.startswith(PLACE):
                source = opened.extractfile(member)
                assert source is not None
                (folder / Path(member.name).name).write_bytes(source.read())
    monkeypatch.chdir(tmp_path)
    return folder


def test_from_an_export_of_langfuse_to_a_comment(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    run = CliRunner().invoke

    counted = [case for path in sorted(export.iterdir()) for case in langfuse.count(path)]
    tokens = [sum(case["tokens"].get(kind, 0) for kind in ("input", "output")) for case in counted]
    costs = [case["cost"] for case in counted]
    # Tools that are observations of their own; others are only in the messages of the model calls.
    assert {status for case in counted for _, status in case.get("tool_calls", ())} == {"success"}

    doctor = run(cli, ["doctor", export.name])
    assert doctor.exit_code == 0, doctor.output
    assert f"read as langfuse ({len(counted)})" in doctor.output
    assert "token counts" in doctor.output

    score = run(cli, ["score", export.name])
    assert score.exit_code == 0, score.output

    gates = ["tool_success >= 0.8 coverage 0.5", "token_usage <= 1000"]
    named = [part for gate in gates for part in ("--gate", gate)]
    written = run(cli, ["export", export.name, *named, "--to", "comment.md"])
    assert written.exit_code == 1, written.output
    comment = Path("comment.md").read_text(encoding="utf-8")
    assert comment.startswith("### `langfuse-export`: ❌ FAIL\n")
    rows = {line.split("`")[1]: line.split(" | ") for line in comment.splitlines() if line.startswith("| `")}
    assert rows["token_usage"][1].startswith(f"{sum(tokens) / len(tokens):,.0f} ")
    assert rows["token_usage"][2] == f"{len(tokens)}/{len(tokens)}"
    assert rows["cost"][1].startswith(f"${sum(costs) / len(costs):.4f} ")
    assert rows["tool_success"][1].startswith("1.00 ")
    assert "`>= 0.8 coverage 0.5` ✅ met" in rows["tool_success"][-1]
    assert "`<= 1000` ❌ FAIL" in rows["token_usage"][-1]
    # It reads well as plain text, too: no entity but those that keep GitHub from following mentions and addresses.
    shown = comment.partition("<details><summary>Worst cases")[0]
    assert not re.search(r"&#(?!64;|35;|58;|36;|46;)", shown)

    assert run(cli, ["gate", export.name, "--gate", gates[0]]).exit_code == 0
    assert run(cli, ["gate", export.name, "--gate", gates[1]]).exit_code == 1
