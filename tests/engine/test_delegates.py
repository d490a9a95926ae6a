"""Delegates as they run: generated, imported, installed over their originals, and called."""

from __future__ import annotations

import asyncio
import importlib
import pickle
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from tests.engine.sample import Sample, codes

OPS = '''
import contextlib
import functools
from functools import cached_property, singledispatch, singledispatchmethod

DEFAULT = object()


def reserve(n, /, unit=DEFAULT, *more, strict=False, **rest):
    return n, unit is DEFAULT, more, strict, rest


async def fetch(n, *, twice=False):
    return [n] * (1 + twice)


def count(n):
    yield from range(n)


async def stream(n):
    for i in range(n):
        yield i


@contextlib.contextmanager
def scope(n):
    yield n


@contextlib.asynccontextmanager
async def ascope(n):
    yield n


@singledispatch
def show(x):
    return "object"


@show.register
def _(x: int):
    return "int"


@functools.lru_cache
def slow(n):
    return object()


def counted(n):
    counted.calls += 1
    return n


counted.calls = 0


def remembered(n, seen=[], *, mark=object()):
    seen.append(n)
    return seen, mark


class K:
    made = 0

    def kept(self, n, seen=[]):
        seen.append(n)
        return seen

    @staticmethod
    def shared(n, seen=[]):
        seen.append(n)
        return seen

    def __new__(cls, *args, **more):
        cls.made += 1
        return super().__new__(cls)

    def __init__(self, size=1):
        self._size = size

    def step(self, a, b=2):
        return type(self).__name__, a, b

    def every(*args, sep=" "):
        return args[1:], sep

    @classmethod
    def make(cls, size, more=0):
        return cls(size + more)

    @staticmethod
    def double(n):
        return 2 * n

    @property
    def plain(self):
        return self._size

    @property
    def size(self):
        """The size."""
        return self._size

    @size.setter
    def size(self, value):
        self._size = value

    @size.deleter
    def size(self):
        self._size = None

    @cached_property
    def table(self):
        return [self._size]

    @singledispatchmethod
    def kind(self, x):
        return "object"

    @kind.register
    def _(self, x: int):
        return "int"

    def __secret(self, __x):
        return self._size, __x

    def open(self, x):
        return self.__secret(x)

    async def load(self, n):
        return n, self._size

    def walk(self, n):
        for i in range(n):
            yield i, self._size

    def __init_subclass__(cls, tag="none", **more):
        super().__init_subclass__(**more)
        cls.tag = tag
'''

HEAD = """
schema: 1
module: acme_set/out.py
summary: Delegates.
pin: acme
imports:
  - from acme.ops import K
entries:
"""


def entry(symbol: str, body: str, via: str, more: str = "") -> str:
    """One delegate; a member of `G(K)` by `super`."""
    text = f"- symbol: acme.ops:{symbol}\n  kind: delegate\n  via: {via}\n  reason: a test\n  {more}\n  body: |\n{textwrap.indent(body, '    ')}\n"
    if via == "super":
        return "  - class:\n      name: G\n      bases: [K]\n      members:\n" + textwrap.indent(text, "        ")
    return textwrap.indent(text, "  ")


def made(sample: Sample, symbol: str, body: str, via: str = "original", more: str = "") -> ModuleType:
    """The generated module of one delegate, imported."""
    sample.upstream("ops", OPS)
    (sample.root / "manifests/acme_set/runner.yaml").unlink(missing_ok=True)
    sample.manifest(HEAD + entry(symbol, body, via, more), "out")
    report = sample.regen()
    assert not [f for f in report.findings if f.exit_code], report.findings
    return sample.load("out")


def ops() -> ModuleType:
    """The invented upstream."""
    return importlib.import_module("acme.ops")


def install(module: ModuleType, symbol: str) -> None:
    """Put a delegate in the place of its original, as a plugin does."""
    path = symbol.split(".")
    name = path[-1]
    if len(path) == 1:
        setattr(ops(), name, vars(module)[name])
        return
    stored = f"_K{name}" if name.startswith("__") and not name.endswith("__") else name
    setattr(ops().K, stored, vars(module)[name])


# ---- functions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", ["return 'ours', __original__(...)", "return 'ours', __original__(__parameters__)"])
def test_a_function_installed_over_its_original(sample: Sample, body: str) -> None:
    module = made(sample, "reserve", body)
    install(module, "reserve")
    assert ops().reserve(1) == ("ours", (1, True, (), False, {}))
    assert ops().reserve(1, 2, 3, strict=True, x=4) == ("ours", (1, False, (3,), True, {"x": 4}))


