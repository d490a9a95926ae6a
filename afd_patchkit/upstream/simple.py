"""The simple API of a package index: JSON (PEP 691) with HTML (PEP 503) as fallback."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from afd_patchkit.upstream.network import FetchError, IndexFile, Network, Stats
from afd_patchkit.upstream.settings import redact

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"


def project_files(network: Network, index: str, distribution: str, stats: Stats) -> list[IndexFile]:
    """All artifacts of a project; asked once per run.

    Args:
        network: the run's connections, which keep pages.
        index: address of the index.
        distribution: name of the project.
        stats: counts the traffic.

    Raises:
        FetchError: the page cannot be had, or is not understood.
    """
    url = f"{index.rstrip('/')}/{canonicalize_name(distribution)}/"
    known = network.pages.get(url)
    if known is None:
        try:
            reply = network.page(url, ACCEPT, stats)
            known = _parse(reply.content_type, reply.body, reply.url)
        except FetchError as error:
            known = error
        network.pages[url] = known
    if isinstance(known, FetchError):
        raise known
    return known


def _parse(content_type: str, body: bytes, url: str) -> list[IndexFile]:
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind in {"application/vnd.pypi.simple.v1+json", "application/json"}:
            return _from_json(json.loads(body), url)
        if kind in {"text/html", "application/vnd.pypi.simple.v1+html"}:
            return _from_html(body.decode("utf-8", "replace"), url)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FetchError(f"{redact(url)}: the index page is not understood: {type(error).__name__}: {error}") from None
    raise FetchError(f"{redact(url)}: the index answers with {kind or 'no content type'}, not with an index page")


def _from_json(page: dict[str, Any], url: str) -> list[IndexFile]:
    api = str(page.get("meta", {}).get("api-version", "1.0"))
    if api.partition(".")[0] != "1":
        raise FetchError(f"{redact(url)}: the index speaks version {api} of the simple API; 1 is understood")
    files = []
    for item in page["files"]:
        yanked = item.get("yanked", False)
        size = item.get("size")
        files.append(
            IndexFile(
                str(item["filename"]),
                _join(url, str(item["url"])),
                _sha256(item.get("hashes", {}).get("sha256")),
                size if isinstance(size, int) and size > 0 else None,
                None if yanked is False or yanked is None else yanked if isinstance(yanked, str) else "",
            )
        )
    return [file for file in files if file.url]


class _Anchors(HTMLParser):
    """The files and the base address of a PEP 503 page."""

    def __init__(self) -> None:
        super().__init__()
        self.base: str | None = None
        self.found: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect `<a>` and the first `<base>`."""
        values = dict(attrs)
        if tag == "base" and self.base is None:
            self.base = values.get("href")
        elif tag == "a" and values.get("href"):
            self.found.append(values)


def _from_html(text: str, url: str) -> list[IndexFile]:
    parser = _Anchors()
    parser.feed(text)
    parser.close()
    base = urljoin(url, parser.base) if parser.base else url
    files = []
    for attrs in parser.found:
        target = urljoin(base, attrs["href"] or "")
        parts = urlsplit(target)
        name, _, value = parts.fragment.partition("=")
        yanked = (attrs["data-yanked"] or "") if "data-yanked" in attrs else None
        filename = unquote(parts.path.rpartition("/")[2])
        files.append(
            IndexFile(filename, _join(base, target), _sha256(value if name == "sha256" else None), None, yanked)
        )
    return [file for file in files if file.url]


def _join(base: str, url: str) -> str:
    """The absolute address without credentials and fragment; empty when it must not be followed."""
    parts = urlsplit(urljoin(base, url))
    if parts.scheme not in {"http", "https"} or (parts.scheme == "http" and urlsplit(base).scheme == "https"):
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))


def _sha256(value: object) -> str | None:
    if isinstance(value, str) and len(value) == 64:
        value = value.lower()
        if all(c in "0123456789abcdef" for c in value):
            return value
    return None


# ---- choosing -------------------------------------------------------------------------------------------------


def of_release(files: list[IndexFile], distribution: str, version: Version) -> list[IndexFile]:
    """The artifacts of exactly `version`, best first: wheels, then sdists.

    The order does not depend on the running platform, so that all machines lock the same artifact: files that were not
    yanked first, then pure wheels, then Linux on x86-64, then by name.
    """
    chosen = [(rank, file) for file in files if (rank := _rank(file, distribution, version)) is not None]
    return [file for _, file in sorted(chosen, key=lambda pair: pair[0])]


def versions(files: list[IndexFile], distribution: str) -> list[Version]:
    """The versions for which there are artifacts, newest first."""
    found = {parsed for file in files if (parsed := _version(file.filename, distribution)) is not None}
    return sorted(found, reverse=True)


def _rank(file: IndexFile, distribution: str, version: Version) -> tuple[bool, bool, int, str] | None:
    if _version(file.filename, distribution) != version:
        return None
    platforms: list[str] = []
    if file.is_wheel:
        platforms = [tag.platform for tag in parse_wheel_filename(file.filename)[3]]
    linux = any("linux" in p and p.endswith("x86_64") for p in platforms)
    preference = 0 if "any" in platforms else 1 if linux else 2
    return (not file.is_wheel, file.yanked is not None, preference, file.filename)


def _version(filename: str, distribution: str) -> Version | None:
    try:
        if filename.endswith(".whl"):
            name, version, *_ = parse_wheel_filename(filename)
        elif filename.endswith((".tar.gz", ".zip")):
            name, version = parse_sdist_filename(filename)
        else:
            return None
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return None
    return version if name == canonicalize_name(distribution) else None
