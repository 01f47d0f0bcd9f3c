"""Connections that wait for a request only so long: uvicorn itself waits for the rest of one for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from h11 import SEND_BODY
from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedProtocol(H11Protocol):
    """Closes a connection whose request, with its body, is not there in time. Answers take as long as they take."""

    patience_s = 20.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait on, from when the wait began, or no more."""
        super().data_received(data)
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and self.conn.their_state is not SEND_BODY:
            self._wait_no_more()
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.patience_s, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
