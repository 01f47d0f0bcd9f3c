from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def server() -> Iterator[object]:
    pytest.importorskip("psycopg")
    from postgres_server import NoServer, Server

    try:
        running = Server()
    except NoServer as problem:
        pytest.skip(str(problem))
    yield running
    running.stop()


@pytest.fixture
def address(server: object) -> str:
    """The URL of the server, whose database is empty."""
    import psycopg

    url: str = server.url  # type: ignore[attr-defined]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS agentunit CASCADE")
    return url
