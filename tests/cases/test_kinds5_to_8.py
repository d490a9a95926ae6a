"""Kinds 5 to 8: parsers and encodings, copy checkers, patch tools, packaging."""

from __future__ import annotations

import ast

import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.source.text import load_source
from tests.cases.test_kind4_tricky_python import make
from tests.engine.sample import Sample, codes


def test_k5_01_a_file_that_does_not_parse_fails_alone(sample: Sample) -> None:
    sample.upstream("bad", "def f(:\n    pass\n")
    entries = """
        - {symbol: acme.bad:f, reason: r}
        - {symbol: acme.m:gone, reason: r}
        - {symbol: acme.m:g, reason: r}
    """
    report = make(sample, "def g():\n    return 1\n", entries)
    assert codes(report) == ["PK404", "PK205"]
    broken = report.findings[0]
    assert str(broken.upstream) == "acme/bad.py:1:7"
    assert any("libcst" in line for line in broken.details)
    assert report.exit_code == 3


def test_k5_03_markers_of_neighbours_stay(sample: Sample) -> None:
    upstream = """
        def f(x):
            # ### OTHER START: a
            x += 1
            # ### OTHER END: a
            # about the second
            x += 2
            # about the result
            return x
    """
    assert make(sample, upstream, REMOVE_SECOND).exit_code == 0
    text = sample.generated("out").read_text()
    assert text.count("# ### OTHER END: a\n") == 1
    assert "# about the second" not in text
    assert "# about the result\n    return x\n" in text
    assert sample.load("out").f(0) == 1


REMOVE_SECOND = """
    - symbol: acme.m:f
      reason: r
      deltas:
        - name: no two
          remove: |
            x += 2
"""


@pytest.mark.parametrize(
    ("comment", "stays"),
    [
        ("# END", True),
        ("# BEGIN: fused part", True),
        ("# <<<<<<< END patch", True),
        ("# endregion", True),
        ("#region second", True),
        ("# fmt: on", True),
        ("# isort: off", True),
        ("# yapf: enable", True),
        ("# pylint: enable=no-member", True),
        ("# --8<-- [end:sum]", True),
        ("# the end of the sum", False),
        ("# START_TIME is not known here", False),
        ("# regional sums", False),
        ("# enable the second", False),
    ],
)
def test_k5_03_what_bounds_a_stretch_of_lines_is_no_comment_of_a_statement(
    sample: Sample, comment: str, stays: bool
) -> None:
    upstream = f"""
        def f(x):
            x += 1
            {comment}
            x += 2
            return x
    """
    assert make(sample, upstream, REMOVE_SECOND).exit_code == 0
    assert (f"    {comment}\n" in sample.generated("out").read_text()) == stays


def test_k5_05_each_upstream_file_is_parsed_once(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    upstream = "\n\n".join(f"def f{n}(x):\n    return x + {n}" for n in range(10)) + "\n"
    parsed: list[int] = []
    real = ast.parse

    def counted(source, *args, **kwargs):  # type: ignore[no-untyped-def]
        if isinstance(source, str) and source == upstream:
            parsed.append(len(source))
        return real(source, *args, **kwargs)

    monkeypatch.setattr(ast, "parse", counted)
    entries = "\n".join(f"- {{symbol: acme.m:f{n}, reason: r}}" for n in range(10))
    assert make(sample, upstream, entries).exit_code == 0
    assert len(parsed) == 1


@pytest.mark.parametrize(
    ("raw", "eol", "encoding"),
    [
        (b"\xef\xbb\xbfx = 1\n", "LF", "utf-8-sig"),
        (b"x = 1\ry = 2\r", "CR", "utf-8"),
        (b"x = 1\r\ny = 2\nz = 3\r", "mixed", "utf-8"),
        ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "LF", "iso-8859-1"),
        ("# coding: gbk\nx = '中'\n".encode("gbk"), "LF", "gbk"),
    ],
)
def test_k5_06_k5_08_bytes_have_one_reading(raw: bytes, eol: str, encoding: str) -> None:
    file = load_source(raw, pin="acme", path="acme/m.py")
    assert (file.eol, file.encoding) == (eol, encoding)
    assert b"\r" not in file.data
    assert not file.data.startswith(b"\xef\xbb\xbf")
    names: dict[str, object] = {}
    exec(compile(raw, "m", "exec"), names)
    again: dict[str, object] = {}
    exec(compile(file.text, "m", "exec"), again)
    assert {k: v for k, v in names.items() if k in "xyz"} == {k: v for k, v in again.items() if k in "xyz"}


