from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from agentunit.addons.viewer import _case_table as case_table
from agentunit.addons.viewer._case_table import CasesQuery, CaseTable
from agentunit.store.schema import StoreError


class Watched:
    """A store whose records come only when they may, and that counts who reads them."""

    def __init__(self, library):
        self._library = library
        self.may_read = threading.Event()
        self.n_reading = self.most_reading = self.n_scans = 0
        self.error = None

    @contextmanager
    def open(self):
        with self._library.store() as self._store:
            yield self

    def lines(self, run_id, *places):
        if places:
            yield from self._store.lines(run_id, *places)
            return
        if self.error is not None:
            raise self.error
        self.n_scans += 1
        self.n_reading += 1
        self.most_reading = max(self.most_reading, self.n_reading)
        try:
            assert self.may_read.wait(60)
            yield from self._store.lines(run_id)
        finally:
            self.n_reading -= 1


@pytest.fixture
def watched(library, runs, monkeypatch):
    monkeypatch.setattr(case_table, "_PATIENCE_S", 0.01)
    opened = library.run(runs[0])
    store = Watched(library)
    return store, CaseTable(store.open, opened.columns), library.mask()


def complete_page(table, mask, words):
    """The page of a search, asked for until all was looked at, as browsers do."""
    while (page := table.page(CasesQuery(search=words), mask))["searched"] < page["n_records"]:
        pass
    return page


def test_many_searches_are_one_after_the_other_and_those_that_nobody_waits_for_are_given_up(watched):
    store, table, mask = watched
    for n in range(60):
        page = table.page(CasesQuery(search=f"nothing{n}"), mask)
        assert page["searched"] < page["n_records"]
    store.may_read.set()
    page = complete_page(table, mask, "order 3")
    assert [row["case_id"] for row in page["rows"]] == ["q3"]
    assert store.most_reading == 1
    assert store.n_scans <= 1 + case_table._SEARCHES_KEPT + 1


def test_a_search_that_fails_says_so_and_can_be_asked_again(watched):
    store, table, mask = watched
    store.may_read.set()
    store.error = StoreError("the disk is gone")
    with pytest.raises(StoreError, match="the disk is gone"):
        complete_page(table, mask, "order")
    store.error = None
    assert complete_page(table, mask, "order")["total"] == 6
