"""The same plans on every Python, syntax that only newer ones have, and the code of untouched functions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from afd_patchkit.source.locate import definitions
from afd_patchkit.upstream.base import MemoryUpstream
from tests.names import test_rules as rules
from tests.names.world import dedent

VERSIONS = ["3.10", "3.11", "3.12", "3.13"]


def interpreter(version: str) -> str | None:
    """A Python of that version: this one, one on the path, or one that pyenv keeps."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return sys.executable
    kept = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"))
    found = shutil.which(f"python{version}")
    # a shim of pyenv stands on the path for versions that are not chosen
    works = found and not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode
    return found if works else str(kept[-1]) if kept else None


def ask(
    version: str, root: Path, files: dict[str, str], symbols: list[tuple[str, str | None]]
) -> list[dict[str, object]]:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    request = json.dumps({"files": {"acme/__init__.py": "", **dedent(files)}, "symbols": symbols})
    command = [python, "-I", str(Path(__file__).with_name("portable.py")), str(root)]
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: list[dict[str, object]] = json.loads(done.stdout)
    return result


FSTRINGS = {
    "acme/fs.py": """
        n = 1
        n = 2
        class A:
            def f(self, w):
                return f'''{n}
                    {super().__str__()!r:>{n}} é{self.__p}''' f"{w}{n}" + f"{ {'a': n}['a'] }{(lambda n: n)(n):{n}.{n}}"
    """,
}


def test_every_python_makes_the_same_plans(root: Path) -> None:
    files = {**rules.GLOBALS, **rules.CLASSES, **rules.RELATIVE, **rules.GUARDED, **rules.ATTRIBUTES, **FSTRINGS}
    upstream = MemoryUpstream({"acme/__init__.py": "", **dedent(files)})
    symbols: list[tuple[str, str | None]] = [("acme.fs:A.f", None), ("acme.fs:A.f", "G")]
    for module in sorted(upstream.modules()):
        for found in definitions(upstream.read(module)):
            name = ".".join([*(c.name for c in found.classes), found.name])
            if hasattr(found.node, "body"):
                symbols.append((f"{module}:{name}", "Gen" if found.classes else None))
    symbols = list(dict.fromkeys(symbols))
    assert len(symbols) > 50
    mine = ask(f"{sys.version_info[0]}.{sys.version_info[1]}", root, files, symbols)
    compared = 0
    for version in VERSIONS:
        if interpreter(version) is None:
            continue
        assert ask(version, root, files, symbols) == mine, version
        compared += 1
    assert compared
    assert "_acme_fs.n" in str(mine[0]["text"])
    assert str(mine[0]["text"]).count("_acme_fs.n") == 7
    assert "super(A, self).__str__()!r" in str(mine[0]["text"])
    assert "self._A__p" in str(mine[0]["text"])


NEW_SYNTAX = {
    "acme/generic.py": """
        from typing import Protocol
        class Bound: pass
        T = "module"
        def plain(x=T): return x
        def generic[T: Bound, *Ts, **P](x: T, y=T) -> T:
            def inner(z: T): return plain(z), Ts, P
            return inner
        class Box[T](Protocol[T]):
            K = 1
            def put[U](self, v: U, k=K) -> T: return super().put(v)
        type Alias[V] = list[V] | Bound
    """,
}


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_type_parameters_are_names_of_their_own(root: Path, version: str) -> None:
    symbols = [("acme.generic:generic", None), ("acme.generic:Box", None), ("acme.generic:Box.put", "G")]
    generic, box, put = ask(version, root, NEW_SYNTAX, symbols)
    # the default is evaluated outside, so it reads the module's T
    assert generic["imports"] == "from acme.generic import Bound, T, plain\n"
    assert (generic["edits"], generic["findings"]) == ([], [])
    assert (box["imports"], box["edits"]) == ("from typing import Protocol\n", [])
    assert "k=Box.K" in str(put["text"])
    assert "super(Box, self).put(v)" in str(put["text"])


