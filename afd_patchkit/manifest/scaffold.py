"""`init`: a small project that regenerates at once, from an upstream that is installed already; or what a project lacks."""

from __future__ import annotations

import json
import os
import re
from importlib import metadata, resources
from pathlib import Path

from packaging.version import Version

from afd_patchkit.files import read_regular, replace_file
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Position, finding
from afd_patchkit.manifest.load import parse_pins
from afd_patchkit.manifest.schema import COMMENT, MANIFEST_FILE, PINS_FILE, manifest_schema, pins_schema, schema_text
from afd_patchkit.project import PYPROJECT, SECTION, SETTINGS, Project, load_project, read_settings
from afd_patchkit.version import __version__

# a dependency of this tool: installed wherever the tool is, so that the first `regen` needs no network
UPSTREAM = "packaging"
PACKAGE = "patched"

_SETTINGS = f"""\
manifests = "manifests"
generated = "generated"
# Generated modules are imported from here: `from {PACKAGE}.starter import version`. Name it after your project. A name with dots,
# such as `acme._{PACKAGE}` with generated = "src", puts them into a package of your own, which is not touched otherwise.
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

_IGNORED = "# built by `afd-patchkit regen`; lock and outlines are committed"
_WORKFLOWS = {
    "check.yml": ".github/workflows/afd-patchkit.yml",
    "drift.yml": ".github/workflows/afd-patchkit-drift.yml",
    "pre-commit-config.yaml": ".pre-commit-config.yaml",
}
"""What `--ci` writes: name of the template, and where it goes."""


def scaffold(folder: Path, *, ci: bool = False) -> list[Path]:
    """Write a project into `folder`, which is made if need be. One that is there gets what it lacks.

    Settings go to `pyproject.toml`, or to `afd-patchkit.toml` where there is a `pyproject.toml` of something else. What generated modules
    need in `.gitignore` is added to it. In a project that is there, copies of the schemas are brought up to date, and nothing else.

    Args:
        folder: the project's folder.
        ci: also write workflows and the configuration of pre-commit, where there are none.

    Returns:
        The files written.

    Raises:
        ManifestError: a file of a project exists already, but there is no project (PK025); then nothing is written.
    """
    project = _project_in(folder)
    if project is not None:
        return renewed(project, ci=ci)
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
    if ci:
        files |= _workflows(folder, UPSTREAM)
    ignored = _ignore(folder, f"generated/{PACKAGE}", "generated")
    written: list[Path] = []
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as stream:
                written.append(path)
                stream.write(text)
        if ignored is not None:
            replace_file(folder / ".gitignore", ignored)
            written.append(folder / ".gitignore")
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    return written


def renewed(project: Project, *, ci: bool) -> list[Path]:
    """Bring up to date what the tool has written into a project beside generated files.

    Args:
        project: the project.
        ci: also write workflows and the configuration of pre-commit, where there are none.

    Returns:
        The files written.
    """
    files: dict[Path, bytes] = {}
    for name, schema in ((MANIFEST_FILE, manifest_schema()), (PINS_FILE, pins_schema())):
        path, text = project.manifests / name, schema_text(schema).encode()
        if _is_copy(path) and read_regular(path) != text:
            files[path] = text
    if not project.track:
        below = project.package_folder.relative_to(project.root).as_posix()
        ignored = _ignore(project.root, below, project.shown(project.generated))
        if ignored is not None:
            files[project.root / ".gitignore"] = ignored
    if ci:
        pins = parse_pins(read_regular(project.pins), project.shown(project.pins)).pins
        pin = next((name for name, found in pins.items() if found.role == "target"), UPSTREAM)
        files |= {project.root / name: text.encode() for name, text in _workflows(project.root, pin).items()}
    if links := [path for path in files if project.linked(path) is not None]:
        raise ManifestError.collect(project.outside(path) for path in links)
    for path, data in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
    return list(files)


def _project_in(folder: Path) -> Project | None:
    """The project whose root is `folder`; None where there is none yet."""
    shared = folder / PYPROJECT
    if not (folder / SETTINGS).is_file() and not (shared.is_file() and read_settings(shared, SECTION) is not None):
        return None
    project = load_project(folder)
    return project if project.pins.is_file() else None


def _is_copy(path: Path) -> bool:
    """Whether a file is a schema that the tool has written."""
    try:
        return not path.is_symlink() and json.loads(read_regular(path)).get("$comment") == COMMENT
    except (OSError, ValueError, AttributeError, RecursionError):
        return False


def _ignore(folder: Path, package: str, generated: str) -> bytes | None:
    """The text of `.gitignore` with the rules for generated modules; None when it has them, or is no file of the project."""
    path = folder / ".gitignore"
    try:
        old = b"" if not os.path.lexists(path) else read_regular(path)
    except OSError:
        return None
    lines = old.decode("utf-8", "surrogateescape").splitlines()
    missing = [rule for rule in (f"/{package}/", f"/{generated}-*/") if rule not in lines]
    if not missing or path.is_symlink():
        return None
    gap = b"" if not old or old.endswith(b"\n") else b"\n"
    return old + gap + "\n".join([_IGNORED, *missing, ""]).encode()


def _workflows(folder: Path, pin: str) -> dict[str, str]:
    """Where each template goes, with its text; those whose place is taken are left out."""
    found = {}
    for name, place in _WORKFLOWS.items():
        if not os.path.lexists(folder / place):
            text = (resources.files("afd_patchkit.manifest") / "ci" / name).read_text(encoding="utf-8")
            text = re.sub(r"(afd-patchkit==)[0-9.]+", rf"\g<1>{__version__}", text)
            found[place] = re.sub(r"(?m)^(\s+PIN: ).*$", rf"\g<1>{pin}", text)
    return found
