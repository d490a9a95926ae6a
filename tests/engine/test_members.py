"""Members of classes that are copied to module level: static methods, cached properties, type parameters of the class."""

from __future__ import annotations

import pickle
import sys

import pytest

from tests.engine.sample import Sample

OPS = """
import functools
from functools import cached_property


class K:
    @staticmethod
    def double(n):
        return 2 * n

    @staticmethod
    @functools.lru_cache
    def slow(n):
        return n

    @cached_property
    def table(self):
        return [1]
"""

HEAD = """
schema: 1
module: acme_set/out.py
summary: Entries.
pin: acme
entries:
"""


def made(sample: Sample, symbol: str, more: str = "", ops: str = OPS):  # type: ignore[no-untyped-def]
    """The generated module of one copy."""
    (sample.root / "manifests/acme_set/runner.yaml").unlink(missing_ok=True)
    sample.upstream("ops", ops)
    sample.manifest(HEAD + f"  - symbol: acme.ops:{symbol}\n    reason: a test\n{more}", "out")
    assert not [f for f in sample.regen(full=True).findings if f.exit_code]
    return sample.load("out")


def test_a_static_method_is_a_plain_function(sample: Sample) -> None:
    module = made(sample, "K.double")
    assert type(module.double).__name__ == "function"
    assert pickle.loads(pickle.dumps(module.double)) is module.double
    text = sample.generated("out").read_text()
    assert "decorator @staticmethod removed" in " ".join(text.replace("#", "").split())
    assert sample.check(full=True).exit_code == 0


def test_other_decorators_stay(sample: Sample) -> None:
    assert made(sample, "K.slow").slow.cache_info().hits == 0


def test_with_a_delta_and_another_name(sample: Sample) -> None:
    delta = "    name: twice\n    deltas:\n      - name: more\n        expr: |\n          2 * n\n        with: |\n          __upstream__ + 1\n"
    assert made(sample, "K.double", delta).twice(2) == 5


def test_in_a_class_it_stays_static(sample: Sample) -> None:
    sample.upstream("ops", OPS)
    group = "  - class:\n      name: G\n      members:\n        - {symbol: 'acme.ops:K.double', reason: a test}\n"
    sample.manifest(HEAD + group, "out")
    assert not [f for f in sample.regen().findings if f.entry and "out.py" in f.entry and f.exit_code]
    assert sample.load("out").G().double(2) == 4


def test_a_cached_property_can_be_installed(sample: Sample) -> None:
    module = made(sample, "K.table")
    from importlib import import_module

    cls = import_module("acme.ops").K
    cls.table = module.table
    assert cls().table == [1]


GENERIC = """
from typing import Generic, TypeVar, cast

T = TypeVar("T")


class Old(Generic[T]):
    def get(self, x: T) -> T:
        return cast(T, x)
"""


def test_a_type_variable_of_a_generic_class(sample: Sample) -> None:
    assert made(sample, "Old.get", ops=GENERIC).get(None, 1) == 1


NEW = """
from typing import cast


class New[T, *Ts]:
    class Inner[U]:
        def get(self, x: T, y: "U") -> dict[T, U]:
            def inner(z: U) -> U:
                return z
            return {x: (inner(y), T.__name__, U.__name__)}

    def get[V](self, x: T, v: V = None) -> V:
        return cast(T, x), T.__name__, V.__name__
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="grammar of Python 3.12")
def test_type_parameters_of_a_class(sample: Sample) -> None:
    assert made(sample, "New.get", ops=NEW).get(None, 1) == (1, "T", "V")
    text = sample.generated("out").read_text()
    assert "x: New.__type_params__[0]" in text


@pytest.mark.skipif(sys.version_info < (3, 12), reason="grammar of Python 3.12")
def test_type_parameters_of_a_class_around_the_class(sample: Sample) -> None:
    assert made(sample, "New.Inner.get", ops=NEW).get(None, 1, 2) == {1: (2, "T", "U")}