def test_a_keyword_beside_all_parameters_replaces_one(sample: Sample) -> None:
    module = made(sample, "reserve", "return __original__(__parameters__, n=7, strict=not strict)")
    assert module.reserve(1, 2) == (7, False, (), True, {})


@pytest.mark.parametrize("again", ["reload", "import"])
def test_a_module_imported_again_keeps_the_original(sample: Sample, again: str) -> None:
    module = made(sample, "reserve", "return 'ours', __original__(...)")
    install(module, "reserve")
    if again == "reload":
        module = importlib.reload(module)
    else:
        del sys.modules[module.__name__]
        module = importlib.import_module(module.__name__)
    install(module, "reserve")
    assert ops().reserve(1) == ("ours", (1, True, (), False, {}))


@pytest.mark.parametrize(
    ("symbol", "call"),
    [
        ("K.step", lambda k: k().step(1)),
        ("K.make", lambda k: k.make(1)._size),
        ("K.double", lambda k: k.double(2)),
        ("K.plain", lambda k: k(3).plain),
        ("K.table", lambda k: k(3).table),
        ("K.kind", lambda k: k().kind(2)),
    ],
)
def test_members_imported_again(sample: Sample, symbol: str, call) -> None:  # type: ignore[no-untyped-def]
    module = made(sample, symbol, "return __original__(...)")
    before = call(ops().K)
    for _ in range(3):
        install(module, symbol)
        module = importlib.reload(module)
    install(module, symbol)
    assert call(ops().K) == before


def test_from_threads(sample: Sample) -> None:
    module = made(sample, "reserve", "return 'ours', __original__(...)")
    install(module, "reserve")
    with ThreadPoolExecutor(8) as pool:
        assert set(map(str, pool.map(lambda n: ops().reserve(1), range(200)))) == {
            str(("ours", (1, True, (), False, {})))
        }


def test_a_delegate_can_be_pickled(sample: Sample) -> None:
    module = made(sample, "reserve", "return 'ours', __original__(...)")
    install(module, "reserve")
    assert pickle.loads(pickle.dumps(module.reserve)) is module.reserve


def test_asynchronous_functions_and_generators(sample: Sample) -> None:
    module = made(sample, "fetch", "return ['ours', *await __original__(...)]")
    install(module, "fetch")
    assert asyncio.run(ops().fetch(1, twice=True)) == ["ours", 1, 1]


@pytest.mark.parametrize("body", ["yield 'ours'\nyield from __original__(...)", "return __original__(...)"])
def test_generators(sample: Sample, body: str) -> None:
    module = made(sample, "count", body)
    install(module, "count")
    assert list(ops().count(2))[-2:] == [0, 1]


def test_asynchronous_generators(sample: Sample) -> None:
    module = made(sample, "stream", "async for item in __original__(...):\n    yield 'ours', item")
    install(module, "stream")

    async def run() -> list[object]:
        return [item async for item in ops().stream(2)]

    assert asyncio.run(run()) == [("ours", 0), ("ours", 1)]


@pytest.mark.parametrize("body", ["with __original__(...) as n:\n    yield 'ours', n", "return __original__(...)"])
def test_context_managers(sample: Sample, body: str) -> None:
    module = made(sample, "scope", body)
    install(module, "scope")
    with ops().scope(1) as held:
        assert held in (1, ("ours", 1))


def test_asynchronous_context_managers(sample: Sample) -> None:
    module = made(sample, "ascope", "async with __original__(...) as n:\n    yield 'ours', n")
    install(module, "ascope")

    async def run() -> object:
        async with ops().ascope(1) as held:
            return held

    assert asyncio.run(run()) == ("ours", 1)


def test_single_dispatch(sample: Sample) -> None:
    module = made(sample, "show", "return 'ours', __original__(...)")
    install(module, "show")
    assert (ops().show(1), ops().show("")) == (("ours", "int"), ("ours", "object"))

    @ops().show.register
    def _(x: str) -> str:
        return "str"

    assert ops().show("") == ("ours", "str")


def test_cached_functions_keep_what_their_callers_use(sample: Sample) -> None:
    module = made(sample, "slow", "return __original__(...)")
    install(module, "slow")
    first = ops().slow(1)
    assert ops().slow(1) is first
    ops().slow.cache_clear()
    assert ops().slow(1) is not first


def test_defaults_are_the_originals_own(sample: Sample) -> None:
    module = made(sample, "remembered", "return __original__(...)")
    theirs = ops().remembered(1)
    install(module, "remembered")
    assert ops().remembered(2) == theirs
    assert theirs[0] == [1, 2]


def test_attributes_of_a_function_come_along(sample: Sample) -> None:
    module = made(sample, "counted", "return __original__(...)")
    install(module, "counted")
    ops().counted(1)
    assert ops().counted.calls == 1


