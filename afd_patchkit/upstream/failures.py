"""How the resolvers fail: `Unavailable` makes the next source be tried, an `UpstreamError` ends the run."""

from __future__ import annotations

from collections.abc import Iterable

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import Position, finding


class Unavailable(Exception):
    """One source cannot give the pin; says nothing about the pin's identity.

    Attributes:
        attempts: what was tried, each with why it failed.
    """

    def __init__(self, source: str, reason: str) -> None:
        self.attempts: tuple[tuple[str, str], ...] = ((source, reason),)
        super().__init__(f"{source}: {reason}")

    @classmethod
    def several(cls, attempts: Iterable[tuple[str, str]]) -> Unavailable:
        """One exception for all `attempts` (at least one)."""
        attempts = tuple(attempts)
        error = cls(*attempts[-1])
        error.attempts = attempts
        return error


def mismatch(message: str, *, path: str | None = None, details: tuple[str, ...] = ()) -> UpstreamError:
    """PK402: what was found is not what is pinned or locked."""
    return UpstreamError(
        finding(
            "PK402",
            message,
            upstream=Position(path) if path else None,
            details=details,
            help="If the pin was meant to move, change it in pins.yaml and regenerate; otherwise get the pinned artifact.",
        )
    )


def corrupt(
    message: str, *, path: str | None = None, details: tuple[str, ...] = (), help: str | None = None
) -> UpstreamError:
    """PK403: bytes that fail verification.

    Args:
        message: what does not agree.
        path: the upstream file, if it is about one.
        details: further lines.
        help: what to do; a general word by default.
    """
    return UpstreamError(
        finding(
            "PK403",
            message,
            upstream=Position(path) if path else None,
            details=details,
            help=help or "Do not use this artifact; try again, and report it to whoever serves it if it stays so.",
        )
    )


def refused(archive: str, message: str, *, path: str | None = None) -> UpstreamError:
    """PK407: an archive that no honest build makes."""
    return UpstreamError(
        finding(
            "PK407",
            f"{archive}: {message}",
            upstream=Position(path) if path else None,
            help="Nothing was taken from it. Get the artifact from its publisher, or give another one with --source.",
        )
    )


def offline(message: str, *, path: str | None = None) -> UpstreamError:
    """PK406: needed, not in the cache, and --offline forbids to fetch it."""
    return UpstreamError(
        finding(
            "PK406",
            message,
            upstream=Position(path) if path else None,
            help="Run the same command once without --offline; what it reads stays in the cache.",
        )
    )


def unreachable(message: str, *, path: str | None = None, details: tuple[str, ...] = ()) -> UpstreamError:
    """PK408: a file of an upstream that was opened cannot be fetched now."""
    return UpstreamError(
        finding(
            "PK408",
            message,
            upstream=Position(path) if path else None,
            details=details,
            help="Try again later; what was read so far stays in the cache.",
        )
    )


def bad_source(message: str) -> UpstreamError:
    """PK409: the source given with --source cannot be used."""
    return UpstreamError(
        finding(
            "PK409", message, help="Give a source tree (package at the root or below src/), an sdist or a wheel file."
        )
    )


def bad_setting(message: str, help: str) -> UpstreamError:
    """PK410: the settings that say where the package index is cannot be used."""
    return UpstreamError(finding("PK410", message, help=help))
