"""The pins of a run: at the version that the user asks for, opened with what the lock knows of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import finding
from afd_patchkit.findings.report import PinReport
from afd_patchkit.manifest.load import parse_pins
from afd_patchkit.model import Git, Pin, Pins
from afd_patchkit.names import elsewhere
from afd_patchkit.project import Project
from afd_patchkit.run.lock import Lock
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import open_upstream, pin_report
from afd_patchkit.upstream.settings import redact
from afd_patchkit.upstream.verified import SourceUpstream


def overridden(pins: Pins, overrides: Mapping[str, str]) -> tuple[Pins, dict[str, str]]:
    """The pins with other versions or commits; the second result names those that really moved.

    Raises:
        ManifestError: an override names no pin (PK091), or a release for a pin that is read at a commit (PK095).
    """
    changed = dict(pins.pins)
    moved: dict[str, str] = {}
    for name, version in overrides.items():
        found = (
            [n for n, p in pins.pins.items() if n == name and p.role == "target"]
            or [n for n, p in pins.pins.items() if p.distribution == name and p.role == "target"]
            or [n for n in pins.pins if n == name]
        )
        if not found:
            raise _unknown(pins, name)
        pin = pins.pins[found[0]]
        if (
            pin.git is not None
            and version not in (pin.version, pin.identity)
            and not re.fullmatch("[0-9a-f]{40}", version)
        ):
            raise _no_commit(found[0], pin.git.url, version)
        new = pin.moved(version)
        if new != pin:
            changed[found[0]] = new
            moved[found[0]] = version
    return pins.model_copy(update={"pins": changed}), moved


def _no_commit(name: str, url: str, version: str) -> ManifestError:
    return ManifestError(
        finding(
            "PK095",
            f"pin {name} is read at a commit of {redact(url)}, and {version} is none",
            help="Name a commit with its 40 hex digits. No index is asked: what it has under that name may be another project. "
            "To take releases from it, write the version and remove `git` in pins.yaml.",
        )
    )


def by_hand(pins: Pins, lock: Lock | None) -> dict[str, Pin]:
    """The pins that were moved in pins.yaml since the lock was written, each as the lock knows it."""
    found = {}
    for name, pin in pins.pins.items():
        record = (lock or {}).get("pins", {}).get(name)
        if record is None or not record["files"]:
            continue  # nothing was generated from it
        old = (record["distribution"], record["version"], record.get("git"))
        if old != (pin.distribution, pin.version, pin.source_commit):
            url = pin.git.url if pin.git is not None else "file:///nowhere"
            git = Git.model_construct(url=url, commit=old[2]) if old[2] else None
            subdirectory = {"subdirectory": pin.git.subdirectory} if git is not None and pin.git is not None else {}
            found[name] = pin.model_copy(
                update={
                    "distribution": old[0],
                    "version": old[1],
                    "commit": record.get("commit"),
                    "git": git.model_copy(update=subdirectory) if git is not None else None,
                }
            )
    return found


def renamed(lock: Lock | None, pins: Pins) -> Lock | None:
    """The lock as if its pins had always been called what pins.yaml calls them now.

    A pin that is gone is one that is new, if that is the only one of its role with the same distribution or packages.
    """
    if lock is None:
        return None
    fresh = {name: pin for name, pin in pins.pins.items() if name not in lock["pins"]}
    names = {}
    for old, record in lock["pins"].items():
        same = [
            name
            for name, pin in fresh.items()
            if pin.role == record["role"]
            and (
                pin.distribution == record["distribution"]
                or not set(pin.import_packages).isdisjoint(record["packages"])
            )
        ]
        if old not in pins.pins and len(same) == 1:
            names[old] = same[0]
    if not names or len(set(names.values())) < len(names):
        return lock

    def entry(record: Mapping[str, Any]) -> dict[str, Any]:
        new = dict(record)
        if "pin" in record:
            new["pin"] = names.get(record["pin"], record["pin"])
        if "taken" in record:
            new["taken"] = {
                " ".join((names.get(p, p), s)): d
                for (p, _, s), d in ((k.partition(" "), d) for k, d in record["taken"].items())
            }
        return new

    modules = {
        path: {
            **module,
            "files": {names.get(pin, pin): files for pin, files in module["files"].items()},
            "entries": {key: entry(record) for key, record in module["entries"].items()},
        }
        for path, module in lock["modules"].items()
    }
    return {**lock, "modules": modules, "pins": {names.get(pin, pin): record for pin, record in lock["pins"].items()}}


def compare_sources(project: Project, lock: Lock, options: SourceOptions) -> None:
    """Compare what the user gives with `--source` with the lock, also when nothing has to be read.

    Raises:
        UpstreamError: it cannot be read, or it is not what the lock knows (PK402).
    """
    pins = parse_pins(project.pins.read_bytes(), project.shown(project.pins))
    opener = Opener(options, lock, pins)
    for name in options.sources:
        opener.compare(name)


def selected(pins: Pins, names: Collection[str]) -> dict[str, Pin]:
    """The pins of these names; all when none is named.

    Raises:
        ManifestError: there is no such pin (PK091).
    """
    for name in names:
        if name not in pins.pins:
            raise _unknown(pins, name)
    return {name: pin for name, pin in pins.pins.items() if not names or name in names}


def _unknown(pins: Pins, name: str) -> ManifestError:
    return ManifestError(
        finding("PK091", f"no pin or distribution is named {name}", help=f"Pins: {', '.join(sorted(pins.pins))}.")
    )


def check_sources(pins: Pins, options: SourceOptions) -> None:
    """What is given with `--source` is for a pin: `NAME`, or `NAME@VERSION`.

    Raises:
        ManifestError: there is no such pin (PK091).
    """
    for source in options.sources:
        if source.partition("@")[0] not in pins.pins:
            raise _unknown(pins, f"{source.partition('@')[0]}, which --source gives")


class Opener:
    """Opens each pin once, with what the lock knows of it.

    Raises:
        ManifestError: a source is given for no pin (PK091).
    """

    def __init__(self, options: SourceOptions, lock: Lock | None, pins: Pins) -> None:
        check_sources(pins, options)
        self.options, self.lock, self.pins = options, lock, pins
        self.opened: dict[str, SourceUpstream] = {}

    def __call__(self, name: str, pin: Pin) -> SourceUpstream:
        """The upstream of a pin, opened when first asked for."""
        upstream = self.opened.get(name)
        if upstream is None:
            known = self.known(name)
            artifact = None
            files: dict[str, str] = {}
            if known is not None:
                files = {path: found["raw"] for path, found in known["files"].items()}
                whole = known["artifact"]["sha256"] and pin.git is None
                if whole and name not in self.options.sources:
                    artifact = Artifact(**known["artifact"])
            upstream = open_upstream(name, pin, self.options, locked=files, locked_artifact=artifact)
            if name in self.options.sources:
                upstream.compare()
            self._remember(name, upstream)
            self.opened[name] = upstream
        return upstream

    def _remember(self, name: str, upstream: SourceUpstream) -> None:
        """What is known of the same artifact by the lock or the cache need not be searched for again."""
        identity, store = upstream.artifact.identity, self.options.store
        if identity is None:
            return
        known = self.known(name)
        same = known is not None and known["artifact"]["sha256"] == upstream.artifact.sha256
        place = ("elsewhere", elsewhere.FORMAT, identity)
        kept = elsewhere.Keeping(
            lambda: store.document(*place),
            lambda found: store.put_document(found, *place),
        )
        elsewhere.remember(upstream, kept, known if same else None)

    def compare(self, source: str) -> None:
        """Open what the user names as a source, if it is one of the pins of this run: `NAME`, or `NAME@VERSION`.

        Raises:
            UpstreamError: it cannot be read, or it is not what the lock knows (PK402).
        """
        if source in self.pins.pins:
            self(source, self.pins.pins[source])

    def known(self, name: str) -> Mapping[str, Any] | None:
        """The lock's record of the pin, if it is the same release."""
        record_ = (self.lock or {}).get("pins", {}).get(name)
        pin = self.pins.pins[name]
        if record_ and record_["version"] == pin.version and record_["distribution"] == pin.distribution:
            return record_ if record_.get("git") == pin.source_commit else None
        return None

    def reports(self) -> tuple[PinReport, ...]:
        """What each opened pin was read from."""
        return tuple(pin_report(self.opened[name]) for name in sorted(self.opened))
