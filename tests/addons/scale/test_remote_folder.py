"""The folder of a job by URL keeps units as one on a disk does."""

from __future__ import annotations

from uuid import uuid4

import pytest

from agentunit.addons.scale.parallel.folder import Identity, JobFolder, JobFolderError
from agentunit.addons.scale.parallel.work import UnitEnd
from agentunit.addons.scale.several_processes import RemoteJobFolder
from agentunit.core.score_block import Block

fsspec = pytest.importorskip("fsspec")
IDENTITY = Identity({"runs.jsonl": [1]}, {}, {})


def parts(spans):
    spans.write(b"spans")
    yield Block(1, [], [], 0, 0, 5), b"line\n"
    yield UnitEnd({}, {}, 2)


@pytest.mark.parametrize("kind", [JobFolder, RemoteJobFolder])
def test_units_are_kept_until_the_job_ends(kind, tmp_path):
    is_remote = kind is RemoteJobFolder
    path = f"memory://{uuid4().hex}/scores.blocks" if is_remote else str(tmp_path / "scores.blocks")
    system, inner = fsspec.core.url_to_fs(path)
    with pytest.raises(JobFolderError, match="nothing to continue"):
        kind(path, IDENTITY, resume=True)
    system.makedirs(inner)
    system.pipe_file(f"{inner}/mine.txt", b"not theirs")
    first = kind(path, IDENTITY, resume=False)
    assert first.is_there()
    first.write(3, parts)
    names = {each.rpartition(".")[2] for each in system.ls(inner, detail=False)}
    assert names == {"txt", "json", "columns", "lines", "spans"}
    again = kind(path, IDENTITY, resume=True)
    assert [again.is_done(number) for number in (2, 3)] == [False, True]
    block, end = again.blocks(3)
    assert (block.n_line_bytes, end.n_bad, again.end(3).n_bad) == (5, 2, 2)
    with again.open(3, "lines") as lines, again.open(3, "spans") as spans, again.open(2, "spans") as none:
        assert (lines.read(), spans.read(), none.read()) == (b"line\n", b"spans", b"")
    with pytest.raises(JobFolderError, match="another one"):
        kind(path, Identity({"runs.jsonl": [2]}, {}, {}), resume=True)
    again.remove()
    assert [each.rpartition("/")[2] for each in system.ls(inner, detail=False)] == ["mine.txt"]
