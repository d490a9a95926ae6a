"""HTTP with bounded time, bounded retries and counted traffic; httpx is imported when the first request is made."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from afd_patchkit.findings.report import Progress
from afd_patchkit.upstream.failures import bad_setting
from afd_patchkit.upstream.settings import IndexSettings, redact

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

_REDIRECTS = 5
_PAGE_LIMIT = 64 * 2**20
_FILE_LIMIT = 4 * 2**30
"""Bytes of a file of which the index does not say the size."""
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})
"""How a page may be packed: once, so that a chunk of it cannot become more than a thousand times as long."""
_SLOWEST = 2_000.0  # bytes per second below which a transfer counts as stalled
_LONGEST_WAIT = 20.0
_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class Stats:
    """Traffic of one upstream object: distinct files read, bytes received, requests made."""

    def __init__(self) -> None:
        self.files = self.bytes = self.requests = 0
        self._lock = threading.Lock()

    def add(self, *, bytes: int = 0, requests: int = 0) -> None:
        """Count traffic; called from several threads."""
        with self._lock:
            self.bytes += bytes
            self.requests += requests

    def __repr__(self) -> str:
        return f"Stats(files={self.files}, bytes={self.bytes}, requests={self.requests})"


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One artifact that an index offers.

    Attributes:
        filename: as the index names it.
        url: where it lies, without credentials.
        sha256: what the index says; None when it says nothing usable.
        size: in bytes, if the index says so.
        yanked: the reason, possibly empty, when the file was withdrawn.
    """

    filename: str
    url: str
    sha256: str | None = None
    size: int | None = None
    yanked: str | None = None

    @property
    def is_wheel(self) -> bool:
        """Whether this is a wheel (else an sdist)."""
        return self.filename.endswith(".whl")

    def to_json(self) -> dict[str, Any]:
        """As plain data, for the cache."""
        return asdict(self)


class FetchError(Exception):
    """A request that failed for good.

    Attributes:
        reason: what happened, without credentials.
        status: the HTTP status that said so, if one did.
    """

    def __init__(self, reason: str, status: int | None = None) -> None:
        self.reason, self.status = reason, status
        super().__init__(reason)


class RangesRefused(FetchError):
    """The server does not serve the byte range asked for."""


