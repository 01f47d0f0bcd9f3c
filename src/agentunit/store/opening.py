"""The one way to a store: by the path of a SQLite file, or by a URL."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from agentunit.store.protocol import RunStore
from agentunit.store.schema import StoreError

DEFAULT_PATH = ".agentunit/runs.db"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_POSTGRES = ("postgresql", "postgres")
_CREDENTIALS = re.compile(r"(?<=://)([^/?#\s@:]*):\S*@")
_SECRET_PARAMETER = re.compile(r"(?<=[?&])(password|sslpassword)=[^&#\s]*&?", re.IGNORECASE)


def open_store(address: str | os.PathLike[str] = DEFAULT_PATH, *, read_only: bool = False) -> RunStore:
    """The store at a path or URL: ``runs.db``, ``sqlite:///runs.db``, ``postgresql://user@host/database``.

    With ``read_only`` nothing is made or changed, and older tables are read as they are.
    """
    named = os.fspath(address)
    file = sqlite_file(named)
    if file is not None:
        from agentunit.store import sqlite

        return sqlite.Store(file, read_only=read_only)
    from agentunit.store.postgres import PostgresStore

    return PostgresStore(named, read_only=read_only)


def sqlite_file(address: str) -> str | None:
    """The SQLite file that an address names; ``None`` when it is a server's, and an error when nothing knows it.

    As everywhere, three slashes begin a relative path and four an absolute one.

    >>> sqlite_file("runs.db"), sqlite_file("sqlite:///a%20b.db"), sqlite_file("sqlite:////srv/runs.db")
    ('runs.db', 'a b.db', '/srv/runs.db')
    """
    scheme = _SCHEME.match(address)
    if scheme is None:
        return address
    if scheme[1].lower() in _POSTGRES:
        return None
    if scheme[1].lower() == "sqlite":
        parts = urlsplit(address)
        if parts.netloc or not parts.path.strip("/") or parts.query:
            raise StoreError(f"a SQLite store is sqlite:///PATH or only PATH; received {shown_address(address)!r}")
        return unquote(parts.path[1:])
    raise StoreError(
        f"a store is a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE; received {shown_address(address)!r}"
    )


def may_exist(address: str) -> bool:
    """Whether runs can be looked for at an address: a server is asked, a file must be there."""
    file = sqlite_file(address)
    return file is None or os.path.exists(file)


def shown_address(address: str) -> str:
    """An address, or any text that quotes one, without passwords.

    >>> shown_address("postgresql://ada:hunter2@db.example/evals?password=x&sslmode=require")
    'postgresql://ada@db.example/evals?sslmode=require'
    """
    scheme = _SCHEME.match(address)
    if scheme is not None:
        # A password that was not quoted may hold anything, so only the last "@" is sure to be behind it.
        credentials, at, place = address[scheme.end() :].rpartition("@")
        address = scheme[0] + credentials.partition(":")[0] + at + place
    return _SECRET_PARAMETER.sub("", _CREDENTIALS.sub(r"\1@", address)).rstrip("?&")
