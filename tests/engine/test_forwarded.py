"""`__parameters__` in the code of deltas, and accessors of a property."""

from __future__ import annotations

import pytest

from tests.engine.sample import Sample, codes

OPS = '''
class K:
    def run(self, a, /, b, *rest, c=1, **more):
        out = a + b
        if out > 3:
            out = 3
        return out

    def note(self, *args, **kwargs):
        self.seen = (args, kwargs)

    @property
    def size(self):
        """The size."""
        return self._size

    @size.setter
    def size(self, value):
        self._size = value


def plain(a, b=2):
    out = a + b
    return out


def chosen(a, b=2):
    match a:
        case 1:
            out = b
        case _:
            out = 0
    if a > 5:
        out = 5
    return out
'''

MANIFEST = """
schema: 1
module: acme_set/out.py
summary: Deltas.
pin: acme
entries:
  - symbol: acme.ops:{symbol}
    reason: a test
{more}
    deltas:
{deltas}
"""


def made(sample: Sample, symbol: str, deltas: str, more: str = "") -> list[str]:
    """The codes of generating one copy."""
    (sample.root / "manifests/acme_set/runner.yaml").unlink(missing_ok=True)
    sample.upstream("ops", OPS)
    sample.manifest(MANIFEST.format(symbol=symbol, deltas=deltas, more=more), "out")
    return codes(sample.regen(full=True))


INSERT = """\
      - name: ours
        before: |
          return out
        insert: |
          {code}
"""


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("self.note(__parameters__)", ((1, 2, 5), {"c": 6, "x": 7})),
        ("self.note(0, __parameters__, c=9)", ((0, 1, 2, 5), {"c": 9, "x": 7})),
        ("self.note(__parameters__, b=8)", ((1, 8, 5), {"c": 6, "x": 7})),
        ("self.note([self.note(__parameters__)], __parameters__)", (([None][:1], 1, 2, 5), {"c": 6, "x": 7})),
    ],
)
def test_all_parameters_of_a_copy(sample: Sample, code: str, seen: object) -> None:
    assert made(sample, "K.run", INSERT.format(code=code)) == []
    module = sample.load("out")
    from importlib import import_module

    k = import_module("acme.ops").K()
    module.run(k, 1, 2, 5, c=6, x=7)
    assert (tuple(k.seen[0]), k.seen[1]) == seen


def test_in_an_expression(sample: Sample) -> None:
    deltas = """\
      - name: one
        expr: |
          a + b
        with: |
          __upstream__ + len(str(dict(__parameters__)))
"""
    assert made(sample, "plain", deltas) == []
    assert sample.load("out").plain(1) == 3 + len(str({"a": 1, "b": 2}))


CLAUSES = '''\
      - name: cases
        clause:
          of: |
            match a: ...
          first: |
            case 2:
                out = """two
              rows""", dict(__parameters__)
            case 3:
                out = dict(__parameters__)
      - name: others
        clause:
          of: |
            if a > 5: ...
          add: |
            elif a > 4:
                out = {code}
'''


def test_in_clauses(sample: Sample) -> None:
    assert made(sample, "chosen", CLAUSES.format(code="[dict(__parameters__)]")) == []
    chosen = sample.load("out").chosen
    assert chosen(2) == ("two\n  rows", {"a": 2, "b": 2})
    assert chosen(3, 4) == {"a": 3, "b": 4}
    assert chosen(5) == [{"a": 5, "b": 2}]
    assert chosen(1) == 2


def test_where_it_cannot_be_written_out_in_a_clause(sample: Sample) -> None:
    (sample.root / "manifests/acme_set/runner.yaml").unlink(missing_ok=True)
    sample.upstream("ops", OPS)
    text = MANIFEST.format(symbol="chosen", deltas=CLAUSES.format(code="__parameters__"), more="")
    sample.manifest(text, "out")
    (found,) = sample.regen().findings
    assert found.code == "PK227"
    assert found.manifest is not None
    row = text.lstrip("\n").split("\n")[found.manifest.line - 1]
    assert row[found.manifest.column - 1 :] == "__parameters__"


@pytest.mark.parametrize("code", ["x = __parameters__", "f(__parameters__, __parameters__)", "f(*__parameters__)"])
def test_where_it_cannot_be_written_out(sample: Sample, code: str) -> None:
    assert made(sample, "K.run", INSERT.format(code=code)) == ["PK227"]


@pytest.mark.parametrize(
    "delta",
    [
        "      - {name: d, at: start, insert: 'print(1)'}\n",
        "      - {name: d, at: end, insert: 'print(1)'}\n",
        "      - {name: d, returns: 'int'}\n",
        "      - {name: d, parameter: {add: 'more=0'}}\n",
        "      - {name: d, decorator: {add: 'print'}}\n",
    ],
)
def test_a_property_with_several_accessors(sample: Sample, delta: str) -> None:
    """The entry or the delta says which is meant, else it is an error that lists them."""
    (sample.root / "manifests/acme_set/runner.yaml").unlink(missing_ok=True)
    sample.upstream("ops", OPS)
    sample.manifest(MANIFEST.format(symbol="K.size", deltas=delta, more=""), "out")
    (found,) = sample.regen().findings
    assert found.code == "PK226"
    assert found.details == ("getter: acme/ops.py:11", "setter: acme/ops.py:16")


@pytest.mark.parametrize(("accessor", "word"), [("getter", "def size(self) -> int"), ("setter", "value) -> int")])
@pytest.mark.parametrize("where", ["entry", "delta"])
def test_the_accessor_that_is_named(sample: Sample, accessor: str, word: str, where: str) -> None:
    inside = f", accessor: {accessor}" if where == "delta" else ""
    more = f"    accessor: {accessor}" if where == "entry" else ""
    assert made(sample, "K.size", f"      - {{name: d, returns: 'int'{inside}}}\n", more) == []
    assert word in sample.generated("out").read_text()


def test_an_accessor_that_is_not_there(sample: Sample) -> None:
    assert made(sample, "K.size", "      - {name: d, returns: 'int', accessor: deleter}\n") == ["PK226"]
