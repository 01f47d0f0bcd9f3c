"""The other end of ``decoders``: a process that turns pictures into the squares that a model sees.

Reads from standard input: a line of JSON with settings, limits and the file whose memory is shared, then, again and
again, a line of JSON with the lengths of a few pictures, and their bytes. Their squares go into the shared memory, one
after the other; a line of JSON on standard output says why a picture has none, and ``null`` for each that has.
"""

from __future__ import annotations

import json
import warnings
from mmap import mmap
from typing import BinaryIO

from agentunit.backends.clip.preprocessing import bytes_of_square, decode_into
from agentunit.backends.clip.settings import ClipSettings
from agentunit.backends.media.limits import MediaLimits


def serve(given: BinaryIO, answers: BinaryIO) -> None:
    """Decode what comes until nothing comes any more."""
    # What a decoder only warns of is neither here nor there.
    warnings.simplefilter("ignore")
    told = json.loads(given.readline())
    settings = ClipSettings(resize_to=told["resize_to"], side=told["side"], resample=told["resample"])
    limits = MediaLimits(**told["limits"])
    shared = memoryview(mmap(told["shared"], 0))
    n_bytes = bytes_of_square(settings)
    rooms = [shared[start : start + n_bytes] for start in range(0, len(shared), n_bytes)]
    _answer(answers, [])
    while header := given.readline():
        # All are read before anything is answered: neither end waits for the other to read.
        contents = [given.read(length) for length in json.loads(header)]
        _answer(answers, decode_into(contents, rooms, settings, limits))


def _answer(answers: BinaryIO, reasons: list[str | None]) -> None:
    answers.write(json.dumps(reasons).encode() + b"\n")
    answers.flush()
