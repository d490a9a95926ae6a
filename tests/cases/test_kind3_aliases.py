"""Kind 3 of the field's real faults: who holds a symbol by name, and whether a list of rebound modules says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from afd_patchkit.model import Pin
from afd_patchkit.names.aliases import Aliases, Scanner
from afd_patchkit.upgrade.upgrader import alias_change
from afd_patchkit.upstream.base import MemoryUpstream
from afd_patchkit.upstream.cache import Store
from afd_patchkit.upstream.options import SourceOptions
from afd_patchkit.upstream.resolve import open_upstream


def scan(files: dict[str, str], symbol: str = "pkg.a:f") -> Aliases:
    """The aliases in a package `pkg`."""
    return Scanner([(MemoryUpstream(files), ("pkg",))]).aliases(*symbol.split(":"))


def rows(found: Aliases) -> list[tuple[str, str, str, int]]:
    return [(a.module, a.name, a.kind, a.place.line) for a in found.found]


# ---- the cases --------------------------------------------------------------------------------------------------

HOLDERS = {
    "pkg/a.py": "def f(): ...\n",
    "pkg/b.py": "from .a import f\n",
    "pkg/c.py": "from .a import f\n",
    "pkg/d.py": "from .a import f\n",
    "pkg/e.py": "from .a import f as g\n",
    "pkg/h.py": "def late():\n    from .a import f\n    return f\n",
    "pkg/i.py": "from .a import *\n",
}


def test_k3_01_every_static_alias_is_listed() -> None:
    found = scan(HOLDERS)
    assert rows(found) == [
        ("pkg.b", "f", "name", 1),
        ("pkg.c", "f", "name", 1),
        ("pkg.d", "f", "name", 1),
        ("pkg.e", "g", "name", 1),
        ("pkg.h", "f", "local", 2),
        ("pkg.i", "f", "star", 1),
    ]
    assert [a.module for a in found.found if a.static] == ["pkg.b", "pkg.c", "pkg.d", "pkg.e", "pkg.i"]


def test_k3_01_a_rebind_list_that_is_incomplete() -> None:
    found = scan(HOLDERS)
    assert [a.module for a in found.left_out(["pkg.b", "pkg.d", "pkg.i"])] == ["pkg.c", "pkg.e"]
    assert found.stale(["pkg.b", "pkg.d", "pkg.i"]) == []
    assert found.left_out(["pkg.b", "pkg.c", "pkg.d", "pkg.e", "pkg.i"]) == []


def test_k3_02_the_command_line_module_that_was_imported_before() -> None:
    files = {
        "pkg/a.py": "def f(): ...\n",
        "pkg/core.py": "from .a import f\n",
        "pkg/cli/serve.py": "from pkg.a import f\n",
    }
    assert [a.module for a in scan(files).left_out(["pkg.core"])] == ["pkg.cli.serve"]


@pytest.mark.parametrize(
    ("rebound", "stale"),
    [
        (["pkg.b", "pkg.a"], []),
        (["pkg.moved"], ["pkg.moved"]),
        (["pkg.b", "pkg.h", "pkg.none", "pkg.none"], ["pkg.h", "pkg.none"]),
        (["pkg.typed"], ["pkg.typed"]),
        (["pkg.i", "pkg.e"], []),
    ],
)
def test_k3_08_a_rebind_site_without_the_alias_is_stale(rebound: list[str], stale: list[str]) -> None:
    typed = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import f\n"
    assert scan({**HOLDERS, "pkg/moved.py": "import pkg.a\n", "pkg/typed.py": typed}).stale(rebound) == stale


def test_k3_10_an_alias_that_appears_with_an_upgrade() -> None:
    old = scan({"pkg/a.py": "def f(): ...\n", "pkg/b.py": "import pkg.a\n"})
    new = scan({"pkg/a.py": "def f(): ...\n", "pkg/b.py": "import pkg.a\nfrom pkg.a import f\n"})
    change = alias_change("pkg.a:f", old.found, new.found)
    assert ([str(p) for p in change.added], change.removed) == (["pkg/b.py:2"], ())


# ---- what counts as an import of the symbol ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from pkg.a import (\n    C,\n    f as g,\n)\n", [("g", "name", 3)]),
        ("from pkg.a import f, f as g\n", [("f", "name", 1), ("g", "name", 1)]),
        ("try:\n    from pkg.a import f\nexcept ImportError:\n    f = None\n", [("f", "name", 2)]),
        ("try:\n    import q\nexcept ImportError:\n    from pkg.a import f\nfinally:\n    from .a import f as g\n",
         [("f", "name", 4), ("g", "name", 6)]),
        ("with x:\n    for y in z:\n        while y:\n            from .a import f\n", [("f", "name", 4)]),
        ("match x:\n    case 1:\n        from .a import f\n", [("f", "name", 3)]),
        ("if x: from pkg.a import*\n", [("f", "star", 1)]),
        ("from pkg.a import \\\n    *\n", [("f", "star", 2)]),
        ("class K:\n    class L:\n        from .a import f\n", [("K.L.f", "name", 3)]),
        ("class K:\n    def m(self):\n        from .a import f\n", [("f", "local", 3)]),
        ("async def m():\n    class K:\n        from .a import f\n", [("f", "local", 3)]),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import f\n", [("f", "typing", 3)]),
        ("import typing\nif typing.TYPE_CHECKING:\n    from .a import *\n", [("f", "typing", 3)]),
        ("if not TYPE_CHECKING:\n    from .a import f\nelse:\n    from .a import f as g\n", [("f", "name", 2), ("g", "typing", 4)]),
        ("if TYPE_CHECKING:\n    pass\nelif x:\n    from .a import f\nelse:\n    from .a import f as g\n", [("f", "name", 4), ("g", "name", 6)]),
        ("\ufefffrom .a import f\r\n", [("f", "name", 1)]),
        ("# coding: latin-1\nfrom .a import f # \xe9\n", [("f", "name", 2)]),
        ('"""\nfrom pkg.a import f\n"""\n', []),
        ("import pkg.a\nfrom pkg import a\nf = pkg.a.f\n", [("f", "assigned", 3)]),
        ("from pkg.other import f\nfrom a import f\n", []),
        ("from ...a import f\nfrom .....a import f\n", []),
    ],
)  # fmt: skip
def test_imports_of_every_shape(text: str, expected: list[tuple[str, str, int]]) -> None:
    data = text.encode("latin-1" if "latin-1" in text else "utf-8")
    upstream = MemoryUpstream({"pkg/__init__.py": "", "pkg/a.py": "def f(): ...\n", "pkg/m.py": data})
    found = Scanner([(upstream, ("pkg",))]).aliases("pkg.a", "f")
    assert rows(found) == [("pkg.m", *row) for row in expected]
    assert found.unreadable == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g = m.f", [("g", "assigned")]),
        ("g: object = m.f", [("g", "assigned")]),
        ("g = h = pkg.a.f", [("g", "assigned"), ("h", "assigned")]),
        ("g, h = m.f, 1", [("g", "assigned")]),
        ("g = m.f if x else None", [("g", "assigned")]),
        ("g = m.f or h", [("g", "assigned")]),
        ("if (g := m.f): pass", []),
        ("print(g := m.f)", []),
        ("register(g := m.f)", [("g", "assigned"), ("register(...)", "argument")]),
        ("other.g = m.f", [("other.g", "assigned")]),
        ("try:\n    g = m.f\nexcept AttributeError:\n    g = None", [("g", "assigned")]),
        ("T = {'x': m.f}", [("T", "value")]),
        ("T = [1, (m.f,)]", [("T", "value")]),
        ("T['x'] = m.f", [("T", "value")]),
        ("T += [m.f]", [("T", "value")]),
        ("T = [g for g in (m.f,)]", [("T", "value")]),
        ("T = dict(x=m.f)", [("T", "wrapped")]),
        ("def h(x=m.f): ...", [("h(x)", "default")]),
        ("def h(p, x=1, /, *, y=m.f, z): ...", [("h(y)", "default")]),
        ("h = lambda x=m.f: x", [("h(x)", "default")]),
        ("class K:\n    def h(self, x=m.f): ...", [("K.h(x)", "default")]),
        ("g = partial(m.f, 1)", [("g", "wrapped")]),
        ("g = functools.partial(x, key=m.f)", [("g", "wrapped")]),
        ("class K:\n    run = staticmethod(m.f)", [("K.run", "wrapped")]),
        ("class K:\n    run = m.f\n    class L:\n        run = a.f", [("K.L.run", "assigned"), ("K.run", "assigned")]),
        ("register('f', m.f)", [("register(...)", "argument")]),
        ("register('f')(m.f)", [("register('f')(...)", "argument")]),
        ("@functools.wraps(m.f)\ndef h(): ...", [("functools.wraps(...)", "argument")]),
        ("for g in (m.f,): use(g)", [("g", "value")]),
        # not held, or not from import on
        ("g = m.f()", []),
        ("g = m.f.name", []),
        ("m.f", []),
        ("@m.f\ndef h(): ...", []),
        ("def h():\n    g = m.f\n    return partial(m.f)", []),
        ("class K:\n    def h(self):\n        self.g = m.f", []),
        ("g = lambda: m.f", []),
        ("g = isinstance(x, m.f)", []),
        ("g = other.f", []),
        ("m2 = m\ng = f", []),
        ("if TYPE_CHECKING:\n    g = m.f", []),
        ("if __name__ == '__main__':\n    g = m.f", []),
        ("g: m.f = 1", []),
    ],
)  # fmt: skip
def test_what_keeps_the_object_without_an_import_by_name(text: str, expected: list[tuple[str, str]]) -> None:
    files = {"pkg/a.py": "def f(): ...\n", "pkg/m.py": f"import pkg.a as m\nimport pkg.a\nfrom . import a\n{text}\n"}
    found = scan(files).found
    assert sorted((a.name, a.kind) for a in found) == expected
    assert all((a.module, a.source, a.static) == ("pkg.m", "pkg.a", True) for a in found)


def test_assignments_pass_it_on() -> None:
    files = {
        "pkg/a.py": "def f(): ...\nown = f\nTABLE = {1: f, 2: own}\ndef h(x=f): ...\n",
        "pkg/b.py": "from . import a\ng = a.own\n",
        "pkg/c.py": "from .b import g\nimport pkg.b as b\nclass K:\n    run = staticmethod(b.g)\n",
        "pkg/d.py": "from .b import h\nfrom .a import TABLE\n",
    }
    assert [(a.module, a.name, a.kind, a.source) for a in scan(files).found] == [
        ("pkg.a", "own", "assigned", "pkg.a"),
        ("pkg.a", "TABLE", "value", "pkg.a"),
        ("pkg.a", "h(x)", "default", "pkg.a"),
        ("pkg.b", "g", "assigned", "pkg.a"),
        ("pkg.c", "g", "name", "pkg.b"),
        ("pkg.c", "K.run", "wrapped", "pkg.b"),
    ]
    assert [a.module for a in scan(files).left_out(["pkg.c"])] == ["pkg.a", "pkg.a", "pkg.a", "pkg.b"]


def test_what_is_held_by_name_is_held_once_more() -> None:
    files = {"pkg/a.py": "class C: ...\n", "pkg/c.py": "from pkg.a import C as D\nKINDS = (D,)\nclass E(D): ...\n"}
    assert rows(scan(files, "pkg.a:C")) == [("pkg.c", "D", "name", 1), ("pkg.c", "KINDS", "value", 2)]


def test_relative_imports_from_packages_at_any_depth() -> None:
    files = {
        "pkg/__init__.py": "from .a import f\n",
        "pkg/a.py": "def f(): ...\n",
        "pkg/sub/__init__.py": "from ..a import f\n",
        "pkg/sub/j.py": "from ..a import f\nfrom .a import f as other\n",
    }
    assert [(a.module, a.source) for a in scan(files).found] == [
        ("pkg", "pkg.a"),
        ("pkg.sub", "pkg.a"),
        ("pkg.sub.j", "pkg.a"),
    ]


def test_modules_that_pass_it_on_are_followed_under_new_names() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/a.py": "from .d import last\ndef f(): ...\n",
        "pkg/b.py": "from .a import f as g\n",
        "pkg/c.py": "from .b import g as h\nfrom .b import f as no\n",
        "pkg/d.py": "from .c import h as last\n",
        "pkg/s.py": "from .b import *\n",
        "pkg/t.py": "from .s import g\n",
        "pkg/u.py": "def late():\n    from .a import f\nfrom .v import f\n",
        "pkg/v.py": "def late():\n    from .a import f\n",
    }
    assert [(a.module, a.name, a.source) for a in scan(files).found] == [
        ("pkg.a", "last", "pkg.d"),
        ("pkg.b", "g", "pkg.a"),
        ("pkg.c", "h", "pkg.b"),
        ("pkg.d", "last", "pkg.c"),
        ("pkg.s", "g", "pkg.b"),
        ("pkg.t", "g", "pkg.s"),
        ("pkg.u", "f", "pkg.a"),
        ("pkg.v", "f", "pkg.a"),
    ]


def test_a_function_named_like_its_module() -> None:
    files = {
        "pkg/__init__.py": "from .f import f\n",
        "pkg/f.py": "def f(): ...\n",
        "pkg/user.py": "from pkg import f\n",
    }
    assert [a.module for a in scan(files, "pkg.f:f").found] == ["pkg", "pkg.user"]


def test_members_are_held_with_their_class() -> None:
    files = {"pkg/a.py": "class C: ...\n", "pkg/c.py": "from pkg.a import C\nfrom pkg.a import m\n"}
    found = scan(files, "pkg.a:C.m")
    assert (found.symbol, rows(found)) == ("pkg.a:C", [("pkg.c", "C", "name", 1)])


def test_files_that_do_not_parse_are_named_for_the_symbols_they_mention() -> None:
    files = {**HOLDERS, "pkg/broken.py": "from pkg.a import f\ndef :\n", "pkg/nul.py": "from pkg.a import f\0\n"}
    scanner = Scanner([(MemoryUpstream(files), ("pkg",))])
    for _ in range(2):
        assert scanner.aliases("pkg.a", "f").unreadable == ("pkg/broken.py", "pkg/nul.py")
        assert scanner.aliases("pkg.a", "absent").unreadable == ()


def test_a_module_that_is_not_there() -> None:
    assert scan(HOLDERS).known
    assert not scan(HOLDERS, "pkg.gone:f").known


# ---- several distributions, and the store -----------------------------------------------------------------------


class Counting(MemoryUpstream):
    """Counts how often its files are listed."""

    listed = 0

    def package_files(self, suffix: str = ".py") -> Iterator[tuple[str, bytes]]:
        self.listed += 1
        return super().package_files(suffix)


PLUGIN = {
    "plug/__init__.py": "from pkg.e import g\n",
    "plug/more.py": "from plug import g as again\n",
    "tests/test_it.py": "from pkg.a import f\n",
    "pkg/b.py": "from .a import f as not_this_one\n",
}


def test_distributions_are_searched_as_one() -> None:
    both = [(MemoryUpstream(HOLDERS), ("pkg",)), (MemoryUpstream(PLUGIN, pin="plug"), ("plug", "pkg"))]
    found = Scanner(both).aliases("pkg.a", "f").found
    assert [(a.module, a.name, a.source) for a in found if a.pin == "plug"] == [
        ("plug", "g", "pkg.e"),
        ("plug.more", "again", "plug"),
    ]
    assert [a.name for a in found if a.module == "pkg.b"] == ["f"]


def test_the_store_answers_without_reading(tmp_path: Path) -> None:
    files = {**HOLDERS, "pkg/broken.py": "from pkg.a import f\ndef :\n"}
    store = Store(tmp_path)
    first = Counting(files)
    answer = Scanner([(first, ("pkg",))], store).aliases("pkg.a", "f")
    assert (first.listed, len(answer.found), answer.unreadable) == (1, 6, ("pkg/broken.py",))
    again = Counting(files, pin="other")
    kept = Scanner([(again, ("pkg",))], store).aliases("pkg.a", "f.member")
    assert again.listed == 0
    assert [a.pin for a in kept.found] == ["other"] * 6
    assert (rows(kept), kept.symbol, kept.known, kept.unreadable) == (
        rows(answer),
        answer.symbol,
        True,
        answer.unreadable,
    )


@pytest.mark.parametrize(
    ("files", "packages", "symbol"),
    [
        ({**HOLDERS, "pkg/z.py": ""}, ("pkg",), "pkg.a:f"),
        (HOLDERS, ("pkg", "more"), "pkg.a:f"),
        (HOLDERS, ("pkg",), "pkg.e:g"),
    ],
)
def test_the_store_answers_no_other_question(
    tmp_path: Path, files: dict[str, str], packages: tuple[str, ...], symbol: str
) -> None:
    store = Store(tmp_path)
    Scanner([(MemoryUpstream(HOLDERS), ("pkg",))], store).aliases("pkg.a", "f")
    other = Counting(files)
    Scanner([(other, packages)], store).aliases(*symbol.split(":"))
    assert other.listed == 1


def test_what_may_change_under_its_name_is_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "tree/pkg"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("def f(): ...\n", encoding="utf-8")
    options = SourceOptions(sources={"pkg": folder.parent}, offline=True, cache_dir=tmp_path / "cache")
    counts = []
    for number in range(2):
        (folder / f"b{number}.py").write_text("from .a import f\n", encoding="utf-8")
        upstream = open_upstream("pkg", Pin(distribution="pkg", version="1.0"), options)
        counts.append(len(Scanner([(upstream, ("pkg",))], options.store).aliases("pkg.a", "f").found))
    assert counts == [1, 2]


class Unreadable(MemoryUpstream):
    """Cannot be read."""

    def read_bytes(self, path: str) -> bytes:
        self.read("absent")
        raise AssertionError


def test_a_distribution_that_cannot_be_read_is_said_and_not_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    scanner = Scanner([(Unreadable(PLUGIN, pin="plug"), ("plug",)), (MemoryUpstream(HOLDERS), ("pkg",))], store)
    answer = scanner.aliases("pkg.a", "f")
    assert ([f.code for f in answer.problems], len(answer.found)) == (["PK205"], 6)
    whole = Scanner([(MemoryUpstream(PLUGIN, pin="plug"), ("plug",)), (MemoryUpstream(HOLDERS), ("pkg",))], store)
    assert len(whole.aliases("pkg.a", "f").found) == 8


# ---- real releases ----------------------------------------------------------------------------------------------

FACTS = {
    # imports from the symbol's own module, star imports aside, in 0.26.0 and 0.33.0
    "forward_context:set_forward_context": (16, 19),
    "forward_context:get_forward_context": (58, 128),
    "v1.engine.utils:launch_core_engines": (2, 2),
    "v1.core.kv_cache_utils:resolve_kv_cache_block_sizes": (5, 7),
    "v1.core.kv_cache_coordinator:get_kv_cache_coordinator": (2, 3),
    "v1.executor.multiproc_executor:MultiprocExecutor": (3, 3),
    "v1.worker.gpu.sample.gumbel:gumbel_sample": (3, 4),
    "distributed.parallel_state:GroupCoordinator": (4, 10),
    "v1.core.single_type_kv_cache_manager:MambaManager": (0, 2),
    "model_executor.layers.fused_moe:FusedMoE": (46, 0),
}


@pytest.mark.upstream
def test_counts_of_two_releases() -> None:
    options = SourceOptions()
    found: list[dict[str, Aliases]] = []
    for version in ("0.26.0", "0.33.0"):
        scanner = Scanner(
            [(open_upstream("vllm", Pin(distribution="vllm", version=version), options), ("vllm",))], options.store
        )
        found.append({s: scanner.aliases(*f"vllm.{s}".split(":")) for s in FACTS})
    old, new = found

    def count(symbol: str, answers: dict[str, Aliases]) -> int:
        own = f"vllm.{symbol}".partition(":")[0]
        return sum(a.source == own and a.kind != "star" for a in answers[symbol].found)

    assert {s: (count(s, old), count(s, new)) for s in FACTS} == FACTS
    assert [f for answers in found for a in answers.values() for f in (*a.unreadable, *a.problems)] == []
    kinds = [a.kind for a in old["v1.executor.multiproc_executor:MultiprocExecutor"].found]
    assert (kinds.count("name"), kinds.count("local")) == (2, 1)
    for answers in found:
        launch = answers["v1.engine.utils:launch_core_engines"]
        assert {a.module for a in launch.found} == {"vllm.v1.engine.core_client", "vllm.entrypoints.cli.serve"}
        assert [a.module for a in launch.left_out(["vllm.v1.engine.core_client"])] == ["vllm.entrypoints.cli.serve"]
    # K3-08: the site that was rebound had the name in no module of that release
    assert old["v1.worker.gpu.sample.gumbel:gumbel_sample"].stale(["vllm.v1.worker.gpu.spec_decode.eagle.speculator"])
    # K3-10
    mamba = "v1.core.single_type_kv_cache_manager:MambaManager"
    change = alias_change(mamba, old[mamba].found, new[mamba].found)
    assert [p.file for p in change.added] == [
        "vllm/v1/core/kv_cache_coordinator.py",
        "vllm/v1/core/kv_cache_manager.py",
    ]
    assert change.removed == ()
