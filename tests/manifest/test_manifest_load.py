"""What a good manifest becomes, and where its texts say they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Position
from afd_patchkit.manifest import nodes
from afd_patchkit.manifest.load import parse_manifest, parse_pins
from afd_patchkit.manifest.nodes import Document, Scalar
from afd_patchkit.model import Code, Delta, GroupEntry, Range, TakeBody
from tests.manifest.samples import EXAMPLE, HEAD, delta, entry, problems


def only_delta(body: str) -> Delta:
    return parse_manifest(delta(body).encode(), "m.yaml").entries[0].deltas[0]


def test_the_example_of_the_design():
    manifest = parse_manifest(EXAMPLE.encode(), "m.yaml")
    (entry_,) = manifest.entries
    assert manifest.module == "acme_backport/runner.py"
    assert [str(i) for i in manifest.imports] == ["from acme_backport.halves import run_halves"]
    assert (entry_.generated_name, entry_.kind, str(entry_.symbol)) == (
        "step_with_overlap",
        "copy",
        "acme.engine:Engine.step",
    )
    assert [d.operation for d in entry_.deltas] == ["call", "expr", "replace"]
    call = entry_.deltas[0].call
    assert (call.match.text, call.callee.text) == ("self.dispatch(...)\n", "self.dispatch_overlap")
    assert {key: value.text for key, value in call.set.items()} == {"rank": "self.rank"}
    assert entry_.deltas[2].with_.text.count("\n") == 4
    assert entry_.where == Position("m.yaml", 8, 5)
    assert entry_.deltas[2].where == Position("m.yaml", 28, 9)


GOOD = [
    "insert: |\n  x()\nat: start",
    "insert: |\n  x()\nat: end\nwithin: {of: 'if a: ...', clause: 'else'}",
    "insert: {take: {pin: p, symbol: a:b, from: 'x = 1', to: 'y = 1', rename: {z: 'q'}}}\nbefore: 'x = ...'",
    "replace: 'x = 1'\nwith: |\n  if a:\n      __upstream__\nparts: {}",
    "replace: {from: 'x = 1', to: 'y = 1'}\nwith: '__upstream__'\ndeltas: [{name: e, remove: 'y = 1'}]",
    "replace: 'x = f(a)'\nwith: |\n  if a: __attn__\nparts: {attn: 'f(...)'}",
    "remove: 'x = 1'\nnth: 2",
    "remove: 'x = 1'\ncount: 3\nnext_to: 'y = 1'",
    "expr: |\n  a\nwith: |\n  a\n  and b  # why\n",
    "expr: 'a'\nwith: '(yield a)'",
    "expr: 'a'\nwith: 'await a'",
    "expr: 'a'\nwith: |\n  a\n  and (x for x in b)\n",
    "call: {match: 'f(...)', callee: g.h, set: {0: 'a', b: 'c'}, drop: [1, d], targets: 'a, b'}",
    "clause:\n  of: 'if a: ...'\n  add: |\n    elif b:\n        c()\n",
    "clause:\n  of: 'if a: ...'\n  first: |\n    if b:\n        c()\n",
    "clause:\n  of: 'for a in b: ...'\n  add: |\n    else:\n        c()\n",
    "clause:\n  of: 'try: ...'\n  add: |\n    else:\n        c()\n    finally:\n        d()\n",
    "clause:\n  of: 'try: ...'\n  add: |\n    except (A, B) as e:\n        c()\n",
    "clause:\n  of: 'match a: ...'\n  add: |\n    case [x, *_] if x:\n        c('''\n    d\n    ''')\n",
    "clause: {of: 'if a: ...', replace: 'elif b'}\nwith: |\n  elif c:\n      __upstream__",
    "clause: {of: 'try: ...', remove: 'except ...'}",
    "parameter: {add: 'rank: int = 0', after: a}",
    "parameter: {add: '*args: int', kind: keyword-only}",
    "parameter: {replace: a}\nwith: 'a: int | None = None'",
    "returns: 'none'",
    "returns: 'dict[str, int]'",
    "decorator: {add: 'cached(maxsize=None)', before: 'timed'}",
    "decorator: {replace: 'cached'}\nwith: 'cached()'",
    "member: {add: 'def f(self): ...', after: g}",
    "member: {replace: f}\nwith: |\n  def f(self):\n      __upstream__",
    "field: {add: 'rank: int = 0'}",
    "field: {remove: rank}",
    "rebind: {Name: 'module.Other'}",
]


@pytest.mark.parametrize("body", GOOD)
def test_each_operation_in_its_forms(body):
    assert problems(delta(body)) == []
    made = only_delta(body)
    assert made.operation == body.split(":")[0]


ENTRIES = [
    "kind: backport\nsymbol: a:b\nremove_when: [{defines: a:b}]\nremoval: prose beside",
    "kind: delegate\nsymbol: a:b\nvia: original\nbody: |\n  return original(x)\ndeltas: [{name: d, parameter: {add: 'x'}}]",
    "kind: owned\npart: parts/a_b.py\nwatch: [a:b, 'c.d:E.f']",
    "kind: owned\npart: parts/a_b.py\nname: C",
    "branch: 2\nlate: true\nshare: true\ndepends_on: [step]",
    "branch: else\nlate: [a, b]",
    "remove_when:\n  - any: [{missing: a:b}, {all: [{absent: {in: a:b, pattern: 'x = ...'}}, {contains: {in: a:b, pattern: 'f(...)'}}]}]",
    "reason: >-\n  Folded prose\n  is prose: fine.\nfunctionality: |\n  So is\n  this.",
]  # fmt: skip


@pytest.mark.parametrize("body", ENTRIES)
def test_entries(body):
    assert problems(entry(body)) == []


def test_class_groups():
    text = HEAD + (
        "entries:\n  - class:\n      name: Runner\n      bases: [Base, 'Generic[T]']\n      doc: d\n      decorators: ['final']\n"
        "      members:\n        - {symbol: a:B.f, reason: r}\n"
        "        - {symbol: a:B.g, reason: r, kind: delegate, via: super, body: 'return upstream()'}\n"
    )
    manifest = parse_manifest(text.encode(), "m.yaml")
    assert isinstance(manifest.entries[0], GroupEntry)
    assert [(e.generated_name, g.name) for e, g in manifest.all_entries()] == [("f", "Runner"), ("g", "Runner")]


def test_a_backport_may_take_its_probe_from_the_manifest():
    text = entry("kind: backport\nsymbol: a:b").replace("entries:", "remove_when: [{defines: a:b}]\nentries:")
    assert problems(text) == []


def test_unions_become_what_is_written():
    made = only_delta("replace: {from: 'x = 1', to: 'y = 1'}\nwith: {take: {pin: p, symbol: a:b}}")
    assert isinstance(made.replace, Range)
    assert isinstance(made.with_, TakeBody)
    made = only_delta("call: {match: 'f()', set: {0: 'a', '1a': 'b'}}".replace("'1a'", "b"))
    assert list(made.call.set) == [0, "b"]


def test_a_symbol_as_block_scalar_has_no_newline():
    manifest = parse_manifest(entry("symbol: |\n  a.b:c.d\n").encode(), "m.yaml")
    assert manifest.entries[0].symbol.text == "a.b:c.d"


def test_byte_order_mark_and_crlf_are_no_difference():
    one = parse_manifest(EXAMPLE.encode(), "m.yaml")
    two = parse_manifest(b"\xef\xbb\xbf" + EXAMPLE.replace("\n", "\r\n").encode(), "m.yaml")
    assert one == two


PINS = 'schema: 1\npins:\n  acme: {distribution: acme, version: "1.4.0"}\n'


def test_pins():
    pins = parse_pins((PINS + '  next: {distribution: acme, version: "2.0rc1", role: donor}\n').encode(), "pins.yaml")
    assert [(name, pin.version, pin.role) for name, pin in pins.pins.items()] == [
        ("acme", "1.4.0", "target"),
        ("next", "2.0rc1", "donor"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "code", "column"),
    [
        ('"1.4.0"', "1.4.0", "PK005", 39),
        ('"1.4.0"', "0.10", "PK005", 39),
        ('"1.4.0"', '"v1.4.0"', "PK016", 39),
        ('"1.4.0"', '">=1.4"', "PK016", 39),
        ('"1.4.0"', '"1.4.*"', "PK016", 39),
        ('"1.4.0"', '"1.4.0-rc1"', "PK016", 39),
        ('"1.4.0"', '["1.4.0"]', "PK004", 39),
        ("acme,", "'a b',", "PK016", 24),
        ("acme:", '"a b":', "PK018", 3),
        ('"1.4.0"', '"1.4.0", role: donator', "PK004", 54),
        ('"1.4.0"', '"1.4.0", commit: 0123456', "PK005", 56),
        ('"1.4.0"', '"1.4.0", commit: abc', "PK004", 56),
        ('"1.4.0"', '"1.4.0", git: {url: u}', "PK009", 53),
        ('"1.4.0"', '"1.4.0", packages: [a-b]', "PK018", 59),
        (', version: "1.4.0"', "", "PK009", 9),
    ],
)
def test_wrong_pins(old, new, code, column):
    with pytest.raises(ManifestError) as caught:
        parse_pins(PINS.replace(old, new, 1).encode(), "pins.yaml")
    (finding,) = caught.value.findings
    assert (finding.code, str(finding.manifest)) == (code, f"pins.yaml:3:{column}")


def test_two_targets_of_one_distribution():
    text = PINS + '  b: {distribution: ACME, version: "2.0"}\n'
    with pytest.raises(ManifestError) as caught:
        parse_pins(text.encode(), "pins.yaml")
    assert [(f.code, f.manifest.line) for f in caught.value.findings] == [("PK016", 4)]


# ---- positions --------------------------------------------------------------------------------------------------------


def codes_of(model: object):
    """All `Code` of a model, in any depth."""
    if isinstance(model, Code):
        yield model
    elif isinstance(model, (tuple, list)):
        for item in model:
            yield from codes_of(item)
    elif isinstance(model, dict):
        yield from codes_of(list(model.values()))
    elif hasattr(model, "__pydantic_fields__"):
        yield from codes_of([getattr(model, name) for name in type(model).model_fields])


def test_every_text_of_the_example_stands_where_it_says():
    manifest = parse_manifest(EXAMPLE.encode(), "m.yaml")
    rows = EXAMPLE.split("\n")
    found = list(codes_of(manifest))
    assert len(found) == 10
    for code in found:
        for number, row in enumerate(code.text.removesuffix("\n").split("\n"), 1):
            for column, char in enumerate(row, 1):
                place = code.at(number, column)
                assert rows[place.line - 1][place.column - 1] == char


def scalar_code(text: str) -> Code:
    document = Document(text.encode(), "f")
    assert document.problems == []
    value = document.root.get("k")
    assert isinstance(value, Scalar)
    return document.code(value)


CHARS = st.text(st.sampled_from("ab \"'\\\n\té𝄞#:"), min_size=1, max_size=12)


@given(CHARS)
def test_double_quoted_text_is_placed_character_by_character(text):
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "é": "\\xe9", "𝄞": "\\U0001d11e"}
    pieces = [escapes.get(char, char) for char in text]
    source = f'k: "{"".join(pieces)}"\n'
    code = scalar_code(source)
    assert code.text == text
    column = 5
    for index, piece in enumerate(pieces):
        before = text[:index]
        place = code.at(before.count("\n") + 1, len(before) - before.rfind("\n"))
        assert (place.line, place.column) == (1, column)
        column += len(piece)


@given(CHARS.map(lambda t: t.replace("\n", "x").replace("\t", "y")))
def test_single_quoted_text_is_placed_character_by_character(text):
    pieces = ["''" if char == "'" else char for char in text]
    code = scalar_code(f"k: '{''.join(pieces)}'\n")
    assert code.text == text
    columns = [code.at(1, index).column for index in range(1, len(text) + 1)]
    assert columns == [5 + sum(map(len, pieces[:index])) for index in range(len(text))]


ROW = st.text(st.sampled_from("ab 'é𝄞#:"), max_size=6)


@given(st.lists(ROW, min_size=1, max_size=5), st.integers(1, 5), st.booleans())
def test_block_text_is_placed_character_by_character(rows, indent, crlf):
    if not rows[0].strip() or rows[0].startswith(" "):
        rows = ["first", *rows]
    source = "k: |\n" + "".join(" " * indent + row + "\n" for row in rows)
    code = scalar_code(source.replace("\n", "\r\n") if crlf else source)
    lines = source.split("\n")
    for number, row in enumerate(code.text.removesuffix("\n").split("\n"), 1):
        for column, char in enumerate(row, 1):
            place = code.at(number, column)
            assert lines[place.line - 1][place.column - 1] == char


def test_the_pure_reader_gives_the_same_nodes(monkeypatch):
    texts = [EXAMPLE, *map(delta, GOOD), *map(entry, ENTRIES)]
    fast = [Document(text.encode(), "f").root for text in texts]
    monkeypatch.setattr(nodes, "_LOADER", nodes.yaml.SafeLoader)
    assert [Document(text.encode(), "f").root for text in texts] == fast


# ---- nothing but ManifestError ----------------------------------------------------------------------------------------


def never_crashes(data: bytes) -> None:
    found = problems(data, "f.yaml")
    assert all(f.manifest is not None and f.manifest.file == "f.yaml" for f in found)
    if not found:
        assert parse_manifest(data, "f.yaml").where.file == "f.yaml"


@given(st.binary(max_size=60))
def test_any_bytes(data):
    never_crashes(data)


@given(st.text(max_size=80))
def test_any_text(text):
    never_crashes(text.encode("utf-8", "replace"))


YAML_BITS = st.sampled_from(
    ["schema", "entries", "deltas", "name", "with", "replace", ": ", "\n", "\n  ", "\n  - ", "- ", "[", "]", "{", "}", ", ", "|\n",
     ">\n", "'", '"', "&a ", "*a", "!!x ", "? ", "# ", "1", "0.10", "~", "...", "\\", "\t", "x = 1", "---\n", "%YAML 1.2\n", "<<"]
)  # fmt: skip


@given(st.lists(YAML_BITS, max_size=40).map("".join))
def test_any_yaml(text):
    never_crashes(text.encode())


BLOCK = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.lists(
    st.sampled_from(["...", "(", ")", "if a:", "\n", "    ", "else:", "except ", "x", " = ", "'", '"', "f'{", "}", "\\", "\t", "#",
                     "def f(", "lambda", "*", ",", ":", "@", "match ", "case ", "0x", "__upstream__", "\x0c", "é", ";"]),
    max_size=15,
).map("".join)  # fmt: skip

FIELDS = st.sampled_from(
    ["remove: T", "expr: T\nwith: T", "replace: T\nwith: T", "insert: T\nat: end", "call: {match: T, set: {a: T}, targets: T}",
     "clause: {of: T, add: T}", "clause: {of: T, remove: T}", "clause: {of: T, replace: T}\nwith: T", "parameter: {add: T}",
     "returns: T", "decorator: {add: T}", "member: {add: T}", "rebind: {a: T}", "remove: T\nwithin: {of: T, clause: T}"]
)  # fmt: skip


@given(FIELDS, BLOCK)
def test_any_python(field, text):
    """Also text that is hard on tokenizers: the loader says what is wrong, and never fails itself."""
    quoted = "".join(f"\\U{ord(char):08x}" for char in text)
    never_crashes(delta(field.replace("T", f'"{quoted}"')).encode())
