"""HTTP with bounded time, bounded retries and counted traffic; httpx is imported when the first request is made."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from afd_patchkit.findings.report import Progress, Waits, tell
from afd_patchkit.upstream.failures import bad_setting
from afd_patchkit.upstream.settings import IndexSettings, redact
from afd_patchkit.upstream.transfer import PATIENCE, Stalled, TooManyRedirects, Transfer

if TYPE_CHECKING:
    import ssl

    import httpx

T = TypeVar("T")

_PAGE_LIMIT = 64 * 2**20
_FILE_LIMIT = 4 * 2**30
"""Bytes of a file of which the index does not say the size."""
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})
"""How a page may be packed: once, so that a chunk of it cannot become more than a thousand times as long."""
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
    """The server does not serve the byte range asked for; perhaps it serves the whole file."""

    @property
    def everywhere(self) -> bool:
        """Whether the server serves ranges of no file, as far as its answer says."""
        return self.status in {200, 206, 405, 416, 501}


class _Again(Exception):
    """A failure after which the request is worth repeating."""

    def __init__(self, reason: str, wait: float | None = None, status: int | None = None) -> None:
        self.reason, self.wait, self.status = reason, wait, status
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Reply:
    """A small answer, read completely."""

    status: int
    url: str
    content_type: str
    body: bytes


class Network:
    """One run's connections; thread-safe."""

    def __init__(
        self, settings: IndexSettings, *, timeout: float, retries: int, backoff: float, waits: Waits | None = None
    ) -> None:
        """Nothing is opened yet.

        Args:
            settings: which indexes there are.
            timeout: seconds without an answer or data after which a connection counts as stalled.
            retries: how often a request is repeated.
            backoff: seconds before the first repetition.
            waits: told what has been waited for longer than a second; None when nobody wants to know.
        """
        self.settings, self.timeout, self.retries, self.backoff, self.waits = settings, timeout, retries, backoff, waits
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

        def handle(response: httpx.Response, transfer: Transfer) -> Reply:
            url = str(response.url)
            encoding = response.headers.get("content-encoding", "").strip().lower()
            if encoding not in _ENCODINGS:
                raise FetchError(f"{redact(url)} is packed as {encoding[:60]!a}, which was not asked for")
            body = bytearray()
            for chunk in transfer.chunks(decoded=True):
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

        def handle(response: httpx.Response, transfer: Transfer) -> tuple[bytes, int]:
            if response.status_code == 200:
                raise RangesRefused("the server ignores range requests", 200)
            if response.status_code == 416:
                raise RangesRefused("the server refuses the range", 416)
            total = _content_range(response, start, end)
            body = bytearray()
            for chunk in transfer.chunks():
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

        def handle(response: httpx.Response, transfer: Transfer) -> None:
            url = str(response.url)
            length = _number(response.headers.get("content-length", ""))
            total = size if length is None else length
            out.seek(0)
            out.truncate()
            got = 0
            if progress is not None:
                progress.start(total)
            try:
                for chunk in transfer.chunks():
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
        self, url: str, headers: Mapping[str, str], stats: Stats, handle: Callable[[httpx.Response, Transfer], T]
    ) -> T:
        import random

        import httpx

        for attempt in range(self.retries + 1):
            broken, status, wait = False, None, None  # broken: an answer came, but not what was asked for
            what = f"{redact(url)} (try {attempt + 1} of {self.retries + 1})"
            try:
                return self._once(url, headers, stats, handle, what)
            except _Again as error:
                reason, wait, status, broken = error.reason, error.wait, error.status, True
            except Stalled as error:
                reason = str(error)
            except httpx.TimeoutException:
                reason = f"no answer for {self.timeout:g} s"
            except httpx.TransportError as error:
                reason, broken = _reason(error), isinstance(error, httpx.ReadError | httpx.RemoteProtocolError)
                if "CERTIFICATE_VERIFY_FAILED" in reason or isinstance(
                    error, httpx.UnsupportedProtocol | httpx.ProxyError
                ):
                    break
            except (httpx.InvalidURL, httpx.DecodingError, TooManyRedirects, ValueError, OverflowError) as error:
                # ValueError, OverflowError: an address, a host name, a port or a header that nothing can be made of
                reason = _reason(error)
                break
            if attempt < self.retries:
                pause = self.backoff * 2**attempt * random.uniform(0.8, 1.2)
                self._sleep(min(wait if wait is not None else pause, _LONGEST_WAIT), f"{redact(url)} ({reason})")
        tries = f" ({attempt + 1} tries)" if attempt else ""
        if broken and "Range" in headers:
            raise RangesRefused(f"{reason}{tries}", status)
        raise FetchError(f"{redact(url)}: {reason}{tries}")

    def _once(
        self,
        url: str,
        headers: Mapping[str, str],
        stats: Stats,
        handle: Callable[[httpx.Response, Transfer], T],
        what: str,
    ) -> T:
        def depart(request: httpx.Request, before: httpx.URL | None) -> None:
            stats.add(requests=1)
            self._depart(request, before)

        ranged = "Range" in headers
        transfer = Transfer(
            self._http(),
            bare(url),
            headers,
            depart=depart,
            timeout=self.timeout,
            waits=lambda on: tell(self.waits, what, on),
        )
        try:
            with transfer:
                response = transfer.answer()
                status, at = response.status_code, str(response.url)
                if status in _RETRY_STATUS:
                    raise _Again(f"status {status}", _retry_after(response), status)
                if status not in ({200, 206, 416} if ranged else {200}):
                    hint = " (are the credentials of the index right?)" if status in {401, 403} else ""
                    if ranged:
                        raise RangesRefused(f"status {status}{hint}", status)
                    raise FetchError(f"{redact(at)}: status {status}{hint}", status)
                return handle(response, transfer)
        finally:
            stats.add(bytes=transfer.received)

    def _sleep(self, seconds: float, what: str) -> None:
        if seconds > PATIENCE:
            tell(self.waits, what, True)
        try:
            time.sleep(seconds)
        finally:
            if seconds > PATIENCE:
                tell(self.waits, what, False)

    def _depart(self, request: httpx.Request, before: httpx.URL | None) -> None:
        """Refuse a redirect that leaves http(s) or its encryption, and say who we are."""
        scheme = request.url.scheme
        if before is not None and (scheme not in {"http", "https"} or (scheme == "http" and before.scheme == "https")):
            raise FetchError(f"{redact(str(before))}: refused redirect to {redact(str(request.url))}")
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
                        headers={"User-Agent": f"afd-patchkit/{__version__}"},
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
