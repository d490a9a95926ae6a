"""The project: where manifests and generated code are. Cheap to import: paths and settings only."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from keyword import iskeyword
from pathlib import Path
from typing import Any

from afd_patchkit.fence import MARKER
from afd_patchkit.files import LONGEST_INPUT, read_regular
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding, Position, finding
from afd_patchkit.findings.nearest import did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SETTINGS = "afd-patchkit.toml"
PYPROJECT = "pyproject.toml"
SECTION = "tool.afd-patchkit"
PINS = "pins.yaml"
OUTLINES = "outlines"
JOURNAL = ".upgrade.json"
"""Below the generated folder: input files that belong to its state and are perhaps not written yet."""

_WINDOWS = re.compile(r"(?i)(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9\u00b9\u00b2\u00b3])")
_GIT = re.compile(r"(?i)\.git|git~[0-9]+")
_UNKNOWN = 20
"""Unknown settings that are named each."""
_DOTS = 100
_DOTTED = re.compile(rf"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{_DOTS}}}""")
"""A key that TOML's parser needs quadratic time and memory for; a text that looks like one is none that settings hold."""

DEFAULTS: Mapping[str, str | bool] = {
    "manifests": "manifests",
    "generated": "generated",
    "package": "afd_backports",
    "lock": "patchkit.lock",
    "track": False,
    "marker": MARKER,
}


@dataclass(frozen=True, slots=True)
class Project:
    """Settings of one project; every path is absolute.

    Attributes:
        root: folder of the settings file.
        settings: the settings file: pyproject.toml or afd-patchkit.toml.
        manifests: folder of pins.yaml and the manifests.
        generated: folder of lock, outlines and the generated package.
        package: dotted name of the generated import package; its folder is below `generated`, and may lie in a package of
            one's own (`courier._patched`).
        lock: the lock file, below `generated`.
        track: whether generated modules are in version control, so that `check` compares the files too.
        marker: what stands between `# ` and ` START: <delta>` in a fence.
    """

    root: Path
    settings: Path
    manifests: Path
    generated: Path
    package: str
    lock: Path
    track: bool
    marker: str

    @property
    def pins(self) -> Path:
        """`pins.yaml`."""
        return self.manifests / PINS

    @property
    def package_folder(self) -> Path:
        """The folder of the generated package."""
        return self.generated.joinpath(*self.package.split("."))

    @property
    def outlines(self) -> Path:
        """The folder of the outlines."""
        return self.generated / OUTLINES

    def at(self, folder: Path) -> Project:
        """The project with another generated folder."""
        return replace(self, generated=folder, lock=folder / self.lock.relative_to(self.generated))

    def beside(self, moved: Mapping[str, str]) -> Path:
        """Where it is generated with other versions than the pinned ones: pin or distribution to version."""
        words = [
            f"{name}-{version[:12] if re.fullmatch('[0-9a-f]{40}', version) else version}"
            for name, version in sorted(moved.items())
        ]
        return self.generated.with_name(re.sub(r"[^A-Za-z0-9.+_-]", "_", "-".join([self.generated.name, *words])))

    def linked(self, path: Path) -> Path | None:
        """The first symbolic link on the way from the project's root to `path`, itself included: nothing is written through one."""
        text, root, generated = os.fspath(path), _folder(self.root), _folder(self.generated)
        if text.startswith(root):
            at = text.find(os.sep, len(root))
        elif f"{text}{os.sep}".startswith(generated):
            at = len(generated) - 1  # a folder that was named apart counts, too
        else:
            return None
        while 0 <= at < len(text):
            if os.path.islink(text[:at]):
                return Path(text[:at])
            at = text.find(os.sep, at + 1)
        return path if os.path.islink(text) else None

    def shown(self, path: Path) -> str:
        """`path` as the user would type it in the project's root."""
        text, root = path.as_posix(), self.root.as_posix()
        return text.removeprefix(root.rstrip("/") + "/") if path != self.root else "."

    def manifest_files(self) -> list[Path]:
        """The manifests, in the order of their paths.

        Raises:
            ManifestError: a symbolic link leads out of the project or to a folder (PK023).
        """
        return [p for p in self._files() if p.suffix in (".yaml", ".yml") and p != self.pins]

    def input_files(self) -> list[Path]:
        """Every file that decides what is generated: settings, pins, manifests, owned parts.

        Raises:
            ManifestError: as for `manifest_files`.
        """
        return [self.settings, *(p for p in self._files() if p.suffix in (".yaml", ".yml", ".py"))]

    def _files(self) -> list[Path]:
        found, problems = [], []
        for path in _walk(self.manifests):
            if not path.name.isprintable():
                problems.append(self._unprintable(path))
                continue
            if path.is_symlink() and (not self.holds(path) or path.is_dir()):
                problems.append(self.outside(path))
            elif path.is_file():
                found.append(path)
        if problems:
            raise ManifestError.collect(sorted(problems, key=lambda f: str(f.manifest)))
        return sorted(found, key=lambda p: p.relative_to(self.manifests).as_posix())

    def _unprintable(self, path: Path) -> Finding:
        shown = ascii(self.shown(path))
        return finding(
            "PK024",
            f"{shown} has a character in its name that cannot be printed",
            manifest=Position(shown),
            help="Rename it: the names of manifests and parts stand in generated files.",
        )

    def holds(self, path: Path) -> bool:
        """Whether `path` lies in the project, symbolic links followed."""
        try:
            return path.resolve().is_relative_to(self.root.resolve())
        except (OSError, RuntimeError):  # a loop of links
            return False

    def outside(self, path: Path) -> Finding:
        """The finding for a link that is not followed."""
        return finding(
            "PK023",
            f"{self.shown(path)} is a symbolic link that is not followed",
            manifest=Position(self.shown(path)),
            help="Links in the manifest folder may lead to files of the project only. Put the file itself there.",
        )


