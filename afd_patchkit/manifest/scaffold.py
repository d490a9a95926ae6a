"""`init`: a small project that regenerates at once, from an upstream that is installed already."""

from __future__ import annotations

import os
from importlib import metadata
from pathlib import Path

from packaging.version import Version

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Position, finding
from afd_patchkit.manifest.schema import MANIFEST_FILE, PINS_FILE, manifest_schema, pins_schema, schema_text
from afd_patchkit.project import PYPROJECT, SECTION, SETTINGS, read_settings

# a dependency of this tool: installed wherever the tool is, so that the first `regen` needs no network
UPSTREAM = "packaging"
PACKAGE = "patched"

_SETTINGS = f"""\
manifests = "manifests"
generated = "generated"
package = "{PACKAGE}"
"""

_PINS = """\
# yaml-language-server: $schema={schema}
# The releases that code is taken from. `afd-patchkit pins` shows what they resolve to.
schema: 1
pins:
  {upstream}:
    distribution: {upstream}
    version: "{version}"
    role: target
"""

_MANIFEST = """\
# yaml-language-server: $schema=../{schema}
# One manifest describes one generated module: which upstream symbols it holds, and what is changed in each.
schema: 1
module: starter/version.py
summary: Release tags as versions.
pin: {upstream}
entries:
  - symbol: packaging.version:parse
    name: parse_tag
    kind: copy
    reason: Our tags are written release-1.2, which upstream refuses.
    functionality: Drops the prefix of a tag before it is parsed.
    forwarded: not-needed
    remove_when:
      - contains: {{in: packaging.version:parse, pattern: "version.removeprefix(...)"}}
    deltas:
      - name: prefix of release tags
        expr: |
          version
        within: |
          return Version(...)
        with: |
          __upstream__.removeprefix("release-")
"""

_IGNORED = f"""\
# built by `afd-patchkit regen`; lock and outlines in generated/ are committed
/generated/{PACKAGE}/
"""


def scaffold(folder: Path) -> list[Path]:
    """Write a project into `folder`, which is made if need be.

    Settings go to `pyproject.toml`, or to `afd-patchkit.toml` where there is a `pyproject.toml` of something else. A `.gitignore` that
    is there stays as it is.

    Returns:
        The files written.

    Raises:
        ManifestError: a file of the project exists already (PK025); then nothing is written.
    """
    pyproject = folder / PYPROJECT
    table = read_settings(pyproject, SECTION) if pyproject.is_file() else None
    if pyproject.is_file() and table is None:
        settings = {SETTINGS: _SETTINGS}
    else:
        settings = {PYPROJECT: f"[{SECTION}]\n{_SETTINGS}"}
    version = str(Version(metadata.version(UPSTREAM)))
    files = {
        **settings,
        "manifests/pins.yaml": _PINS.format(schema=PINS_FILE, upstream=UPSTREAM, version=version),
        "manifests/starter/version.yaml": _MANIFEST.format(schema=MANIFEST_FILE, upstream=UPSTREAM),
        f"manifests/{MANIFEST_FILE}": schema_text(manifest_schema()),
        f"manifests/{PINS_FILE}": schema_text(pins_schema()),
    }
    # also settings that this scaffold would not write, but that would be found in the folder
    there = [name for name in (*files, SETTINGS) if os.path.lexists(folder / name)]
    if there:
        raise ManifestError.collect(
            finding(
                "PK025",
                f"{name} exists already; nothing was written",
                manifest=Position((folder / name).as_posix()),
                help="Run `afd-patchkit init` in an empty folder and copy what you need.",
            )
            for name in dict.fromkeys(there)
        )
    if not os.path.lexists(folder / ".gitignore"):
        files[".gitignore"] = _IGNORED
    written: list[Path] = []
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as stream:
                written.append(path)
                stream.write(text)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written
