"""An index that sends bytes as they are given, whatever they are; a process of its own, so that commands may be forked."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path


class Server:
    """Answers each request with the file whose name its path begins with, and hangs up.

    Attributes:
        url: its address.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self._pid = os.fork()
        if self._pid == 0:
            _serve(listening, folder)
        listening.close()

    def replies(self, replies: Mapping[str, bytes]) -> None:
        """What is sent from now on."""
        for old in self._folder.iterdir():
            old.unlink()
        for path, data in replies.items():
            (self._folder / path.strip("/")).write_bytes(data)

    def close(self) -> None:
        """End it."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _serve(listening: socket.socket, folder: Path) -> None:
    """Serve until killed; never returns."""
    import threading

    try:
        while True:
            connection, _ = listening.accept()
            threading.Thread(target=_answer, args=(connection, folder), daemon=True).start()
    finally:
        os._exit(1)


def _answer(connection: socket.socket, folder: Path) -> None:
    try:
        with connection:
            asked = b""
            while b"\r\n\r\n" not in asked and (piece := connection.recv(65536)):
                asked += piece
            path = asked.split(b" ")[1].decode("latin-1") if b" " in asked else ""
            reply = folder / path.lstrip("/").partition("/")[0]
            connection.sendall(
                reply.read_bytes() if reply.is_file() else b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
            )
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
    except OSError:
        return
