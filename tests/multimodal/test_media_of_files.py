"""Paths that stand in files lead nowhere but beside their file, unless the user names another folder."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from kept_records import add_record

import agentunit
from agentunit.backends.media_sources import MediaAccess, MediaProblem, read_source
from agentunit.cli.main import cli
from agentunit.core.case import DatasetCase, origin_of
from agentunit.core.codec import decode_record, encode_record
from agentunit.core.records import Record
from agentunit.core.results import InputError, Score
from agentunit.datasets.readers import load_dataset
from agentunit.engine.scoring.rescoring import score_run
from agentunit.multimodal.metrics import AudioTranscriptionMetric, CrossModalGroundingMetric
from agentunit.store.sqlite import Store
from agentunit.traces.expected import ExpectedAnswers

PICTURE = Path(__file__).parents[1] / "data" / "media"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    agentunit.configure(media_root=None)


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A folder of data, with a recording inside and another beside the folder."""
    folder = tmp_path / "inside"
    (folder / "media").mkdir(parents=True)
    for place in (folder / "media" / "a.wav", tmp_path / "secret.wav"):
        place.write_bytes(b"RIFF" + b"\0" * 40)
    (folder / "link.wav").symlink_to(tmp_path / "secret.wav")
    return folder


HEARD: list[str] = []


def recognizer(path: str) -> str:
    HEARD.append(path)
    return "ten"


def metric(**parameters: Any) -> AudioTranscriptionMetric:
    HEARD.clear()
    return AudioTranscriptionMetric(recognizer=recognizer, **parameters)


def written(folder: Path, path: str) -> Path:
    line = {"v": 1, "case": {"id": "q", "metadata": {"audio_path": path}}, "outcome": "ten"}
    (folder / "records.jsonl").write_text(json.dumps(line))
    return folder / "records.jsonl"


def scored(folder: Path, path: str, **parameters: Any) -> Score:
    run = agentunit.score(agentunit.read_records(written(folder, path)), [metric(**parameters)])
    return next(iter(run)).scores["audio_transcription_quality"]


def outside(folder: Path) -> list[str]:
    return ["../secret.wav", str(folder.parent / "secret.wav"), "link.wav", "media/../../secret.wav", "/etc/passwd"]


