"""Sentences for what went wrong: type, message and place, whatever an exception does to hide them."""

from __future__ import annotations

import os
import sysconfig
import traceback
from types import FrameType, TracebackType

_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_MESSAGE_CHARACTERS = 500
_TRACEBACK_CHARACTERS = 8000


def describe_error(error: BaseException) -> str:
    """One sentence for an exception: type, message and the innermost line of the agent's own code.

    >>> describe_error(ValueError("no  such\\ncity"))
    'ValueError: no such city'
    """
    name, message = type(error).__name__, clipped(_message(error))
    inner = getattr(error, "exceptions", None)
    if isinstance(inner, (tuple, list)) and inner and isinstance(inner[0], BaseException):
        # A group says only how many there were.
        return f"{name}: {message}; the first: {describe_error(inner[0])}"
    place = place_of(error.__traceback__)
    return (f"{name}: {message}" if message else name) + (f" ({place})" if place else "")


def place_of(trace: TracebackType | None) -> str | None:
    """Where in the agent's own code an exception came from, as ``file:line in function``."""
    return _innermost([(frame, line) for frame, line in traceback.walk_tb(trace)])


def place_in(frame: FrameType | None) -> str | None:
    """Where in the agent's own code this frame is at the moment."""
    return _innermost([(each, line) for each, line in traceback.walk_stack(frame)][::-1])


def traceback_text(error: BaseException) -> str:
    """The traceback of an exception from the agent's own frames on, cut to its last part."""
    trace = error.__traceback__
    while trace is not None and _file_of(trace).startswith(_OURS):
        trace = trace.tb_next
    own = trace
    # Between our frames there may be those of an event loop.
    while own is not None and _calls_agents(_file_of(own)):
        own = own.tb_next
    trace = own or trace
    try:
        text = "".join(traceback.format_exception(type(error), error, trace, limit=-30))
    except Exception:  # noqa: BLE001 - an exception may raise while it is being formatted
        text = "".join(traceback.format_tb(trace, limit=-30))
    return text if len(text) <= _TRACEBACK_CHARACTERS else "…" + text[-_TRACEBACK_CHARACTERS:]


def clipped(text: str, characters: int = _MESSAGE_CHARACTERS) -> str:
    """Text on one line and of bounded length.

    >>> clipped("one\\n  two", 5)
    'one t…'
    """
    # Cut before the words are joined: a message may be megabytes long.
    line = " ".join(text[: 4 * characters].split())
    line = line.encode("utf-8", "backslashreplace").decode()
    return line if len(line) <= characters and len(text) <= 4 * characters else line[:characters] + "…"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - its author's bug must not become ours
        return "(its message cannot be read)"


def _innermost(frames: list[tuple[FrameType, int]]) -> str | None:
    """The innermost frame outside of libraries; the innermost of all if there is none; never one of ours."""
    named = [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in frames]
    outside = [each for each in named if not each[0].startswith(_OURS)]
    own = [each for each in outside if not _is_library(each[0])]
    for file, line, function in reversed(own or outside):
        return f"{_short(file)}:{line} in {function}"
    return None


def _is_library(file: str) -> bool:
    return file.startswith((*_LIBRARIES, _PACKAGE, "<frozen")) or any(part in file for part in _INSTALLED)


def _file_of(trace: TracebackType) -> str:
    return trace.tb_frame.f_code.co_filename


def _calls_agents(file: str) -> bool:
    """Whether a frame of this file leads to an agent: one of ours, or of the standard library, as a loop's."""
    if file.startswith(_PACKAGE):
        return True
    return file.startswith((*_LIBRARIES, "<frozen")) and not any(part in file for part in _INSTALLED)


def _short(file: str) -> str:
    here = os.getcwd() + os.sep
    return file.removeprefix(here) if file.startswith(here) else os.path.basename(file)
