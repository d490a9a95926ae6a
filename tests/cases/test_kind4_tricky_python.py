"""Kind 4 of the field's real faults: Python that a naive copy breaks. Each small input runs, and means what it meant."""

from __future__ import annotations

import textwrap

import pytest

from tests.engine.sample import Sample, codes


def make(sample: Sample, upstream: str, entries: str, *, imports: str = "", modules: dict[str, str] | None = None):  # type: ignore[no-untyped-def]
    """Regenerate `acme_set/out.py` from module `acme.m`; the report."""
    sample.upstream("m", textwrap.dedent(upstream))
    for name, text in (modules or {}).items():
        sample.upstream(name, textwrap.dedent(text))
    head = "schema: 1\nmodule: acme_set/out.py\nsummary: Case.\npin: acme\n"
    if imports:
        head += "imports:\n" + "".join(f"  - {line}\n" for line in imports.splitlines())
    sample.manifest(head + "entries:\n" + textwrap.indent(textwrap.dedent(entries).strip("\n"), "  ") + "\n", "out")
    return sample.regen()


def test_k4_01_decorators_are_part_of_the_symbol(sample: Sample) -> None:
    upstream = """
        from .deco import traced, other

        @traced
        @other(level=2)
        def work(x):
            return x
    """
    deco = """
        seen = []

        def traced(f):
            seen.append(f.__name__)
            return f

        def other(level):
            return traced
    """
    assert make(sample, upstream, "- {symbol: acme.m:work, reason: r}", modules={"deco": deco}).exit_code == 0
    module = sample.load("out")
    assert module.traced.__module__ == "acme.deco"
    text = sample.generated("out").read_text()
    assert "@traced\n@other(level=2)\ndef work(x):" in text
    entry = '- {symbol: acme.m:work, reason: r, deltas: [{name: untraced, decorator: {remove: "traced"}}]}'
    assert make(sample, upstream, entry).exit_code == 0
    text = sample.generated("out").read_text()
    assert (
        "# Signature: differs from upstream: decorator @traced removed" in text
        or "traced" in text.split("# Signature:")[1].split("\n# Rem")[0]
    )
    assert "@traced\n" not in text


@pytest.mark.parametrize("placed", ["function", "subclass"])
def test_k4_02_zero_argument_super(sample: Sample, placed: str) -> None:
    upstream = """
        class Base:
            def m(self):
                return "base"

        class A(Base):
            def m(self):
                return "A+" + super().m()
    """
    entry = "- {symbol: acme.m:A.m, reason: r}"
    if placed == "subclass":
        entry = "- class: {name: Sub, bases: [A], members: [{symbol: acme.m:A.m, reason: r}]}"
    assert make(sample, upstream, entry, imports="from acme.m import A").exit_code == 0
    module = sample.load("out")
    result = module.m(module.A()) if placed == "function" else module.Sub().m()
    assert result == "A+base"


def test_k4_04_global_statements_write_upstreams_module(sample: Sample) -> None:
    upstream = """
        counter = 0

        def count(fail):
            try:
                if fail:
                    raise ValueError
            finally:
                global counter
                counter += 1
            return counter
    """
    assert make(sample, upstream, "- {symbol: acme.m:count, reason: r}").exit_code == 0
    module = sample.load("out")
    import importlib

    acme = importlib.import_module("acme.m")
    assert module.count(False) == 1
    with pytest.raises(ValueError):
        module.count(True)
    assert acme.counter == 2
    assert not hasattr(module, "counter")


def test_k4_05_name_defined_in_branches(sample: Sample) -> None:
    upstream = """
        import sys
        if sys.platform == "never":
            def f():
                return 1
        elif sys.platform == "nowhere":
            def f():
                return 2
        else:
            def f():
                return 3
    """
    report = make(sample, upstream, "- {symbol: acme.m:f, reason: r}")
    assert codes(report) == ["PK206"]
    assert len(report.findings[0].details) == 3
    assert all(f"branch {n}: acme/m.py:" in d for n, d in enumerate(report.findings[0].details, 1))
    for branch, value in (('"never"', 1), ("2", 2), ("else", 3)):
        assert make(sample, upstream, f"- {{symbol: acme.m:f, reason: r, branch: {branch}}}").exit_code == 0
        assert sample.load("out").f() == value


def test_k4_07_defaults_that_name_the_class_scope(sample: Sample) -> None:
    upstream = """
        class A:
            N = 3
            def f(self, n=N, *, m=N + 1):
                return n, m
    """
    report = make(sample, upstream, "- {symbol: acme.m:A.f, reason: r}")
    assert report.exit_code == 0
    assert [f.severity.value for f in report.findings] == ["note"]
    assert sample.load("out").f(None) == (3, 4)


