"""Which releases the package index has beyond the pinned one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.findings.finding import finding
from afd_patchkit.upstream.failures import offline
from afd_patchkit.upstream.network import FetchError, Stats
from afd_patchkit.upstream.simple import of_release, project_files, versions

if TYPE_CHECKING:
    from afd_patchkit.model import Pin
    from afd_patchkit.upstream.options import SourceOptions


def newer_releases(name: str, pin: Pin, options: SourceOptions) -> list[str]:
    """The releases above the pinned version, oldest first: final ones that were not withdrawn.

    A pin that is no final release itself (a pre- or development release) sees those too.

    Args:
        name: the pin's name, for messages.
        pin: the pin.
        options: which index to ask.

    Raises:
        UpstreamError: the index cannot be asked (PK401, PK406), or does not know the distribution (PK401).
    """
    if options.offline:
        raise offline(f"which releases of {pin.distribution} there are is known to the package index only")
    try:
        pinned = Version(pin.version)
    except InvalidVersion:
        raise _unknown(name, f"{pin.version!r} is no PEP 440 version", ()) from None
    if options.index.disabled:
        raise _unknown(name, options.index.disabled, ())
    attempts = []
    for index in options.index.urls:
        try:
            files = project_files(options.network, index, pin.distribution, Stats())
        except FetchError as error:
            attempts.append(error.reason)
            continue
        found = [
            v for v in versions(files, pin.distribution) if v > pinned and (pinned.is_prerelease or not v.is_prerelease)
        ]
        kept = [v for v in found if any(f.yanked is None for f in of_release(files, pin.distribution, v))]
        return [str(v) for v in reversed(kept)]
    raise _unknown(name, f"no index can say which releases of {pin.distribution} there are", tuple(attempts))


def _unknown(name: str, message: str, details: tuple[str, ...]) -> UpstreamError:
    return UpstreamError(
        finding("PK401", f"pin {name}: {message}", details=details, help="Name the version, or try again later.")
    )
