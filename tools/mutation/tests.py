"""What a test file can see: the files of this project that it imports, directly and indirectly, by reading them."""

from __future__ import annotations

import ast
import hashlib
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path

DATA = re.compile(r"[\w/-]+\.(?!py$)\w+")
DOTTED = re.compile(r"[A-Za-z_]\w*(\.\w+)+")


class Sight:
    """The test files of a project, and what each of them sees.

    Attributes:
        root: the project.
        generated: texts of the generated modules by their path below `package_root`.
    """

    def __init__(self, root: Path, generated: Mapping[str, str], tests: Iterable[str]) -> None:
        self.root, self.generated = root, generated
        self._folders = [root / folder for folder in tests]
        self._imports: dict[str, frozenset[str]] = {}
        self._seen: dict[str, dict[str, int]] = {}
        self._meanings: dict[str, str] = {}
        self._one = threading.RLock()  # parsing in two threads at once is not safe before Python 3.12

    @cached_property
    def files(self) -> list[str]:
        """The test files, as paths below the root."""
        return sorted(self._shown(path) for folder in self._folders for path in folder.rglob("test_*.py"))

    def seen(self, file: str) -> dict[str, int]:
        """All that a file sees, with the number of imports between; generated modules by their path, others below the root."""
        with self._one:
            if file not in self._seen:
                self._seen[file] = self._look(file)
            return self._seen[file]

    def _look(self, file: str) -> dict[str, int]:
        found = {file: 0}
        queue = [file]
        for parent in Path(file).parents:
            if (self.root / parent / "conftest.py").is_file():
                queue.append((parent / "conftest.py").as_posix())
                found[queue[-1]] = 1
        while queue:
            current = queue.pop(0)
            for name in sorted(self._imported(current) - found.keys()):
                found[name] = found[current] + 1
                queue.append(name)
        return found

    def about(self, module: str) -> list[str]:
        """The test files that see a generated module: those named after it first, then the nearest."""
        stem = Path(module).stem
        near = [
            (f"test_{stem}" not in file, seen[module], file)
            for file in self.files
            if module in (seen := self.seen(file))
        ]
        return [file for _, _, file in sorted(near)]

    def digest(self, file: str, generated: Mapping[str, str], more: Iterable[str] = ()) -> str:
        """Digest of all that decides the result of a test file, when these are the generated modules.

        Comments of generated modules decide nothing.
        """
        made = hashlib.sha256("\0".join(more).encode())
        for name in sorted(self.seen(file)):
            data = self.meaning(generated[name]).encode() if name in generated else (self.root / name).read_bytes()
            made.update(f"\0{name}\0{hashlib.sha256(data).hexdigest()}".encode())
        return made.hexdigest()

    def meaning(self, text: str) -> str:
        """A module's text without what does nothing: comments and layout."""
        with self._one:
            if text not in self._meanings:
                self._meanings[text] = ast.dump(ast.parse(text))
            return self._meanings[text]

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _imported(self, file: str) -> frozenset[str]:
        if file not in self._imports:
            self._imports[file] = frozenset(self._read(file)) if file.endswith(".py") else frozenset()
        return self._imports[file]

    def _read(self, file: str) -> Iterator[str]:
        text = self.generated.get(file)
        path = self.root / file
        tree = ast.parse(path.read_text(encoding="utf-8") if text is None else text)
        lists = generated = False
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = _absolute(file, node)
                names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                # modules that are imported by name in another process, files that are read
                names = [node.value] if DOTTED.fullmatch(node.value) else []
                beside = path.parent / node.value
                if DATA.fullmatch(node.value) and beside.is_file():
                    yield self._shown(beside)
            else:
                lists |= isinstance(node, ast.Attribute) and node.attr in ("glob", "rglob", "iter_modules")
                continue
            for name in names:
                for module in self._modules(name):
                    generated |= module in self.generated
                    yield module
        if lists and generated and file not in self.generated:  # it looks at all of them
            yield from self.generated

    def _modules(self, name: str) -> Iterator[str]:
        """The file of a module, and of the packages around it."""
        parts = name.split(".")
        for n in range(1, len(parts) + 1):
            for path in ("/".join(parts[:n]) + ".py", "/".join([*parts[:n], "__init__.py"])):
                if path in self.generated or (parts[0] in ("tests", "tools") and (self.root / path).is_file()):
                    yield path


def _absolute(file: str, node: ast.ImportFrom) -> str:
    parts = Path(file).with_suffix("").parts
    base = parts[: len(parts) - node.level] if node.level else ()
    return ".".join([*base, *([node.module] if node.module else [])])