def test_k4_09_decorators_that_read_the_source_file(sample: Sample) -> None:
    upstream = """
        from .jit import jit

        @jit(inline=(1, (2, 3)))
        def kernel(x):
            return x + 1
    """
    jit = """
        import ast, inspect, textwrap

        def jit(inline):
            def wrap(fn):
                tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
                fn.names = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
                return fn
            return wrap
    """
    assert make(sample, upstream, "- {symbol: acme.m:kernel, reason: r}", modules={"jit": jit}).exit_code == 0
    assert sample.load("out").kernel.names == ["jit", "x"]


def test_k4_10_logger_stays_upstreams(sample: Sample, caplog: pytest.LogCaptureFixture) -> None:
    upstream = """
        import logging
        logger = logging.getLogger(__name__)

        def work():
            logger.warning("w")
    """
    assert make(sample, upstream, "- {symbol: acme.m:work, reason: r}").exit_code == 0
    sample.load("out").work()
    assert [r.name for r in caplog.records] == ["acme.m"]


def test_k4_11_crlf_upstream(sample: Sample) -> None:
    text = "def f(x):\n    y = x + 1\n    return y\n"
    entry = """
        - symbol: acme.m:f
          reason: r
          deltas:
            - name: twice
              after: |
                y = x + 1
              insert: |
                y *= 2
    """
    make(sample, text, entry)
    lf = sample.generated("out").read_bytes()
    lf_lock = sample.lock.read_text()
    (sample.source / "acme/m.py").write_bytes(text.replace("\n", "\r\n").encode())
    sample.lock.unlink()
    assert sample.regen(full=True).exit_code == 0
    crlf = sample.generated("out").read_bytes()
    assert b"\r" not in crlf
    assert crlf == lf
    import json

    one, other = (
        json.loads(lf_lock)["pins"]["acme"]["files"]["acme/m.py"],
        json.loads(sample.lock.read_text())["pins"]["acme"]["files"]["acme/m.py"],
    )
    assert one["text"] == other["text"]
    assert one["raw"] != other["raw"]
    assert sample.load("out").f(1) == 4


def test_k4_13_fences_inside_arguments_and_before_elif(sample: Sample) -> None:
    upstream = """
        def f(x, call=dict):
            out = call(
                a=1,
                b=2,
            )
            if x:
                out["x"] = 1
            elif x is None:
                out["x"] = 2
            return out
    """
    entry = """
        - symbol: acme.m:f
          reason: r
          deltas:
            - name: one more argument
              call: {match: "call(...)", set: {c: "3"}}
            - name: another clause
              clause:
                of: |
                  if x: ...
                add: |
                  else:
                      out["x"] = 3
    """
    assert make(sample, upstream, entry).exit_code == 0
    text = sample.generated("out").read_text()
    assert (
        "        # ### PATCH START: one more argument\n        c=3,\n        # ### PATCH END: one more argument\n    )\n"
        in text
    )
    assert "    # ### PATCH START: another clause\n    else:\n" in text
    assert sample.load("out").f(0) == {"a": 1, "b": 2, "c": 3, "x": 3}


def test_k4_15_descriptor_kinds_survive(sample: Sample) -> None:
    upstream = """
        import functools

        class A:
            tag = "A"

            @staticmethod
            def s(x):
                return x

            @classmethod
            def c(cls):
                return cls.tag

            @property
            def p(self):
                return self.tag + "p"

            @p.setter
            def p(self, value):
                self.tag = value

            @functools.cached_property
            def k(self):
                return [self.tag]
    """
    members = ", ".join(f"{{symbol: acme.m:A.{name}, reason: r}}" for name in "scpk")
    entry = f"- class: {{name: Sub, bases: [A], members: [{members}]}}"
    assert make(sample, upstream, entry, imports="from acme.m import A").exit_code == 0
    cls = sample.load("out").Sub
    instance = cls()
    assert {n: type(cls.__dict__[n]).__name__ for n in "scpk"} == {
        "s": "staticmethod", "c": "classmethod", "p": "property", "k": "cached_property"
    }  # fmt: skip
    assert (cls.s(1), instance.s(1), cls.c(), instance.p) == (1, 1, "A", "Ap")
    instance.p = "B"
    assert (instance.p, instance.k, instance.k is instance.k) == ("Bp", ["B"], True)


def test_k4_16_relative_imports_inside_bodies(sample: Sample) -> None:
    (sample.source / "acme/sub").mkdir(parents=True)
    (sample.source / "acme/sub/__init__.py").write_text("")
    (sample.source / "acme/sub/g.py").write_text("V = 5\n")
    (sample.source / "acme/sub/mod.py").write_text(
        "def f():\n    from . import g\n    from ..top import h\n    from .g import V as w\n    return g.V, h(), w\n"
    )
    sample.upstream("top", "def h():\n    return 'h'\n")
    assert make(sample, "", "- {symbol: acme.sub.mod:f, reason: r}").exit_code == 0
    text = sample.generated("out").read_text()
    assert "    from acme.sub import g\n    from acme.top import h\n    from acme.sub.g import V as w\n" in text
    assert sample.load("out").f() == (5, "h", 5)