@pytest.mark.parametrize(
    "raw", [b"x = '\xff'\n", b"# coding: nonsense\nx = 1\n", b"x = 1\0\n", b"\xef\xbb\xbf# coding: latin-1\n"]
)
def test_k5_06_bytes_that_are_no_text(raw: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        load_source(raw, pin="acme", path="acme/m.py")
    assert caught.value.findings[0].code == "PK404"


def test_k6_03_guarded_imports(sample: Sample) -> None:
    upstream = """
        try:
            import missing_package_x as y
        except ImportError:
            y = None
        try:
            import json as z
        except ImportError:
            z = None

        def f():
            return y, z.dumps([1])
    """
    assert make(sample, upstream, "- {symbol: acme.m:f, reason: r}").exit_code == 0
    assert sample.load("out").f() == (None, "[1]")


def test_k6_05_copy_and_two_delegates_are_explicit(sample: Sample) -> None:
    upstream = """
        class Base:
            def m(self, x):
                return ("base", x)

        class A(Base):
            def m(self, x):
                return ("A", x)
    """
    entries = """
        - {symbol: acme.m:A.m, reason: r, share: true, name: copied}
        - symbol: acme.m:A.m
          share: true
          name: original
          kind: delegate
          via: original
          reason: r
          body: |
            return ("around", __original__(...))
        - class:
            name: Sub
            bases: [A]
            members:
              - symbol: acme.m:A.m
                share: true
                kind: delegate
                via: super
                reason: r
                body: |
                  return ("over", __original__(...))
    """
    assert make(sample, upstream, entries, imports="from acme.m import A").exit_code == 0
    module = sample.load("out")
    assert module.copied(None, 1) == ("A", 1)
    assert module.original(module.A(), 1) == ("around", ("A", 1))
    assert module.Sub().m(1) == ("over", ("A", 1))


LOOKALIKE = """
    def f(x):
        if x:
            x += 1
            log(x)
        else:
            x += 1
            log(x)
        return x


    def g(x):
        x += 1
        return x

    def log(x):
        pass
"""


@pytest.mark.parametrize(
    ("extra", "expected"), [("", "PK202"), ("nth: 2", ""), ("within: {of: 'if x: ...', clause: 'else'}", "")]
)
def test_k7_01_no_fuzz(sample: Sample, extra: str, expected: str) -> None:
    entry = f"""
        - symbol: acme.m:f
          reason: r
          deltas:
            - name: second
              after: |
                x += 1
              insert: |
                x *= 10
              {extra}
    """
    report = make(sample, LOOKALIKE, entry)
    assert codes(report) == ([expected] if expected else [])
    if expected:
        assert sum("candidate" in line for line in report.findings[0].details) == 2
        assert not sample.lock.exists()
    else:
        module = sample.load("out")
        assert (module.f(0), module.f(5)) == (10, 6)


def test_k7_02_a_missing_anchor_is_an_error_and_writes_nothing(sample: Sample) -> None:
    entry = """
        - symbol: acme.m:f
          reason: r
          deltas:
            - name: of the next function
              after: |
                def g(x): ...
              insert: |
                x *= 10
    """
    report = make(sample, LOOKALIKE, entry)
    assert (codes(report), report.exit_code) == (["PK201"], 1)
    assert not (sample.root / "generated").exists()


def test_k7_03_the_same_hunk_twice(sample: Sample) -> None:
    delta = "{{name: {}, before: 'return x', insert: 'x *= 10'}}"
    deltas = ", ".join(delta.format(name) for name in "ab")
    report = make(sample, LOOKALIKE, f"- {{symbol: acme.m:g, reason: r, deltas: [{deltas}]}}")
    assert codes(report) == ["PK211"]
    assert report.exit_code == 1


def test_k7_06_one_target_in_two_manifests(sample: Sample) -> None:
    sample.manifest(
        "schema: 1\nmodule: acme_set/two.py\nsummary: s\npin: acme\nentries:\n  - {symbol: acme.m:g, reason: r}\n",
        "two",
    )
    report = make(sample, LOOKALIKE, "- {symbol: acme.m:g, reason: r}")
    assert (codes(report), report.exit_code) == (["PK015"], 2)


def test_k8_01_every_package_has_an_init(sample: Sample) -> None:
    sample.manifest(
        "schema: 1\nmodule: a/b/c/deep.py\nsummary: s\npin: acme\nentries:\n  - {symbol: acme.m:g, reason: r}\n", "deep"
    )
    make(sample, LOOKALIKE, "- {symbol: acme.m:f, reason: r}")
    folder = sample.root / "generated"
    modules = list(folder.rglob("*.py"))
    assert {path.name for path in modules} == {"__init__.py", "deep.py", "out.py"}
    for path in modules:
        inside = path.parent
        while inside != folder:  # what setuptools' find_packages asks for: an __init__.py on every level
            assert (inside / "__init__.py").is_file()
            inside = inside.parent