class _Again(Exception):
    """A failure after which the request is worth repeating."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        self.reason, self.wait = reason, wait
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Reply:
    """A small answer, read completely."""

    status: int
    url: str
    content_type: str
    body: bytes


class _Trip:
    """A request and those that redirects make of it."""

    def __init__(self, stats: Stats) -> None:
        self.stats = stats
        self.last: httpx.URL | None = None


class Network:
    """One run's connections; thread-safe."""

    def __init__(self, settings: IndexSettings, *, timeout: float, retries: int, backoff: float) -> None:
        self.settings, self.timeout, self.retries, self.backoff = settings, timeout, retries, backoff
        self.no_ranges: set[str] = set()
        self.pages: dict[str, list[IndexFile] | FetchError] = {}
        self._client: httpx.Client | None = None
        self._lock = threading.Lock()

    # ---- requests -----------------------------------------------------------------------------------------------

    def page(self, url: str, accept: str, stats: Stats) -> Reply:
        """A page of an index.

        Raises:
            FetchError: it cannot be had.
        """

        def handle(response: httpx.Response, url: str) -> Reply:
            encoding = response.headers.get("content-encoding", "").strip().lower()
            if encoding not in _ENCODINGS:
                raise FetchError(f"{redact(url)} is packed as {encoding[:60]!a}, which was not asked for")
            body = bytearray()
            for chunk in self._chunks(response, decoded=True):
                body += chunk
                if len(body) > _PAGE_LIMIT:
                    raise FetchError(f"{redact(url)} is absurdly long")
            return Reply(response.status_code, url, response.headers.get("content-type", ""), bytes(body))

        return self._request(url, {"Accept": accept, "Accept-Encoding": "gzip, deflate"}, stats, handle)

    def range(self, url: str, start: int, end: int, stats: Stats) -> tuple[bytes, int]:
        """Bytes `start` to `end` (half-open) of a file, and the size of the whole file.

        Args:
            url: address of the file.
            start: first byte.
            end: the byte behind the last.
            stats: counts the traffic.

        Raises:
            RangesRefused: the server does not serve it.
            FetchError: it cannot be had.
        """

        def handle(response: httpx.Response, url: str) -> tuple[bytes, int]:
            if response.status_code == 200:
                raise RangesRefused("the server ignores range requests", 200)
            if response.status_code == 416:
                raise RangesRefused("the server refuses the range", 416)
            total = _content_range(response, start, end)
            body = bytearray()
            for chunk in self._chunks(response):
                body += chunk
                if len(body) > end - start:
                    raise RangesRefused("the server sends more than the range", 206)
            if len(body) != end - start:
                raise _Again(f"the answer was cut off after {len(body)} of {end - start} bytes")
            return bytes(body), total

        return self._request(url, {"Range": f"bytes={start}-{end - 1}", "Accept-Encoding": "identity"}, stats, handle)

    def download(self, url: str, out: IO[bytes], stats: Stats, *, size: int | None, progress: Progress | None) -> None:
        """A whole file into `out`.

        Args:
            url: address of the file.
            out: where it goes; begun again after a failure.
            stats: counts the traffic.
            size: its size in bytes as the index has it, for the progress; None when unknown.
            progress: told about bytes; None when nobody waits.

        Raises:
            FetchError: it cannot be had.
        """

        def handle(response: httpx.Response, url: str) -> None:
            length = _number(response.headers.get("content-length", ""))
            total = size if length is None else length
            out.seek(0)
            out.truncate()
            got = 0
            if progress is not None:
                progress.start(total)
            try:
                for chunk in self._chunks(response):
                    out.write(chunk)
                    got += len(chunk)
                    if progress is not None:
                        progress.advance(len(chunk))
                    if size is not None and got > size:
                        raise FetchError(f"{redact(url)} is longer than the {size} bytes that the index says")
                    if got > _FILE_LIMIT and size is None:
                        raise FetchError(f"{redact(url)} is absurdly long, and the index does not say how long")
            finally:
                if progress is not None:
                    progress.done()
            if total is not None and got < total:
                raise _Again(f"the answer was cut off after {got} of {total} bytes")

        self._request(url, {"Accept-Encoding": "identity"}, stats, handle)

    # ---- machinery ----------------------------------------------------------------------------------------------

    def _request(
        self, url: str, headers: Mapping[str, str], stats: Stats, handle: Callable[[httpx.Response, str], T]
    ) -> T:
        import random

        import httpx

        for attempt in range(self.retries + 1):
            try:
                return self._once(url, headers, stats, handle)
            except _Again as error:
                reason, wait = error.reason, error.wait
            except httpx.TimeoutException:
                reason, wait = f"no answer for {self.timeout:g} s", None
            except httpx.TransportError as error:
                reason, wait = _reason(error), None
                if "CERTIFICATE_VERIFY_FAILED" in reason or isinstance(
                    error, httpx.UnsupportedProtocol | httpx.ProxyError
                ):
                    break
            except httpx.TooManyRedirects:
                reason = f"more than {_REDIRECTS} redirects"
                break
            except (httpx.InvalidURL, httpx.DecodingError, ValueError) as error:
                # ValueError: an address, a host name or a header that nothing can be made of
                reason = _reason(error)
                break
            if attempt < self.retries:
                pause = self.backoff * 2**attempt * random.uniform(0.8, 1.2)
                time.sleep(min(wait if wait is not None else pause, _LONGEST_WAIT))
        tries = f" ({attempt + 1} tries)" if attempt else ""
        raise FetchError(f"{redact(url)}: {reason}{tries}")

    def _once(
        self, url: str, headers: Mapping[str, str], stats: Stats, handle: Callable[[httpx.Response, str], T]
    ) -> T:
        with self._stream(url, headers, stats) as response:
            status, at = response.status_code, str(response.url)
            if status in _RETRY_STATUS:
                raise _Again(f"status {status}", _retry_after(response))
            if status not in ({200, 206, 416} if "Range" in headers else {200}):
                hint = " (are the credentials of the index right?)" if status in {401, 403} else ""
                raise FetchError(f"{redact(at)}: status {status}{hint}", status)
            return handle(response, at)

    @contextlib.contextmanager
    def _stream(self, url: str, headers: Mapping[str, str], stats: Stats) -> Iterator[httpx.Response]:
        trip = {"trip": _Trip(stats)}
        with self._http().stream("GET", bare(url), headers=headers, extensions=trip) as response:
            try:
                yield response
            finally:
                stats.add(bytes=sum(r.num_bytes_downloaded for r in (*response.history, response)))

    def _chunks(self, response: httpx.Response, *, decoded: bool = False) -> Iterator[bytes]:
        """The body; a trickle counts as stalled."""
        begin = time.monotonic()
        for chunk in response.iter_bytes() if decoded else response.iter_raw():
            yield chunk
            elapsed = time.monotonic() - begin
            if elapsed > self.timeout + response.num_bytes_downloaded / _SLOWEST:
                raise _Again(f"the transfer stalled after {response.num_bytes_downloaded} bytes")

    def _depart(self, request: httpx.Request) -> None:
        """Count a request, refuse a redirect that leaves http(s) or its encryption, and say who we are."""
        trip: _Trip = request.extensions["trip"]
        trip.stats.add(requests=1)
        scheme, before = request.url.scheme, trip.last
        if before is not None and (scheme not in {"http", "https"} or (scheme == "http" and before.scheme == "https")):
            raise FetchError(f"{redact(str(before))}: refused redirect to {redact(str(request.url))}")
        trip.last = request.url
        if "Authorization" not in request.headers and (auth := self._credentials(request.url)) is not None:
            next(auth.sync_auth_flow(request))

    def _credentials(self, url: httpx.URL) -> httpx.Auth | None:
        """What to authenticate with: the address's own user, that of the index on this host, or netrc's."""
        import httpx

        for candidate in (url, *(httpx.URL(u) for u in self.settings.urls)):
            same = (candidate.scheme, candidate.host, candidate.port) == (url.scheme, url.host, url.port)
            if same and candidate.userinfo:
                return httpx.BasicAuth(candidate.username, candidate.password)
        return self._netrc

    @cached_property
    def _netrc(self) -> httpx.Auth | None:
        import os
        from netrc import NetrcParseError

        import httpx

        try:
            return httpx.NetRCAuth(os.environ.get("NETRC") or os.path.expanduser("~/.netrc"))
        except (OSError, NetrcParseError, UnicodeDecodeError):
            return None

    def _http(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                import httpx

                from afd_patchkit.version import __version__

                verify: ssl.SSLContext | bool = True
                if self.settings.ca_file is not None:
                    verify = _trust(self.settings.ca_file)
                try:
                    self._client = httpx.Client(
                        verify=verify,
                        timeout=httpx.Timeout(self.timeout),
                        headers={"User-Agent": f"afd-patchkit/{__version__}"},
                        follow_redirects=True,
                        max_redirects=_REDIRECTS,
                        event_hooks={"request": [self._depart]},
                        limits=httpx.Limits(max_connections=8, max_keepalive_connections=8),
                    )
                except (ImportError, ValueError, httpx.InvalidURL) as error:
                    raise bad_setting(
                        f"the proxy settings cannot be used: {error}", "Correct the *_PROXY variables."
                    ) from None
                weakref.finalize(self, self._client.close)
            return self._client


def _trust(path: str) -> ssl.SSLContext:
    import os
    import ssl

    try:
        return ssl.create_default_context(**{"capath" if os.path.isdir(path) else "cafile": path})  # type: ignore[arg-type]
    except (OSError, ssl.SSLError) as error:
        raise bad_setting(f"the certificate bundle {path} cannot be used: {error}", "Correct the setting.") from None


def bare(url: str) -> str:
    """`url` without user and fragment, which are not for the request line or for messages."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))


def _content_range(response: httpx.Response, start: int, end: int) -> int:
    """The total size that a 206 answer names; it must be for the range asked for."""
    value = response.headers.get("content-range", "")
    unit, _, rest = value.partition(" ")
    span, _, total = rest.partition("/")
    whole = _number(total)
    if unit != "bytes" or span != f"{start}-{end - 1}" or whole is None:
        raise RangesRefused(f"the server answers the range {start}-{end - 1} with {value or 'no range'!a}", 206)
    return whole


def _retry_after(response: httpx.Response) -> float | None:
    return _number(response.headers.get("retry-after", ""))


def _number(text: str) -> int | None:
    """A number in a header; None when it is none, or absurdly long."""
    return int(text) if len(text) < 20 and text.isascii() and text.isdigit() else None


def _reason(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text if "@" not in text else type(error).__name__
