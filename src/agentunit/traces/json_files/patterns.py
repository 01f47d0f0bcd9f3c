"""Patterns that find where JSON values end, for an engine that takes linear time whatever the input."""

from __future__ import annotations

from typing import Any

import re2

_WRITTEN_OUT_NESTING = 40

_IN_STRING = r'(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f])*'


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 << 20
    return re2.compile(pattern.encode("latin-1"), options)


def _container(or_cut: str, or_cut_string: str) -> str:
    """A bracketed value with its nesting written out, both kinds of brackets alike.

    Written like this, with one copy a level, its end is found in a single linear pass of a compiled automaton.
    """
    pattern = ""
    for _ in range(_WRITTEN_OUT_NESTING):
        inner = f"|{pattern}" if pattern else ""
        pattern = rf'[\[{{](?:[^\[\]{{}}"]|"{_IN_STRING}(?:"{or_cut_string}){inner})*(?:[\]}}]{or_cut})'
    return pattern


CONTAINER_OR_CUT = _compiled(_container(r"|\z", r"|\\?\z"))
STRING_OR_CUT = _compiled(rf'"{_IN_STRING}(?:"|\\?\z)')
WHOLE_CONTAINER = _compiled(_container("", ""))
WHOLE_STRING = _compiled(rf'"{_IN_STRING}"')
SCALAR = _compiled(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|Infinity)|true|false|null|NaN")
WORD = _compiled(r"[-+.0-9A-Za-z]+")
REST_OF_STRING = _compiled(_IN_STRING)
TO_BRACKET = _compiled(rf'(?:[^\[\]{{}}"]|"{_IN_STRING}")*')
WHITE_SPACE = _compiled(r"[ \t\r\n]*")
FIRST_NAME = _compiled(r'\{[ \t]*"[^"\\\x00-\x1f]{1,64}"[ \t]*:')
LINE_OF_JSON = _compiled(r"\n[\[{]")
