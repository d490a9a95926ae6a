"""Files of the generated package that no manifest describes: the packages' own, and what installs it. Cheap to import.

All of them follow from the lock, so that `check` can compare them without generating anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from afd_patchkit.header import INIT, INSTALL_FUNCTIONS, INSTALLS, RUNTIME, line
from afd_patchkit.project import Project
from afd_patchkit.run.ownership import is_ours, licence_paths, licence_sums, package_inits, sums_text, typed_marker

_OWN = re.compile(r"^from afd_patchkit\.runtime\b", re.MULTILINE)


def support_files(project: Project, lock: Mapping[str, Any]) -> dict[Path, bytes]:
    """Every such file with its text, as the lock's modules want them.

    Args:
        project: the project.
        lock: its lock.
    """
    live = {name: module for name, module in lock["modules"].items() if "sha256" in module}
    found = dict.fromkeys(package_inits(project, live), INIT)
    marker = typed_marker(project)
    if live and (is_ours(marker, None) or not os.path.lexists(marker)):  # one of a person's own will do
        found[marker] = f"{line(project.shown(project.manifests))}\n".encode()
    if licence_paths(project, lock):
        found[licence_sums(project)] = sums_text(project, lock)
    records = [(name, record) for name, module in live.items() for record in module.get("installs", ())]
    if not records:
        return found
    root = project.package_folder
    names = ", ".join(f"{name} as {name}" for name in INSTALL_FUNCTIONS)
    found[root / "__init__.py"] = INIT + f"\nfrom {project.package}.{INSTALLS} import {names}\n".encode()
    found[root / f"{INSTALLS}.py"] = _installs(project.package, lock, records).encode()
    for name, text in _runtime(project.package).items():
        found[root / RUNTIME / name] = text.encode()
    return found


def _runtime(package: str) -> dict[str, str]:
    """The runtime's modules, for this package."""
    from importlib import resources  # slow to import, and few packages install anything

    head = f"# SPDX-License-Identifier: Apache-2.0\n{line('its own runtime')}\n"
    files = (f for f in resources.files("afd_patchkit.runtime").iterdir() if f.name.endswith(".py"))
    return {
        file.name: head + _OWN.sub(f"from {package}.{RUNTIME}", file.read_text(encoding="utf-8").replace("\r\n", "\n"))
        for file in files
    }


def _installs(package: str, lock: Mapping[str, Any], records: list[tuple[str, Mapping[str, Any]]]) -> str:
    targets = "".join(f"        {_target(package, lock, name, record)},\n" for name, record in records)
    functions = "".join(f"{name} = INSTALLER.{name}\n" for name in INSTALL_FUNCTIONS)
    return f'''{line("the manifests' `installs`")}
"""What this package replaces, and how it is installed: `install()`, `scope()`, `verify()`, `uninstall()`."""

from {package}.{RUNTIME} import Gate, Installer, Pinned, Target

INSTALLER = Installer(
    "{package}",
    (
{targets}    ),
)

{functions}'''


def _target(package: str, lock: Mapping[str, Any], name: str, record: Mapping[str, Any]) -> str:
    """The call that makes one target."""
    pin = lock["pins"][record["pin"]]
    module, _, qualname = record["symbol"].partition(":")
    home, _, original = record["original"].partition(":")
    dotted = f"{package}.{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
    pinned = _call(
        "Pinned",
        home,
        tuple(original.split(".")),
        tuple(map(tuple, record["parts"])),
        record["layers"],
        tuple(record["roots"]),
        record["class"],
    )
    gate = _call("Gate", pin["distribution"], pin["version"])
    given = (module, tuple(qualname.split(".")), f"{dotted}:{record['with']}", record["mode"])
    aliases = None if record["aliases"] == "all" else tuple(record["aliases"])
    sites = tuple(map(tuple, record["sites"]))
    last = ", ".join(map(repr, (aliases, tuple(record["native"]), sites)))
    return f"Target({', '.join(map(repr, given))}, {pinned}, {gate}, {last})"


def _call(name: str, *given: object) -> str:
    return f"{name}({', '.join(map(repr, given))})"