def _folder(path: Path) -> str:
    """A folder as the beginning of the paths below it."""
    return os.path.join(path, "")


def _walk(folder: Path) -> Iterator[Path]:
    """Files and links below `folder`; hidden ones and caches are left out."""
    for current, folders, files in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        here = Path(current)
        yield from (here / name for name in files if not name.startswith("."))
        yield from (here / name for name in folders if (here / name).is_symlink())


def _unreadable(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):
        return
    raise ManifestError(
        finding("PK024", f"cannot read: {error.strerror}", manifest=Position(str(error.filename)))
    ) from error


class NoProjectError(ManifestError):
    """There is no project in a folder or above it."""


def load_project(start: Path | None = None) -> Project:
    """The project that `start` (a folder, or a file in one; the current folder by default) lies in.

    Raises:
        NoProjectError: there is none (PK021).
        ManifestError: its settings are wrong (PK022, PK023, PK024).
    """
    folder = Path(os.path.abspath(start or Path.cwd()))
    if folder.is_file():
        folder = folder.parent
    for candidate in (folder, *folder.parents):
        own, shared = candidate / SETTINGS, candidate / PYPROJECT
        table = read_settings(shared, SECTION) if shared.is_file() else None
        if own.is_file():
            if table is not None:
                message = f"settings stand both in {SETTINGS} and in {PYPROJECT}"
                raise ManifestError(finding("PK022", message, manifest=Position(str(own)), help="Keep one of them."))
            return _project(own, read_settings(own, "") or {}, "")
        if table is not None:
            return _project(shared, table, SECTION)
    raise NoProjectError(
        finding(
            "PK021",
            f"no project in {folder} or above it",
            help=f"Run `afd-patchkit init`, or add [{SECTION}] to the project's {PYPROJECT}.",
        )
    )


