"""Which CLIP a name stands for, and what a user without weights is told."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_media import TINY_CLIP, encoded, shape

from agentunit.addons.media.clip import loading
from agentunit.addons.media.clip.loading import HUB_NAMES, clip_label, clip_unready, load_clip, resolved_name
from agentunit.backends.quality import BackendUnavailable


@pytest.fixture(autouse=True)
def nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(loading, "_loaded", {})
    for name in ("AGENTUNIT_CLIP", "AGENTUNIT_CLIP_DOWNLOAD"):
        monkeypatch.delenv(name, raising=False)
    return


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("loading", "torch_runtime"):
        monkeypatch.setattr(
            f"agentunit.addons.media.clip.{module}.find_spec",
            lambda name: None if name in ("torch", "transformers") else 1,
        )


def test_a_folder_with_an_onnx_pair(tmp_path: Path) -> None:
    folder = tmp_path / "our-clip"
    shutil.copytree(TINY_CLIP, folder)
    found = load_clip(str(folder), runtime="onnx")
    assert found.name == "our-clip"
    assert found.runtime.device == "cpu"
    assert len(list(found.encode_images([encoded(shape())])[0])) == 64  # type: ignore[arg-type]


def test_the_layout_of_other_exports(tmp_path: Path) -> None:
    (tmp_path / "onnx").mkdir()
    for path in TINY_CLIP.iterdir():
        shutil.copy(path, tmp_path / "onnx" if path.suffix == ".onnx" else tmp_path)
    assert load_clip(str(tmp_path), runtime="onnx").encode_texts(["a red circle"])


def test_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_clip(str(TINY_CLIP), runtime="onnx") is load_clip(str(TINY_CLIP), runtime="onnx")
    monkeypatch.setenv("AGENTUNIT_CLIP", str(TINY_CLIP))
    assert load_clip(runtime="onnx") is load_clip(str(TINY_CLIP), runtime="onnx")


def test_the_variable_takes_the_place_of_the_default_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolved_name("ViT-B/32") == "ViT-B/32"
    monkeypatch.setenv("AGENTUNIT_CLIP", "/somewhere")
    assert resolved_name("ViT-B/32") == "/somewhere"
    assert resolved_name("ViT-L/14") == "ViT-L/14"
    monkeypatch.setenv("AGENTUNIT_CLIP", "")
    assert resolved_name("ViT-B/32") == "ViT-B/32"


@pytest.mark.usefixtures("no_torch")
def test_whether_the_default_can_run_is_told_without_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "export AGENTUNIT_CLIP=FOLDER" in (clip_unready() or "")
    for place, reason in (
        (str(TINY_CLIP), None),
        (str(tmp_path), f"{tmp_path} holds no CLIP"),
        (str(tmp_path / "gone"), "a CLIP must be one of"),
        ("laion/some-clip", "torch is not installed"),
        ("open_clip:ViT-B-32/file", "torch is not installed"),
    ):
        monkeypatch.setenv("AGENTUNIT_CLIP", place)
        told = clip_unready()
        assert told is None if reason is None else (told or "").startswith(reason)
    (tmp_path / "model.safetensors").touch()
    monkeypatch.setenv("AGENTUNIT_CLIP", str(tmp_path))
    assert (clip_unready() or "").startswith("torch is not installed")
    assert loading._loaded == {}


@pytest.mark.parametrize("name", HUB_NAMES)
@pytest.mark.usefixtures("no_torch")
def test_without_weights_a_user_reads_one_sentence_with_commands(name: str) -> None:
    with pytest.raises(BackendUnavailable) as caught:
        load_clip(name)
    message = str(caught.value)
    assert "\n" not in message
    assert ". " not in message
    command = "'pip install torch transformers Pillow && export AGENTUNIT_CLIP_DOWNLOAD=1'"
    for part in (repr(name), command, "export AGENTUNIT_CLIP=FOLDER", HUB_NAMES[name]):
        assert part in message


@pytest.mark.usefixtures("no_torch")
def test_a_checkpoint_without_torch_names_the_command(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copy(TINY_CLIP / name, tmp_path)
    with pytest.raises(
        BackendUnavailable, match="torch is not installed; pip install torch transformers Pillow adds it"
    ):
        load_clip(str(tmp_path))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ViT-B32", r"did you mean 'ViT-B/32'\?"),
        ("vit", "a CLIP must be one of ViT-B/32"),
        ("/no/such/folder", "an existing folder"),
        ("./nowhere", "an existing folder"),
        ("a/b/c", "organization/model"),
        ("open_clip:ViT-B-32", "is written open_clip:MODEL/PRETRAINED"),
    ],
)
def test_names_that_stand_for_nothing(name: str, words: str) -> None:
    with pytest.raises(BackendUnavailable, match=words):
        load_clip(name)


def test_an_empty_folder_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match=r"neither a checkpoint .* nor an ONNX pair"):
        load_clip(str(tmp_path))


@pytest.mark.parametrize("missing", ["tokenizer.json", "text_model.onnx"])
def test_an_incomplete_pair_says_what_must_be_there(tmp_path: Path, missing: str) -> None:
    shutil.copytree(TINY_CLIP, tmp_path, dirs_exist_ok=True)
    (tmp_path / missing).unlink()
    with pytest.raises(BackendUnavailable, match=r"must hold vision_model\.onnx, text_model\.onnx and tokenizer\.json"):
        load_clip(str(tmp_path), runtime="onnx")


def test_a_broken_graph_says_so(tmp_path: Path) -> None:
    shutil.copytree(TINY_CLIP, tmp_path, dirs_exist_ok=True)
    (tmp_path / "vision_model.onnx").write_bytes(b"no graph")
    with pytest.raises(BackendUnavailable, match="holds no graphs that can run"):
        load_clip(str(tmp_path), runtime="onnx")


def test_what_is_fetched_is_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool]] = []

    def watched(checkpoint: str, name: str, *, device: str | None, download: bool) -> None:
        asked.append((checkpoint, download))
        raise BackendUnavailable("nothing there")

    monkeypatch.setattr(loading, "transformers_runtime", watched)
    monkeypatch.setattr(loading, "find_spec", lambda name: 1)
    for name, allowed in (("ViT-B/32", ""), ("ViT-B/32", "0"), ("ViT-B/16", "1"), ("some/model", "")):
        monkeypatch.setenv("AGENTUNIT_CLIP_DOWNLOAD", allowed)
        with pytest.raises(BackendUnavailable, match=r"nothing there|no weights for CLIP"):
            load_clip(name)
    assert asked == [
        ("openai/clip-vit-base-patch32", False),
        ("openai/clip-vit-base-patch32", False),
        ("openai/clip-vit-base-patch16", True),
        ("some/model", True),
    ]


def test_an_unknown_runtime() -> None:
    with pytest.raises(ValueError, match=re.escape("load_clip: runtime must be onnx or torch; received 'jax'")):
        load_clip(str(TINY_CLIP), runtime="jax")


def test_labels() -> None:
    assert clip_label(str(TINY_CLIP)) == "tiny_clip"
    assert clip_label("ViT-L/14@336px") == "ViT-L/14@336px"
