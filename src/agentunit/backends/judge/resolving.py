"""Names to addresses, in a thread that nobody waits for: a resolver that hangs must not hold up the end of a run."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from typing import Any


async def resolved(host: str, port: int) -> list[str]:
    """The addresses of a host, in the system's order; ``OSError`` when it has none."""
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[str]] = loop.create_future()

    def look_up() -> None:
        answer: Any
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        except (OSError, UnicodeError) as error:
            answer = error if isinstance(error, OSError) else OSError("the name cannot be looked up")
        try:
            loop.call_soon_threadsafe(settle, answer)
        except RuntimeError:
            return  # The loop was closed while the resolver was busy.

    def settle(answer: list[str] | OSError) -> None:
        if found.done():
            return
        if isinstance(answer, OSError):
            found.set_exception(answer)
        else:
            found.set_result(answer)

    threading.Thread(target=look_up, name="agentunit-judge-resolver", daemon=True).start()
    return await found