def read_settings(file: Path, name: str) -> dict[str, Any] | None:
    """The table `name` of a TOML file; None when it has none.

    Raises:
        ManifestError: the file is not TOML (PK022) or cannot be read (PK024).
    """
    try:
        text = read_regular(file, LONGEST_INPUT).decode("utf-8")
        if far := _DOTTED.search(text):
            where = Position(str(file), text.count("\n", 0, far.start()) + 1)
            raise ManifestError(finding("PK022", f"a key of more than {_DOTS} parts", manifest=where))
        table: Any = tomllib.loads(text)
    except OSError as error:
        raise ManifestError(finding("PK024", f"cannot read: {error.strerror}", manifest=Position(str(file)))) from error
    except UnicodeDecodeError as error:
        raise ManifestError(finding("PK022", "not UTF-8", manifest=Position(str(file)))) from error
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        where = Position(str(file), *(int(n) for n in place.groups())) if place else Position(str(file))
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise ManifestError(finding("PK022", f"not TOML: {message}", manifest=where)) from error
    except RecursionError as error:
        raise ManifestError(finding("PK022", "nested too deeply", manifest=Position(str(file)))) from error
    except ValueError as error:  # a number of so many digits that Python refuses it, or a date that is none
        raise ManifestError(finding("PK022", f"not TOML: {error}", manifest=Position(str(file)))) from error
    for key in name.split(".") if name else ():
        table = table.get(key) if isinstance(table, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ManifestError(finding("PK022", f"[{name}] is not a table", manifest=Position(str(file))))
    return table


def _project(file: Path, table: dict[str, Any], section: str) -> Project:
    lines = read_regular(file, LONGEST_INPUT).decode("utf-8").splitlines()
    problems: list[Finding] = []

    def wrong(key: str, message: str, help_: str | None = None) -> None:
        where = Position(file.name, *_place(lines, section, key))
        problems.append(finding("PK022", message, manifest=where, help=help_))

    unknown = 0
    for key, value in table.items():
        if key not in DEFAULTS:
            unknown += 1
            if unknown <= _UNKNOWN:
                wrong(key, f"unknown setting `{key}`", did_you_mean(key, DEFAULTS, f"Known: {', '.join(DEFAULTS)}."))
        elif type(value) is not type(DEFAULTS[key]):
            wrong(key, f"`{key}` must be {'true or false' if key == 'track' else 'text'}")
    if unknown > _UNKNOWN:
        problems.append(
            finding(
                "PK022",
                f"{unknown - _UNKNOWN} more unknown settings",
                manifest=Position(file.name, *_place(lines, section, "")),
            )
        )
    values: dict[str, Any] = {
        key: table[key] if type(table.get(key)) is type(default) else default for key, default in DEFAULTS.items()
    }
    for key in ("manifests", "generated", "lock"):
        if problem := _path_problem(values[key]):
            wrong(key, f"`{key}` {problem}")
    package, lock = values["package"].split("."), values["lock"].split("/")
    if not all(p.isidentifier() and p.isascii() and not iskeyword(p) for p in package):
        wrong(
            "package", f"`package` must be a Python name, or several with dots between them, not {values['package']!r}"
        )
    elif reserved := next((p for p in package if reserved_on_windows(p)), None):
        wrong("package", f"`package` has the part {reserved}, which Windows reserves")
    marker = values["marker"]
    if not marker or marker != marker.strip() or not marker.isprintable():
        wrong("marker", "`marker` must be one line of text without blanks around it")
    folders = (values["manifests"].casefold() + "/", values["generated"].casefold() + "/")
    if folders[0].startswith(folders[1]) or folders[1].startswith(folders[0]):
        wrong("generated", "`manifests` and `generated` must be folders apart")
    # names that differ in case only are one name on macOS and Windows
    if package[0].casefold() == OUTLINES:
        wrong("package", f"`package` must not be {OUTLINES}: that is the folder of the outlines")
    if lock[0].casefold() == package[0].casefold():
        wrong("lock", "`lock` must stand outside the generated package")
    if lock[0].casefold() in (OUTLINES, JOURNAL):
        wrong("lock", f"`lock` must not be {lock[0]}: that is a name of the tool's own")
    if problems:
        raise ManifestError.collect(problems)
    root, generated = file.parent, file.parent / values["generated"]
    project = Project(
        root=root,
        settings=file,
        manifests=root / values["manifests"],
        generated=generated,
        package=values["package"],
        lock=generated / values["lock"],
        track=values["track"],
        marker=marker,
    )
    leaving = [p for p in (project.manifests, generated, project.package_folder, project.lock) if not project.holds(p)]
    if leaving:
        raise ManifestError.collect(project.outside(path) for path in leaving)
    return project


def _path_problem(text: str) -> str | None:
    """Why a setting is no path below the project; None when it is one."""
    parts = text.split("/")
    if "\\" in text or ":" in text or any(p in ("", ".", "..") for p in parts):
        return "must be a relative path with `/`, without `..`"
    if not text.isprintable() or any(p != p.strip() or p.endswith(".") for p in parts):
        return "must be a path of printable characters, without blanks around a part or a dot behind one"
    if any(_GIT.fullmatch(p) for p in parts):
        return "must not lead into .git"
    if reserved := next((p for p in parts if reserved_on_windows(p)), None):
        return f"has the part {reserved}, which Windows reserves"
    return None


def reserved_on_windows(part: str) -> bool:
    """Whether a part of a path names a device on Windows, whatever follows its first dot."""
    return _WINDOWS.fullmatch(part.partition(".")[0].rstrip()) is not None


def _place(lines: list[str], section: str, key: str) -> tuple[int, int]:
    """Line and column of a key of `[section]`; the header's when the key is not found; the file's when neither is."""
    header = (0, 0)
    inside = not section
    table = re.compile(rf"\s*\[\s*{re.escape(section)}\s*\]\s*(#.*)?")
    setting = re.compile(rf"""(\s*)["']?{re.escape(key)}["']?\s*[=.]""")
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("["):
            inside = bool(section) and table.fullmatch(line) is not None
            header = (number, 1) if inside else header
        elif inside and (found := setting.match(line)):
            return number, len(found[1]) + 1
    return header
