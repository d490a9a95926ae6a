"""What a module binds: kinds, guards, how often, how surely; star imports."""

from __future__ import annotations

import textwrap

import pytest

from afd_patchkit.names.bindings import module_bindings
from afd_patchkit.names.imports import render_imports
from afd_patchkit.names.stars import lookup, star_exports
from afd_patchkit.names.ways import by_value
from afd_patchkit.upstream.base import MemoryUpstream


def module(source: str, path: str = "acme/sub/mod.py"):
    files = {"acme/__init__.py": "", "acme/sub/__init__.py": "", path: textwrap.dedent(source).lstrip("\n")}
    upstream = MemoryUpstream(files)
    return upstream.read(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))


# source, name, (kind, guard, paths, always, mutable)
TABLE = [
    ("import a.b as n", ("import", "none", 1, True, False)),
    ("import n.b\nimport n.c\nimport n", ("import", "none", 1, True, False)),
    ("import n\nimport x as n", ("import", "none", 2, True, True)),
    ("from .x import y as n", ("from", "none", 1, True, False)),
    ("def n(): pass", ("def", "none", 1, True, False)),
    ("class n: pass", ("class", "none", 1, True, False)),
    ("n = 1", ("assign", "none", 1, True, False)),
    ("n: int = 1", ("assign", "none", 1, True, False)),
    ("n: int\nn = 1", ("assign", "none", 1, True, False)),
    ("n = 1\nn = 2", ("assign", "none", 2, True, True)),
    ("n = 1\nn += 2", ("other", "none", 2, True, True)),
    ("a, (n, *b) = c", ("other", "none", 1, True, False)),
    ("n = 1\ndef f():\n    def g():\n        global n\n        n = 2", ("assign", "none", 1, True, True)),
    ("def f():\n    global n\n    n = 2", ("global", "none", 0, False, True)),
    ("n = 1\ndel n", ("assign", "none", 1, True, True)),
    ("if c:\n    n = 1\nelse:\n    n = 2", ("assign", "conditional", 1, True, False)),
    ("if c:\n    n = 1\nelif d:\n    n = 2\nelse:\n    raise E", ("assign", "conditional", 1, True, False)),
    ("if c:\n    n = 1", ("assign", "conditional", 1, False, False)),
    ("n = 0\nif c:\n    n = 1", ("assign", "none", 2, True, True)),
    ("try:\n    import n\nexcept ImportError:\n    n = None", ("assign", "try", 1, True, False)),
    ("try:\n    import n\nexcept ImportError:\n    pass", ("import", "try", 1, False, False)),
    ("try:\n    import n\nexcept ImportError:\n    raise E", ("import", "try", 1, True, False)),
    ("try:\n    import n\nexcept ImportError as e:\n    n = None\nfinally:\n    n = 3", ("assign", "none", 2, True, True)),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from x import n", ("from", "type_checking", 1, True, False)),
    ("import typing\nif typing.TYPE_CHECKING:\n    from x import n\nelse:\n    n = 1", ("assign", "conditional", 1, True, False)),
    ("if TYPE_CHECKING:\n    from x import n\nif c:\n    from y import n", ("from", "conditional", 1, False, False)),
    ("if not TYPE_CHECKING:\n    n = 1", ("assign", "conditional", 1, True, False)),
    ("for n in x: pass", ("other", "none", 2, False, True)),
    ("for i in x:\n    n = i", ("assign", "conditional", 2, False, True)),
    ("with x as n: pass", ("other", "none", 1, True, False)),
    ("with suppress(ImportError):\n    import n", ("import", "conditional", 1, False, False)),
    ("match x:\n    case [n]: pass", ("other", "none", 1, False, False)),
    ("match x:\n    case 1: n = 1\n    case _: n = 2", ("assign", "conditional", 1, True, False)),
    ("if (n := f()): pass", ("other", "none", 1, True, False)),
    ("x = [n := i for i in y]", ("other", "none", 1, True, False)),
    ("from typing import overload\n@overload\ndef n(a: int): ...\n@overload\ndef n(a: str): ...\ndef n(a): ...", ("def", "none", 1, True, False)),
]  # fmt: skip


@pytest.mark.parametrize(("source", "facts"), TABLE)
def test_kind_guard_and_count_of_a_binding(source: str, facts: tuple[object, ...]) -> None:
    found = module_bindings(module(source))["n"]
    assert (found.kind, found.guard, found.paths, found.always, found.mutable) == facts


@pytest.mark.parametrize(
    ("source", "statements"),
    [
        ("import a.b as n", ["import a.b as n"]),
        ("import n.b\nimport n.c", ["import n.b", "import n.c"]),
        ("from . import n", ["from acme.sub import n"]),
        ("from .. import x as n", ["from acme import x as n"]),
        ("from ..x.y import n", ["from acme.x.y import n"]),
        ("from x import n as n", ["from x import n"]),
        ("n = 1", ["from acme.sub.mod import n"]),
        ("from __future__ import annotations as n", ["from acme.sub.mod import n"]),
        ("from ....x import n", ["from acme.sub.mod import n"]),
        ("try:\n    import n\nexcept ImportError:\n    n = None", ["from acme.sub.mod import n"]),
        ("import n\nif c:\n    import n.extra", ["from acme.sub.mod import n"]),
        ("if TYPE_CHECKING:\n    from .x import n", ["if TYPE_CHECKING:\n    from acme.sub.x import n"]),
        ("if TYPE_CHECKING:\n    class n: pass", ["if TYPE_CHECKING:\n    from acme.sub.mod import n"]),
    ],
)
def test_how_the_same_object_is_imported(source: str, statements: list[str]) -> None:
    block = render_imports(by_value(module_bindings(module(source))["n"], "acme.sub.mod"))
    assert block.removeprefix("from typing import TYPE_CHECKING\n\n") == "\n".join(statements) + "\n"


def test_relative_imports_of_a_package_start_from_itself() -> None:
    found = module_bindings(module("from . import x\nfrom .y import z", "acme/pack/__init__.py"))
    assert (found["x"].module, found["z"].module) == ("acme.pack", "acme.pack.y")


def test_bindings_are_computed_once_per_file() -> None:
    file = module("a = 1")
    assert module_bindings(file) is module_bindings(file)


def test_star_imports_are_followed_to_what_the_other_module_exports() -> None:
    upstream = MemoryUpstream(
        {
            "acme/__init__.py": "from .plain import *\nfrom .listed import *\nfrom outside import *\nown = 1\ntwice = 1\n",
            "acme/plain.py": "from .deeper import *\nopen_name = twice = 1\n_hidden = 1\n",
            "acme/deeper.py": "deep = 1\n",
            "acme/listed.py": "__all__ = ['_told']\n__all__ += ['shown']\n_told = shown = untold = 1\n",
            "acme/computed.py": "__all__ = sorted(globals())\n",
        },
        pin="acme",
    )
    file = upstream.read("acme")

    def found(name: str):
        binding = lookup(file, name, upstream).binding
        return binding and (binding.kind, binding.module, binding.mutable)

    assert found("own") == ("assign", None, False)
    assert found("open_name") == ("star", "acme.plain", False)
    assert found("deep") == ("star", "acme.plain", False)
    assert found("_told") == ("star", "acme.listed", False)
    # bound here and by a star: only the module knows which one is last
    assert found("twice") == ("assign", None, True)
    assert found("untold") is None
    assert found("_hidden") is None
    assert lookup(file, "elsewhere", upstream).unread == ("outside",)
    assert star_exports("acme.computed", upstream) is None
