"""Keys of a terminal one by one, without Enter. None that is pressed while the program works is lost."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

_END_OF_INPUT = "\x04"
_ESCAPE = b"\x1b"
# The bytes of an arrow key come together; a person needs longer for two keys.
_REST_OF_KEY_S = 0.05


class TerminalKeys:
    """The keyboard. Where the system has no terminal settings (Windows), each key is read by click."""

    def __init__(self) -> None:
        self._is_single = False

    @contextmanager
    def single(self) -> Iterator[None]:
        """Within it keys come at once and are not shown; Ctrl-C still interrupts."""
        try:
            import termios
            import tty
        except ImportError:
            yield
            return
        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        try:
            # Not click's way for each key: it throws away what was pressed since the last one.
            tty.setcbreak(terminal, termios.TCSADRAIN)
            self._is_single = True
            yield
        finally:
            self._is_single = False
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)

    @contextmanager
    def lines(self) -> Iterator[None]:
        """Within it, inside of ``single``, the terminal shows and edits lines as usual."""
        if not self._is_single:
            yield
            return
        import termios
        import tty

        terminal = sys.stdin.fileno()
        settings = termios.tcgetattr(terminal)
        settings[3] |= termios.ICANON | termios.ECHO
        try:
            termios.tcsetattr(terminal, termios.TCSADRAIN, settings)
            yield
        finally:
            tty.setcbreak(terminal, termios.TCSADRAIN)

    def read(self) -> str:
        """The next key: a character, or the sequence of an arrow; "q" at the end of the input."""
        if not self._is_single:
            try:
                return click.getchar()
            except EOFError:
                return "q"
        terminal = sys.stdin.fileno()
        received = os.read(terminal, 1)
        if received == _ESCAPE:
            while len(received) < 8 and select.select([terminal], [], [], _REST_OF_KEY_S)[0]:
                received += os.read(terminal, 1)
                if len(received) > 2 and (received[-1:].isalpha() or received.endswith(b"~")):
                    break
        else:
            # The first byte of a character of UTF-8 says how many follow.
            following = (received[:1] >= b"\xc0") + (received[:1] >= b"\xe0") + (received[:1] >= b"\xf0")
            received += os.read(terminal, following) if following else b""
        key = received.decode("utf-8", "replace")
        return "q" if key in ("", _END_OF_INPUT) else key