def test_a_path_in_a_file_leads_to_what_lies_beside_it(
    inside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in ("media/a.wav", str(inside / "media" / "a.wav")):
        assert scored(inside, path).value == 1.0
        assert [str(inside / "media" / "a.wav")] == HEARD


@pytest.mark.parametrize("number", range(5))
def test_a_path_in_a_file_leads_nowhere_else(inside: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.chdir(inside.parent)
    found = scored(inside, outside(inside)[number])
    assert (found.value, found.status, HEARD) == (None, "error", [])
    assert "the folder of the file that names it; --media-root FOLDER" in found.result.detail["reason"]


def test_the_user_names_another_folder(inside: Path) -> None:
    assert scored(inside, "secret.wav", media_root=inside.parent).value == 1.0
    agentunit.configure(media_root=inside.parent)
    assert scored(inside, "secret.wav").value == 1.0
    assert scored(inside, "/etc/passwd").value is None
    with pytest.raises(ValueError, match="media_root must be a folder"):
        agentunit.configure(media_root=inside / "nowhere")


def test_a_case_made_in_python_names_files_anywhere(inside: Path) -> None:
    case = DatasetCase("q", metadata={"audio_path": str(inside.parent / "secret.wav")})
    assert metric().evaluate(case, None, "ten").value == 1.0


def test_no_file_can_say_where_it_came_from(inside: Path) -> None:
    for name in ("origin", "__dict__", "__extra__"):
        line = json.dumps({"v": 1, "case": {"id": "q", name: {"origin": "/"}}, "outcome": "ten"})
        assert origin_of(decode_record(line).case) is None
    (record,) = agentunit.read_records(written(inside, "media/a.wav"))
    assert isinstance(record, Record)
    assert origin_of(record.case) == str(inside)
    assert str(inside) not in encode_record(record).decode()


def test_datasets_keep_their_folder_and_expected_answers_bring_theirs(inside: Path) -> None:
    (inside / "cases.csv").write_text("query,audio_path\nq,media/a.wav\n")
    (case,) = load_dataset("cases.csv", folder=inside)
    assert (case.id, origin_of(case)) == ("case-1", str(inside))
    record = Record(DatasetCase("case-1"))
    ExpectedAnswers([case]).join(record)
    assert origin_of(record.case) == str(inside)
    assert metric().evaluate(record.case, None, "ten").value == 1.0


def test_spans_and_sessions_are_files_too(inside: Path) -> None:
    record = {"case": {"id": "t"}, "trace": {"metadata": {"session_id": "s"}}, "outcome": "ten"}
    (inside / "r.jsonl").write_text(json.dumps(record))
    for group_by in ("trace", "session"):
        for each in agentunit.read_records(inside / "r.jsonl", group_by=group_by):  # type: ignore[arg-type]
            assert not isinstance(each, InputError)
            assert origin_of(each.case) == str(inside)


def test_a_stored_run_stays_in_the_folder_of_its_dataset_or_the_working_directory(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(inside)
    secret = str(inside.parent / "secret.wav")
    for path, cases, settings, value in (
        ("media/a.wav", None, {}, 1.0),
        (secret, None, {}, None),
        (secret, [DatasetCase("q")], {}, 1.0),
        (secret, [DatasetCase("q")], {"foreign": True}, None),
    ):
        with Store(inside / "runs.db") as store:
            header = store.create_run("s", agentunit_version="1", settings=settings)
            record = Record(DatasetCase("q", metadata={"audio_path": path}), outcome="ten")
            add_record(store, header.id, 0, 0, record, failed=False, elapsed_s=0.0)
            score_run(store, header.id, [metric()], cases=cases)
            ((_, row),) = store.score_rows(header.id)
            assert row.value == value


def test_pictures_are_confined_as_recordings_are(inside: Path, tiny_clip: Any) -> None:
    picture = next(PICTURE.glob("*.png"), None) or next(PICTURE.glob("*.jpg"))
    shutil.copy(picture, inside / f"in{picture.suffix}")
    shutil.copy(picture, inside.parent / f"out{picture.suffix}")
    data = "data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode()
    values = []
    for path in (f"in{picture.suffix}", f"../out{picture.suffix}", data):
        line = {"case": {"id": "q", "metadata": {"image_path": path}}, "outcome": "a cat"}
        (inside / "r.jsonl").write_text(json.dumps(line))
        grounding = CrossModalGroundingMetric(encoder=tiny_clip)
        (case,) = agentunit.score(agentunit.read_records(inside / "r.jsonl"), [grounding])
        values.append(case.scores["cross_modal_grounding"])
    assert values[0].value is not None
    assert values[1].value is None
    assert f"../out{picture.suffix} is outside of {inside}, the folder of the file" in values[1].result.detail["reason"]
    assert values[2].value == values[0].value


def test_the_command_line_names_the_folder(inside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(inside)
    (inside / "own.py").write_text(
        "from agentunit.multimodal.metrics import AudioTranscriptionMetric\n"
        "heard = AudioTranscriptionMetric(recognizer=lambda path: 'ten')\n"
    )
    command = ["score", str(written(inside, "../secret.wav")), "-m", "own:heard", "--json"]
    assert CliRunner().invoke(cli, command).exit_code == 3
    written(inside, "secret.wav")
    done = CliRunner().invoke(cli, [*command, "--media-root", str(inside.parent)])
    assert done.exit_code == 0, done.output


def test_reading_outside_of_a_root_is_refused_at_the_source(inside: Path) -> None:
    with pytest.raises(MediaProblem, match="is outside of the allowed folder"):
        read_source("/etc/passwd", MediaAccess(inside))