@pytest.mark.parametrize(
    ("symbol", "body"),
    [
        ("reserve", "yield __original__(...)"),
        ("stream", "return __original__(...)"),
        ("ascope", "return __original__(...)"),
        ("fetch", "yield await __original__(...)"),
        ("reserve", "return __original__(__parameters__, __parameters__)"),
        ("reserve", "return [__parameters__]"),
        ("K.size", "return __original__(...)"),
    ],
)
def test_what_does_not_fit_is_an_error(sample: Sample, symbol: str, body: str) -> None:
    sample.upstream("ops", OPS)
    (sample.root / "manifests/acme_set/runner.yaml").unlink()
    sample.manifest(HEAD + entry(symbol, body, "original"), "out")
    found = sample.regen()
    assert codes(found) in (["PK027"], ["PK226"], ["PK227"])
    assert found.findings[0].manifest is not None


@pytest.mark.parametrize("body", ["return __original__(...)", "__original__(...)\nreturn []"])
def test_what_nobody_awaits_is_a_warning(sample: Sample, body: str) -> None:
    sample.upstream("ops", OPS)
    sample.manifest(HEAD + entry("fetch", body, "original"), "out")
    (found,) = [f for f in sample.regen().findings if f.exit_code]
    assert (found.code, found.manifest and found.manifest.line) == ("PK333", 14)


# ---- members: the same by `super` and by `original` ---------------------------------------------------------------------


@pytest.fixture(params=["original", "super"])
def via(request: pytest.FixtureRequest) -> str:
    """How the delegate reaches its original."""
    return str(request.param)


def member(sample: Sample, symbol: str, body: str, via: str, more: str = "") -> type:
    """The class that has the delegate: upstream's own after installation, or the generated subclass."""
    module = made(sample, symbol, body, via, more)
    if via == "super":
        return module.G  # type: ignore[no-any-return]
    install(module, symbol)
    return ops().K  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "body",
    [
        "return 'ours', __original__(...)",
        "return 'ours', __original__(a, b)",
        "return 'ours', __original__(self, a, b=b)",
        "f = __original__\nreturn 'ours', f(a, b)",
    ],
)
def test_methods(sample: Sample, via: str, body: str) -> None:
    cls = member(sample, "K.step", body, via)
    assert cls().step(1) == ("ours", (cls.__name__, 1, 2))


def test_a_method_that_takes_whatever_comes(sample: Sample, via: str) -> None:
    cls = member(sample, "K.every", "return 'ours', __original__(...)", via)
    assert cls().every(1, 2, sep="-") == ("ours", ((1, 2), "-"))


@pytest.mark.parametrize("body", ["return __original__(...)", "return __original__(size, more)"])
def test_class_methods(sample: Sample, via: str, body: str) -> None:
    cls = member(sample, "K.make", f"more += 10\n{body}", via)

    class Sub(cls):  # type: ignore[misc,valid-type]
        pass

    assert (type(Sub.make(1)), Sub.make(1)._size) == (Sub, 11)


@pytest.mark.parametrize("symbol", ["K.kept", "K.shared"])
def test_defaults_of_methods_are_the_originals_own(sample: Sample, via: str, symbol: str) -> None:
    cls = member(sample, symbol, "return __original__(...)", via)
    name = symbol.partition(".")[2]
    assert getattr(cls(), name)(1) is getattr(cls(), name)(2)
    if via == "super":
        assert getattr(ops().K(), name)(3) == [1, 2, 3]


def test_static_methods(sample: Sample, via: str) -> None:
    cls = member(sample, "K.double", "return 'ours', __original__(...)", via)
    assert cls.double(2) == cls().double(2) == ("ours", 4)


def test_new(sample: Sample, via: str) -> None:
    cls = member(sample, "K.__new__", "made = __original__(...)\nmade.ours = True\nreturn made", via)
    assert cls(3).ours
    assert cls(3)._size == 3


def test_init_subclass(sample: Sample, via: str) -> None:
    cls = member(sample, "K.__init_subclass__", "__original__(...)\ncls.tag += '!'", via)

    class Sub(cls, tag="own"):  # type: ignore[misc,valid-type]
        pass

    assert Sub.tag == "own!"


@pytest.mark.parametrize("body", ["__original__(...)", "__original__()", "__original__(self)"])
def test_properties(sample: Sample, via: str, body: str) -> None:
    cls = member(sample, "K.plain", f"return 'ours', {body}", via)
    assert cls(3).plain == ("ours", 3)
    with pytest.raises(AttributeError):
        cls(3).plain = 1  # type: ignore[attr-defined]


