"""Locks, bills of materials, the audit's list and the parts of a release that need no network."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path

import pytest
from scripts import audit, release
from scripts.lock import LOCKS
from scripts.requirements import ROOT, name_of, parts, requirements_of
from scripts.sbom import Pin, bill, pins

packaging = pytest.importorskip("packaging.requirements")


@pytest.mark.parametrize("part", parts())
def test_a_lock_has_every_requirement_in_an_allowed_version_with_hashes(part: str) -> None:
    locked = list(pins(LOCKS / f"{part}.txt"))
    assert all(pin.hashes for pin in locked)
    by_name: dict[str, set[str]] = {}
    for pin in locked:
        by_name.setdefault(name_of(pin.name), set()).add(pin.version)
    for requirement in map(packaging.Requirement, requirements_of(part)):
        versions = by_name.get(name_of(requirement.name), set())
        assert versions, f"{part}: {requirement.name} is not locked; make lock"
        allowed = [version for version in versions if requirement.specifier.contains(version, prereleases=True)]
        assert allowed, f"{part}: {requirement} is locked as {versions}; make lock"


def test_there_is_a_lock_for_each_part_and_no_other() -> None:
    assert {path.stem for path in LOCKS.glob("*.txt")} == set(parts())


@pytest.mark.parametrize("part", parts())
def test_a_lock_names_no_index_and_none_of_ours(part: str) -> None:
    text = (LOCKS / f"{part}.txt").read_text(encoding="utf-8")
    assert not re.search(r"://|--index|--find-links|--extra|^agentunit", text, re.M)


def test_a_part_stands_for_what_it_brings_along() -> None:
    assert {name_of(each) for each in requirements_of("base")} < {name_of(each) for each in requirements_of("local")}
    assert requirements_of("local") == requirements_of("local-large")
    assert "genai-prices" in {name_of(each) for each in requirements_of("judge")}


def test_a_lock_is_read_with_its_markers_and_hashes(tmp_path: Path) -> None:
    lock = tmp_path / "a.txt"
    lock.write_text(
        "# a comment\n"
        f"one==1.0 ; python_full_version < '3.11' \\\n    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}\n"
        f"one==2.0 \\\n    --hash=sha256:{'c' * 64}\n"
    )
    first, second = pins(lock)
    assert first == ("one", "1.0", "python_full_version < '3.11'", ("a" * 64, "b" * 64))
    assert second == ("one", "2.0", None, ("c" * 64,))


def test_a_bill_is_the_same_twice_and_its_references_lead_somewhere() -> None:
    made = bill("agentunit-local", "0.1.0", "local", {"agentunit-eval": "0.1.0"}, 1_700_000_000)
    assert json.dumps(made) == json.dumps(
        bill("agentunit-local", "0.1.0", "local", {"agentunit-eval": "0.1.0"}, 1_700_000_000)
    )
    references = [each["bom-ref"] for each in made["components"]]
    assert len(references) == len(set(references))
    assert set(made["dependencies"][0]["dependsOn"]) == set(references)
    assert made["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert not [each for each in made["components"] if each["name"].startswith("agentunit") and "purl" in each]


def test_versions_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {release.versions()['agentunit-eval']}\n" in citation
    assert "\n## Unreleased\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_a_build_that_differs_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    dist.mkdir()
    with tarfile.open(dist / "some_thing-1.0.tar.gz", "w:gz") as archive:
        archive.add(Path(__file__), "some_thing-1.0/file.py")

    def build(project: Path, target: Path, epoch: int, *kinds: str) -> None:
        assert (project / "file.py").exists()
        target.mkdir(exist_ok=True)
        (target / "some_thing-1.0-py3-none-any.whl").write_text(str(target))

    monkeypatch.setattr(release, "build", build)
    (tmp_path / "file.py").touch()
    build(tmp_path, dist, 0)
    with pytest.raises(release.ReleaseError, match="is not reproducible"):
        release.rebuild_and_compare(dist, "some-thing", 0)


def test_the_time_of_a_build_can_be_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert release.source_epoch() == 1_700_000_000


def test_what_the_audit_accepts_is_sorted_and_has_reasons() -> None:
    lines = [line for line in audit.ACCEPTED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines == sorted(lines)
    assert all(len(why.split()) > 3 for why in audit.accepted().values())
    for key in audit.accepted():
        if " " in key:
            assert (ROOT / key.split()[0]).is_file(), key


def test_a_check_that_cannot_be_made_is_skipped_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_index(*_: object, **__: object) -> str:
        raise audit.Skipped("no index can be reached")

    monkeypatch.setattr(audit, "_output", no_index)
    monkeypatch.setattr("sys.argv", ["audit", "vulnerabilities"])
    assert audit.main() == 0
    assert "vulnerabilities  SKIPPED: no index can be reached" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("told", "result"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], []),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "X-1", "aliases": [], "fix_versions": ["2"]}]}],
            ["a 1: X-1, fixed in 2"],
        ),
        ([{"name": "a", "skip_reason": "not found"}], "nothing is known here about 1 packages"),
    ],
)
def test_what_is_known_of_locked_versions(monkeypatch: pytest.MonkeyPatch, told: list[object], result: object) -> None:
    monkeypatch.setattr(audit, "_output", lambda *_, **__: json.dumps({"dependencies": told}))
    monkeypatch.setattr(audit, "LOCKS", type("Locks", (), {"glob": lambda *_: [Path("one")]})())
    monkeypatch.setattr(audit, "pins", lambda _: [Pin("a", "1", None, ())])
    if isinstance(result, str):
        with pytest.raises(audit.Skipped, match=result):
            audit.vulnerabilities()
    else:
        assert audit.vulnerabilities() == result
