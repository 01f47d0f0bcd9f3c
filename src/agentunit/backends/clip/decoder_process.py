"""The other end of ``decoders``: a process that turns pictures into the squares that a model sees.

Reads from standard input: a line of JSON with settings and limits, then each picture as its length (8 bytes) and its
bytes. Answers on standard output with one byte: 0 and the pixels, or 1, a length (4 bytes) and the reason.
"""

from __future__ import annotations

import json
import struct
import warnings
from typing import BinaryIO

from agentunit.backends.clip.preprocessing import cropped
from agentunit.backends.clip.settings import ClipSettings
from agentunit.backends.media.images import decode_image
from agentunit.backends.media.limits import MediaLimits, MediaProblem

LENGTH, REASON_LENGTH = struct.Struct("<Q"), struct.Struct("<I")
DONE, REFUSED, READY = b"\0", b"\1", b"\2"


def serve(given: BinaryIO, answers: BinaryIO) -> None:
    """Decode what comes until nothing comes any more."""
    # What a decoder only warns of is neither here nor there.
    warnings.simplefilter("ignore")
    told = json.loads(given.readline())
    settings = ClipSettings(resize_to=told["resize_to"], side=told["side"], resample=told["resample"])
    limits = MediaLimits(**told["limits"])
    answers.write(READY)
    answers.flush()
    while header := given.read(LENGTH.size):
        content = given.read(LENGTH.unpack(header)[0])
        try:
            pixels = cropped(decode_image(content, limits), settings).tobytes()
        except MediaProblem as problem:
            reason = str(problem).encode("utf-8", "replace")
            answers.write(REFUSED + REASON_LENGTH.pack(len(reason)) + reason)
        else:
            answers.write(DONE)
            answers.write(pixels)
        answers.flush()
