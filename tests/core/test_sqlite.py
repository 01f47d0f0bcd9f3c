"""SQLite files: opened privately, migrated as a whole or not at all, and read without being changed."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from agentunit.core.sqlite import SqliteFile, UnknownSchema, check_schema, migrate, schema_version, transaction

FIRST = ("CREATE TABLE notes (text TEXT)",)
SECOND = ("ALTER TABLE notes ADD COLUMN author TEXT", "CREATE INDEX by_author ON notes (author)")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "notes.db"


def texts(connection: sqlite3.Connection) -> list[str]:
    return [text for (text,) in connection.execute("SELECT text FROM notes")]


def test_a_new_file_is_its_owners_alone_and_is_written_while_others_read(file: Path) -> None:
    opened = SqliteFile(file)
    with closing(opened.connect_to_write()) as writing, closing(opened.connect()) as reading:
        migrate(writing, [FIRST])
        if os.name == "posix":
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with transaction(writing):
            writing.execute("INSERT INTO notes VALUES ('a')")
            assert texts(reading) == []
        assert texts(reading) == ["a"]


def test_an_older_file_is_brought_to_the_newest_version(file: Path) -> None:
    with closing(SqliteFile(file).connect_to_write()) as connection:
        migrate(connection, [FIRST])
        connection.execute("INSERT INTO notes VALUES ('a')")
        migrate(connection, [FIRST, SECOND])
        assert schema_version(connection) == 2
        assert connection.execute("SELECT text, author FROM notes").fetchall() == [("a", None)]


def test_a_migration_that_fails_changes_nothing(file: Path) -> None:
    with closing(SqliteFile(file).connect_to_write()) as connection:
        migrate(connection, [FIRST])
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, [FIRST, (SECOND[0], "CREATE NONSENSE")])
        assert schema_version(connection) == 1
        assert len(connection.execute("PRAGMA table_info(notes)").fetchall()) == 1


@pytest.mark.parametrize("version", [3, -1])
def test_a_version_that_is_not_known_is_refused(file: Path, version: int) -> None:
    with closing(SqliteFile(file).connect_to_write()) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        for refuse in (migrate, check_schema):
            with pytest.raises(UnknownSchema, match=f"of version {version}, this one knows 1"):
                refuse(connection, [FIRST])


def test_a_transaction_within_another_is_part_of_it(file: Path) -> None:
    def write_and_fail(connection: sqlite3.Connection) -> None:
        with transaction(connection):
            with transaction(connection):
                connection.execute("INSERT INTO notes VALUES ('a')")
            raise ZeroDivisionError

    with closing(SqliteFile(file).connect_to_write()) as connection:
        migrate(connection, [FIRST])
        with pytest.raises(ZeroDivisionError):
            write_and_fail(connection)
        assert texts(connection) == []


def test_reading_makes_and_changes_nothing(file: Path) -> None:
    with pytest.raises(sqlite3.OperationalError), closing(SqliteFile(file, read_only=True).connect()) as connection:
        texts(connection)
    assert not file.parent.exists()
    with closing(SqliteFile(file).connect_to_write()) as connection:
        migrate(connection, [FIRST])
    opened = SqliteFile(file, read_only=True)
    with closing(opened.connect()) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("INSERT INTO notes VALUES ('a')")
    opened.close()