# ---- code of functions that need no change ------------------------------------------------------------------------

PLAIN = {
    "acme/plain.py": '''
        from __future__ import annotations
        import os, re as regex
        from json import dumps
        from . import sub
        from .sub import leaf as bud
        LIMIT = 3
        def helper(x): return x
        class Box:
            def __init__(self): self.v = 1
            @staticmethod
            def static(a, b=LIMIT): return a, b
            @classmethod
            def make(cls, *a, **k): return cls()
            async def later(self, it):
                async for i in it: yield i, await helper(i)
            def closure(self):
                n = 0
                def up():
                    nonlocal n
                    n += 1
                    return n, self, [n + i for i in range(LIMIT) if (m := i)], lambda: n
                return up
        def doc():
            """Docstring."""
            return f"{os.sep!r:>{LIMIT}}{regex.escape('a')}"
        def kinds(a, /, b: int = 1, *c: str, d=dumps, **e) -> Box:
            try:
                with open(a) as f: del f
            except (OSError, ValueError) as error: raise RuntimeError from error
            else: return {k: v for k, v in e.items()}, {*c}, sub.leaf, bud
            finally: pass
        def match(v):
            match v:
                case {"k": [a, *b], **rest} if a: return a, b, rest
                case Box(v=1) | None: return Box
        def gen(n): yield from (i async for i in n) if n else ()
        @helper
        def decorated(): return type("X", (Box,), {})
    ''',
    "acme/sub.py": "leaf = 1\n",
}


def codes_of(code, name: str):
    """Code objects called `name` below `code`."""
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            if constant.co_name == name:
                yield constant
            yield from codes_of(constant, name)


def facts(code):
    # before Python 3.11 the qualified names of inner functions are among the constants
    shorter = [c.rpartition(".<locals>.")[2] if isinstance(c, str) else c for c in code.co_consts]
    constants = [facts(c) if hasattr(c, "co_code") else (type(c), c) for c in shorter]
    return (
        code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_name,
    )  # fmt: skip


PLAIN_SYMBOLS = ["doc", "kinds", "match", "gen", "decorated", "helper"] + [
    f"Box.{n}" for n in ("static", "make", "later", "closure", "__init__")
]


@pytest.mark.parametrize("name", PLAIN_SYMBOLS)
@pytest.mark.parametrize("placement", ["module", "class"])
def test_the_code_of_an_untouched_function_is_upstreams(world, name: str, placement: str) -> None:
    here = world(PLAIN)
    given = {"generated_class": "Box"} if placement == "class" else {}
    plan = here.plan(f"acme.plain:{name}", **given)
    assert (plan.edits, plan.refused, plan.future_annotations) == ((), False, True)
    last = name.rpartition(".")[2]
    original = compile(dedent(PLAIN)["acme/plain.py"], "original", "exec", dont_inherit=True)
    regenerated = compile(here.source(f"acme.plain:{name}", **given), "generated", "exec", dont_inherit=True)
    pairs = list(zip(codes_of(original, last), codes_of(regenerated, last), strict=True))
    assert len(pairs) == 1
    for one, other in pairs:
        assert facts(one) == facts(other)


def test_private_names_compile_to_the_code_that_the_class_body_gives(world) -> None:
    here = world(rules.CLASSES)
    original = compile(dedent(rules.CLASSES)["acme/cls.py"], "original", "exec", dont_inherit=True)
    regenerated = compile(here.source("acme.cls:A.private"), "generated", "exec", dont_inherit=True)
    (one,), (other,) = codes_of(original, "private"), codes_of(regenerated, "private")

    def names(code):
        inner = [c for c in code.co_consts if hasattr(c, "co_code")]
        return (code.co_varnames, code.co_cellvars, code.co_freevars, [names(c) for c in inner])

    assert names(one) == names(other)
    # the global that it writes has become an attribute of the module
    assert set(other.co_names) - set(one.co_names) == {"_acme_cls"}
