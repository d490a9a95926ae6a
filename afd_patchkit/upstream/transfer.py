"""One request on a thread of its own, so that whoever waits for it keeps the time, whatever a server sends or does not send."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

PATIENCE = 1.0
"""Seconds of waiting after which somebody is told."""
REDIRECTS = 5
_SLOWEST = 2_000.0  # bytes per second below which a transfer counts as stalled
_CHUNKS = 8
_DIGITS = 5  # of the length of a redirect's body that is read, so that its connection stays


class Stalled(Exception):
    """Too little came in the time that a server has."""


class TooManyRedirects(Exception):
    """One redirect led to the next."""


class _Left(Exception):
    """Nobody waits any more."""


class Transfer:
    """A request, followed through its redirects; a context manager, to be left however it went.

    The thread that reads is given up, not waited for, where it does not come back: status lines, headers and the frames of chunks
    can trickle without end below what a time-out per read can see.

    Attributes:
        received: bytes of all bodies so far, redirects included.
    """

    def __init__(
        self,
        client: httpx.Client,
        url: str,
        headers: Mapping[str, str],
        *,
        depart: Callable[[httpx.Request, httpx.URL | None], None],
        timeout: float,
        waits: Callable[[bool], None],
    ) -> None:
        """Begin.

        Args:
            client: sends it; without redirects of its own.
            url: address.
            headers: of the request.
            depart: told about each request and the address that redirected to it; may refuse by an exception.
            timeout: seconds that a server has for an answer, and for each pause.
            waits: told True when nothing has come for a second, and False when that is over.
        """
        self._client, self._url, self._headers, self._depart = client, url, headers, depart
        self._timeout, self._waits = timeout, waits
        self._made: queue.Queue[httpx.Response | bytes | BaseException | None] = queue.Queue(_CHUNKS)
        self._wanted, self._left = threading.Event(), False
        self._decoded = False
        self._before = 0
        self._response: httpx.Response | None = None
        self._thread = threading.Thread(target=self._run, name="transfer", daemon=True)

    @property
    def received(self) -> int:
        """Bytes of all bodies so far."""
        return self._before + (self._response.num_bytes_downloaded if self._response is not None else 0)

    def __enter__(self) -> Transfer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._left = True
        self._wanted.set()
        with suppress(queue.Empty):
            while True:
                self._made.get_nowait()
        self._thread.join(0.2)

    def answer(self) -> httpx.Response:
        """Status and headers of the last answer.

        Raises:
            Stalled: they do not come.
            Exception: whatever the request failed with.
        """
        begin = time.monotonic()
        made = self._next(lambda: begin + 2 * self._timeout)  # to connect, and to answer
        assert made is not None
        assert not isinstance(made, bytes)
        return made

    def chunks(self, *, decoded: bool = False) -> Iterator[bytes]:
        """The body; a trickle counts as stalled.

        Raises:
            Stalled: it does not come to its end.
            Exception: whatever the reading failed with.
        """
        self._decoded = decoded
        self._wanted.set()
        begin, before = time.monotonic(), self._before

        def until() -> float:
            return begin + self._timeout + (self.received - before) / _SLOWEST

        while (chunk := self._next(until)) is not None:
            assert isinstance(chunk, bytes)
            yield chunk
            if time.monotonic() > until():
                raise self._stalled()

    def _next(self, until: Callable[[], float]) -> httpx.Response | bytes | None:
        """What the thread makes next."""
        told = False
        try:
            while True:
                left = until() - time.monotonic()
                try:
                    made = self._made.get(timeout=max(0.0, left if told else min(left, PATIENCE)))
                    break
                except queue.Empty:
                    if until() <= time.monotonic():
                        raise self._stalled() from None
                    if not told:
                        told = True
                        self._waits(True)
        finally:
            if told:
                self._waits(False)
        if isinstance(made, BaseException):
            raise made
        return made

    def _stalled(self) -> Stalled:
        return Stalled(f"the transfer stalled after {self.received} bytes")

    # ---- the thread ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._exchange()
        except _Left:
            pass
        except BaseException as error:
            with suppress(_Left):
                self._make(error)

    def _exchange(self) -> None:
        before = None
        request = self._client.build_request("GET", self._url, headers=self._headers, timeout=self._timeout)
        for _ in range(REDIRECTS + 1):
            self._depart(request, before)
            self._response = response = self._client.send(request, stream=True, follow_redirects=False)
            try:
                if response.next_request is None:
                    self._make(response)
                    self._wanted.wait()
                    self._go_on()
                    for chunk in response.iter_bytes() if self._decoded else response.iter_raw():
                        self._make(chunk)
                    break
                request, before = response.next_request, response.url
                length = response.headers.get("content-length", "")
                if length.isascii() and length.isdigit() and len(length) <= _DIGITS:
                    for _ in response.iter_raw():
                        self._go_on()
            finally:
                response.close()
                self._before, self._response = self.received, None
        else:
            raise TooManyRedirects(f"more than {REDIRECTS} redirects")
        self._make(None)

    def _make(self, made: httpx.Response | bytes | BaseException | None) -> None:
        self._go_on()
        self._made.put(made)
        self._go_on()

    def _go_on(self) -> None:
        if self._left:
            raise _Left
