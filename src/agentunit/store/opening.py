"""The one way to a store: by the path of a SQLite file, or by a URL.

What opens the database behind a URL is found by its scheme. A package adds one through the entry-point group
``agentunit.stores``: a function that takes the URL and ``read_only``, and returns a ``Database``.
"""

from __future__ import annotations

import os
import re
from functools import cache, wraps
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from agentunit.plugins import Plugin, PluginError, PluginTable, require
from agentunit.store.database import Database
from agentunit.store.run_store import RunStore
from agentunit.store.schema import StoreError

DEFAULT_PATH = ".agentunit/runs.db"
ENTRY_POINT_GROUP = "agentunit.stores"

_OWN_STORES = {
    "sqlite": "agentunit.store.sqlite:SqliteDatabase",
    "postgresql": "agentunit.addons.scale.postgres:PostgresDatabase",
    "postgres": "agentunit.addons.scale.postgres:PostgresDatabase",
}

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_CREDENTIALS = re.compile(r"(?<=://)([^/?#\s@:]*):\S*@")
_SECRET_PARAMETER = re.compile(r"(?<=[?&])(password|sslpassword)=[^&#\s]*&?", re.IGNORECASE)


class OpensDatabase(Protocol):
    """What a scheme stands for."""

    def __call__(self, address: str, /, *, read_only: bool) -> Database:
        """The database at an address; with ``read_only`` nothing is made or changed."""


def open_store(address: str | os.PathLike[str] = DEFAULT_PATH, *, read_only: bool = False) -> RunStore:
    """The store at a path or URL: ``runs.db``, ``sqlite:///runs.db``, ``postgresql://user@host/database``.

    With ``read_only`` nothing is made or changed, and older tables are read as they are.
    """
    named = os.fspath(address)
    file = sqlite_file(named)
    if file is not None:
        return RunStore(_opener("sqlite")(file, read_only=read_only))
    return RunStore(_opener(_scheme_of(named))(named, read_only=read_only))


@cache
def store_table() -> PluginTable[OpensDatabase]:
    """What opens the database of a store, by the scheme of its URL."""
    return PluginTable("store", ENTRY_POINT_GROUP, _OWN_STORES, adopt=_adopted)


def _opener(scheme: str) -> OpensDatabase:
    if scheme in _OWN_STORES:
        # Without a look at what is installed, which takes as long as a small store.
        own: OpensDatabase = store_table().own[scheme].load()
        return own
    try:
        return store_table().load(scheme)
    except PluginError as error:
        raise StoreError(str(error)) from None


def _adopted(made: Any, plugin: Plugin) -> OpensDatabase:
    """What opens a database; that of another package is named in an error that nobody foresaw."""
    if not callable(made):
        raise TypeError(f"what its package offers is no function that opens a database; received {made!r:.80}")
    if plugin.package is None:
        own: OpensDatabase = made
        return own

    @wraps(made)
    def opened(address: str, *, read_only: bool) -> Database:
        try:
            database: Database = made(address, read_only=read_only)
            require(database, "database", *(name for name in vars(Database) if not name.startswith("_")))
        except StoreError:
            raise
        except Exception as error:
            said = shown_address(str(error).replace(address, shown_address(address)))
            raise StoreError(
                f"{plugin} cannot open {shown_address(address)}: {type(error).__name__}: {said}"
            ) from error
        return database

    return opened


def _scheme_of(address: str) -> str:
    """The scheme of a URL in small letters; ``sqlite`` for a path."""
    found = _SCHEME.match(address)
    return "sqlite" if found is None else found[1].lower()


def sqlite_file(address: str) -> str | None:
    """The SQLite file that an address names; ``None`` when it is a server's, and an error when nothing knows it.

    As everywhere, three slashes begin a relative path and four an absolute one.

    >>> sqlite_file("runs.db"), sqlite_file("sqlite:///a%20b.db"), sqlite_file("sqlite:////srv/runs.db")
    ('runs.db', 'a b.db', '/srv/runs.db')
    """
    if _SCHEME.match(address) is None:
        return address
    scheme = _scheme_of(address)
    if scheme == "sqlite":
        parts = urlsplit(address)
        if parts.netloc or not parts.path.strip("/") or parts.query:
            raise StoreError(f"a SQLite store is sqlite:///PATH or only PATH; received {shown_address(address)!r}")
        return unquote(parts.path[1:])
    if scheme not in _OWN_STORES and scheme not in store_table().brought:
        also = "".join(f", {name}://…" for name in store_table().brought)
        raise StoreError(
            f"a store is a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE{also}; "
            f"received {shown_address(address)!r}"
        )
    return None


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
