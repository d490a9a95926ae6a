"""The simple API of a package index: what pypi-simple reads of its pages, and which artifact is chosen."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version
from pypi_simple import (
    ACCEPT_JSON_PREFERRED,
    DistributionPackage,
    ProjectPage,
    RepositoryPage,
    UnsupportedRepoVersionError,
)

from afd_patchkit.upstream.network import FetchError, IndexFile, Network, Stats, bare
from afd_patchkit.upstream.settings import redact


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
            reply = network.page(url, ACCEPT_JSON_PREFERRED, stats)
            known = _parse(reply.content_type, reply.body, reply.url, distribution)
        except FetchError as error:
            known = error
        network.pages[url] = known
    if isinstance(known, FetchError):
        raise known
    return known


def _parse(content_type: str, body: bytes, url: str, project: str) -> list[IndexFile]:
    kind, _, parameters = content_type.lower().partition(";")
    try:
        if kind.strip() in {"application/vnd.pypi.simple.v1+json", "application/json"}:
            packages = ProjectPage.from_json_data(_named(json.loads(body)), url).packages
        elif kind.strip() in {"application/vnd.pypi.simple.v1+html", "text/html"}:
            if not _is_sound(body):
                raise FetchError(f"{redact(url)}: the index page is not understood: its HTML is torn, or absurdly long")
            page = RepositoryPage.from_html(body, url, parameters.partition("charset=")[2] or "utf-8")
            packages = [DistributionPackage.from_link(link, project) for link in page.links if _is_name(link.text)]
        else:
            raise FetchError(
                f"{redact(url)}: the index answers with {kind or 'no content type'}, not with an index page"
            )
    except UnsupportedRepoVersionError as error:
        why = f"the index speaks version {error.declared_version} of the simple API; 1 is understood"
        raise FetchError(f"{redact(url)}: {why}") from None
    except (ValueError, RecursionError) as error:
        why = str(error).replace("\n", " ")
        raise FetchError(f"{redact(url)}: the index page is not understood: {type(error).__name__}: {why}") from None
    return [
        IndexFile(
            file.filename,
            where,
            _sha256(file.digests.get("sha256")),
            file.size if file.size and file.size > 0 else None,
            (file.yanked_reason or "") if file.is_yanked else None,
        )
        for file in packages
        if (where := _followed(url, file.url))
    ]


def _is_name(name: object) -> bool:
    """Whether this may be the name of a file: pypi-simple needs cubic time for names of very many parts."""
    return not isinstance(name, str) or (len(name) <= _NAME and name.count("-") <= _DASHES)


def _named(page: Any) -> Any:
    """A page without the files whose names are none; what is no page stays as it is."""
    files = page.get("files") if isinstance(page, dict) else None
    if not isinstance(files, list):
        return page
    return {**page, "files": [f for f in files if not isinstance(f, dict) or _is_name(f.get("filename"))]}


_NAME, _DASHES = 255, 30
_VOID = frozenset({b"area", b"base", b"br", b"col", b"hr", b"img", b"input", b"link", b"meta", b"p", b"source", b"wbr"})
_TORN = 1_000
_HTML_LIMIT, _TAG_LIMIT = 16 * 2**20, 2**16


def _is_sound(body: bytes) -> bool:
    """Whether the tags of a page are closed, up to a few, and none absurdly long: a parser needs quadratic time for those."""
    lengths = [match.end() - match.start() for match in re.finditer(rb"<[^<>]*>", body)]
    torn = body.count(b"<") - len(lengths) > _TORN
    if torn or len(body) > _HTML_LIMIT or max(lengths, default=0) > _TAG_LIMIT:
        return False
    depth = 0
    for match in re.finditer(rb"<(/?)([A-Za-z][A-Za-z0-9]*)", body):
        if match[2].lower() not in _VOID:
            depth += -1 if match[1] else 1
            if abs(depth) > _TORN:
                return False
    return True


def _followed(base: str, url: str) -> str:
    """The address without credentials; empty when it must not be followed."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        return ""
    return bare(url) if scheme == "https" or (scheme == "http" and urlsplit(base).scheme == "http") else ""


def _sha256(value: str | None) -> str | None:
    return value.lower() if value is not None and re.fullmatch("[0-9a-fA-F]{64}", value) else None


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
