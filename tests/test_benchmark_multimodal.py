"""The validity rows of captions and transcripts, on data made up so that the figures are known."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from agentunit.backends import sentence_encoders

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.validity.data import LabelledData
    from benchmarks.validity.rows import producers

    def measure(family: str, dataset: str, rows: list[dict[str, Any]]) -> Any:
        (tmp_path / "dev").mkdir(exist_ok=True)
        lines = "\n".join(json.dumps(row) for row in rows)
        (tmp_path / "dev" / f"{dataset}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
        return producers()[family](LabelledData(tmp_path))

    return measure


def pair(index: int, first: str, second: str, votes: tuple[int, int]) -> dict[str, Any]:
    votes_of = {"nbrA": str(votes[0]), "nbrB": str(votes[1])}
    return {"id": index, "reference": "le chat dort bien", "hypA": first, "hypB": second, **votes_of}


PAIRS = [
    pair(0, "le chat dort bien", "le chien mord", (7, 0)),  # every score is right
    pair(1, "le chat dort lien", "le chat dort mal", (7, 0)),  # words tie, letters do not
    pair(2, "un chien dort", "le chat dort rien", (7, 0)),  # every score is wrong
    pair(3, "le chat dort bien", "le chat", (5, 2)),
    pair(4, "Le chat dort bien.", "le chat dort rien", (0, 7)),  # people minded what the metric normalises away
    pair(5, "le chat", "le chat dort", (4, 3)),
]


def test_choices_are_counted_as_the_paper_does(measured: Any) -> None:
    family = measured("audio_transcription_quality", "asr_hats", PAIRS)
    by_place = {(figure.scorer.name, figure.dataset): figure for figure in family.figures}
    unanimous, majority, everything = dict.fromkeys(figure.dataset for figure in family.figures)
    # Of pairs 0, 1, 2 and 4, words get 0 and 4 right, letters 1 as well, and words without case and dots only 0.
    assert by_place["WER of jiwer", unanimous].value == 0.5
    assert by_place["CER of jiwer", unanimous].value == 0.75
    assert by_place["audio_transcription_quality", unanimous].value == 0.25
    assert by_place["WER of jiwer", majority].value == 0.6
    assert by_place["WER of jiwer", everything].value == 0.5
    assert [by_place["CER of jiwer", each].n for each in (unanimous, majority, everything)] == [4, 5, 6]
    assert family.trust == []


def captions() -> list[dict[str, Any]]:
    """The more words of the reference a caption has, the better people like it; captions of people break the rule."""
    words = ["a", "dog", "runs", "over", "green", "grass"]
    systems = [
        {"id": f"{image}:{n}", "image": image, "caption": " ".join(words[:n]), "refs": [" ".join(words), "some bus"],
         "human_score": n / 2, "model": "system"}
        for image in ("one", "two", "three", "four") for n in range(1, 7)
    ]  # fmt: skip
    people = [{**systems[0], "id": f"p{n}", "image": f"p{n}", "human_score": 5.0, "model": "Human"} for n in range(4)]
    return [*systems, *people]


def test_captions_are_ranked_with_and_without_those_of_people(measured: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_encoders, "find_spec", lambda name: None)
    family = measured("image_caption_accuracy", "caption_thumb", captions())
    values = {(figure.scorer.title, figure.dataset): figure for figure in family.figures}
    words_alone = values["image_caption_accuracy (keywords)", "thumb, captions of systems only"]
    assert (words_alone.value, words_alone.n) == (1.0, 24)
    assert values["image_caption_accuracy (keywords)", "thumb"].value < 0.9
    assert values["length", "thumb, captions of systems only"].value == 1.0
    assert any("was not measured" in remark for remark in family.remarks)


@pytest.mark.skipif(sentence_encoders.sentences_unready() is not None, reason="agentunit-local is not installed")
def test_the_mix_stands_beside_its_parts(measured: Any) -> None:
    family = measured("image_caption_accuracy", "caption_thumb", captions())
    assert {figure.scorer.title for figure in family.headline} == {
        "image_caption_accuracy (all-MiniLM-L6-v2)",
        "image_caption_accuracy (keywords)",
        "meaning alone",
        "length",
    }
    assert {figure.backend for figure in family.trust} == {"keywords"}