def test_the_getter_of_a_property(sample: Sample, via: str) -> None:
    cls = member(sample, "K.size", "return 'ours', __original__(...)", via, "accessor: getter")
    made = cls(3)
    made.size = 4  # type: ignore[attr-defined]
    assert made.size == ("ours", 4)  # type: ignore[attr-defined]
    del made.size  # type: ignore[attr-defined]
    assert made.size == ("ours", None)  # type: ignore[attr-defined]


@pytest.mark.parametrize("body", ["__original__(...)", "__original__(value)", "__original__(__parameters__)"])
def test_the_setter_of_a_property(sample: Sample, via: str, body: str) -> None:
    cls = member(sample, "K.size", f"value += 1\n{body}", via, "accessor: setter")
    made = cls(3)
    made.size = 4  # type: ignore[attr-defined]
    assert made.size == 5  # type: ignore[attr-defined]
    del made.size  # type: ignore[attr-defined]
    assert made.size is None  # type: ignore[attr-defined]


def test_the_deleter_of_a_property(sample: Sample, via: str) -> None:
    cls = member(sample, "K.size", "__original__(...)\nself.gone = True", via, "accessor: deleter")
    made = cls(3)
    del made.size  # type: ignore[attr-defined]
    assert (made.size, made.gone) == (None, True)  # type: ignore[attr-defined]


def test_cached_properties(sample: Sample, via: str) -> None:
    cls = member(sample, "K.table", "return ('ours', __original__(...))", via)
    made = cls(3)
    assert made.table == ("ours", [3])  # type: ignore[attr-defined]
    assert made.table is made.table  # type: ignore[attr-defined]


def test_single_dispatch_methods(sample: Sample, via: str) -> None:
    cls = member(sample, "K.kind", "return 'ours', __original__(...)", via)
    assert (cls().kind(1), cls().kind("")) == (("ours", "int"), ("ours", "object"))


@pytest.mark.parametrize(
    "body",
    ["return 'ours', __original__(...)", "return 'ours', __original__(__x)", "return 'ours', __original__(self, __x)"],
)
def test_private_methods(sample: Sample, via: str, body: str) -> None:
    cls = member(sample, "K.__secret", body, via)
    assert cls(3).open(1) == ("ours", (3, 1))


def test_asynchronous_methods_and_generators(sample: Sample, via: str) -> None:
    cls = member(sample, "K.load", "return 'ours', await __original__(...)", via)
    assert asyncio.run(cls(3).load(1)) == ("ours", (1, 3))


def test_methods_that_generate(sample: Sample, via: str) -> None:
    cls = member(sample, "K.walk", "yield 'ours'\nyield from __original__(...)", via)
    assert list(cls(3).walk(1)) == ["ours", (0, 3)]


# ---- proved and judged ---------------------------------------------------------------------------------------------------

ALL = (
    ("reserve", "return __original__(...)"),
    ("fetch", "return await __original__(...)"),
    ("ascope", "async with __original__(...) as n:\n    yield n"),
    ("show", "return __original__(...)"),
    ("K.step", "return __original__(...)"),
    ("K.make", "return __original__(...)"),
    ("K.__new__", "return __original__(...)"),
    ("K.__init_subclass__", "__original__(...)"),
    ("K.plain", "return __original__(...)"),
    ("K.size", "return __original__(...)"),
    ("K.table", "return __original__(...)"),
    ("K.kind", "return __original__(...)"),
    ("K.__secret", "return __original__(...)"),
)


def test_every_kind_is_proved_twice(sample: Sample) -> None:
    sample.upstream("ops", OPS)
    accessor = {"K.size": "accessor: setter"}
    text = "".join(entry(symbol, body, "original", accessor.get(symbol, "")) for symbol, body in ALL)
    sample.manifest(HEAD + text, "out")
    assert not [f for f in sample.regen(full=True).findings if f.exit_code]
    assert sample.check(full=True).exit_code == 0


@pytest.mark.parametrize(
    ("symbol", "body"),
    [
        ("reserve", "return __original__()"),
        ("fetch", "return await __original__(n, 1)"),
        ("K.step", "return __original__(a, b, 3)"),
        ("K.step", "return __original__(self, a, b, 3)"),
        ("K.make", "return __original__(size, most=1)"),
        ("K.double", "return __original__()"),
    ],
)
def test_a_call_that_does_not_fit(sample: Sample, via: str, symbol: str, body: str) -> None:
    if via == "super" and not symbol.startswith("K."):
        via = "original"
    sample.upstream("ops", OPS)
    sample.manifest(HEAD + entry(symbol, body, via), "out")
    (found,) = [f for f in sample.regen().findings if f.exit_code]
    assert found.code in {"PK330", "PK331"}, found
