"""On PYTHONPATH this refuses every connection and look-up of a name in a process and its children, and notes it."""

import os
import socket
import sys


def _refuse(event: str, arguments: tuple) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        # A socket of the file system is how processes of one machine talk; it leads nowhere else.
        if arguments[0].family not in (socket.AF_INET, socket.AF_INET6):
            return
        wanted = f"{event} {arguments[1]}"
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        wanted = f"{event} {arguments[0]}"
    else:
        return
    # Whoever asks may swallow the error, so it is written down, too.
    with open(os.environ["NO_NETWORK_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{wanted}\n")
    raise PermissionError(f"no network here: {wanted}")


# A process that only imports this module by chance keeps its network.
if "NO_NETWORK_LOG" in os.environ:
    sys.addaudithook(_refuse)
