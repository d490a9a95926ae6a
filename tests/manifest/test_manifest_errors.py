"""Golden table: what is wrong in a manifest, and exactly where (¶)."""

from __future__ import annotations

import pytest

from afd_patchkit.findings.finding import page
from tests.manifest.samples import EXAMPLE, HEAD, delta, entry, marked, problems

E = "entries:\n  - {symbol: a:b, reason: r}\n"

YAML = [
    ("empty file", "", "PK001@0"),
    ("only comments", "# nothing\n\n", "PK001@0"),
    ("null document", "~\n", "PK001@0"),
    ("a list", "¶- a\n", "PK004"),
    ("a text", "¶hello\n", "PK004"),
    ("unclosed bracket", "a: [1, 2\n¶", "PK001"),
    ("unclosed quote", 'a: "x\n¶', "PK001"),
    ("colon in plain text", HEAD.replace("summary: s", "summary: Runner¶: loop"), "PK001"),
    ("tab indentation", "a:\n¶\tb: 1\n", "PK001"),
    ("bad start", "a: ¶@x\n", "PK001"),
    ("second document", HEAD + E + "¶---\na: 1\n", "PK001"),
    ("form feed", "a: x¶\x0cy\n", "PK001"),
    ("lone carriage return", "a: x¶\ry: 1\n", "PK001"),
    ("NUL", "a: ¶\x00\n", "PK001"),
    ("line separator", "a: x¶\u2028y\n", "PK001"),
    ("byte order mark inside", "a: x\nb: ¶\ufeff\n", "PK001"),
    ("half a surrogate", HEAD.replace("summary: s", 'summary: ¶"\\ud800"') + E, "PK001"),
    ("deep nesting", "a: " + "[" * 100 + "¶" + "[" * 30000, "PK001"),
    ("anchor", HEAD.replace("summary: s", "summary: ¶&x s") + E, "PK008"),
    ("alias", HEAD + "entries:\n  - ¶&x {symbol: a:b, reason: r}\n  - ¶*x\n", "PK008 PK008"),
    ("merge key", HEAD + "entries:\n  - ¶<<: {symbol: a:b}\n    symbol: c:d\n    reason: r\n", "PK008"),
    ("tag", HEAD.replace("summary: s", "summary: ¶!!str s") + E, "PK008"),
    ("python tag", HEAD.replace("summary: s", "summary: ¶!!python/object/apply:os.system ['true']") + E, "PK004 PK008"),
    ("complex key", HEAD + E + "¶[a, b]: c\n", "PK004"),
]

KEYS = [
    ("unknown top key", HEAD + E + "¶imprts: []\n", "PK002"),
    ("unknown entry key", entry("¶remove_wen: []"), "PK002"),
    ("class of an entry", entry("¶class: Runner"), "PK002"),
    ("class of an entry, as a group", entry("¶class: {name: Runner}"), "PK002"),
    ("unknown delta key", delta("insert: |\n  x\nat: start\n¶were: x"), "PK002"),
    ("position is not a key", entry("¶where: x"), "PK002"),
    ("field name is not a key", delta('expr: "a"\nwith: "b"\n¶with_: "b"'), "PK002"),
    ("unknown in flow mapping", delta("call: {match: 'f()', callee: g, ¶calee: h}"), "PK002"),
    ("duplicate top key", HEAD + "¶pin: x\n" + E, "PK003"),
    ("duplicate delta key", delta("expr: |\n  x\nwith: |\n  y\n¶with: |\n  z"), "PK003"),
    ("duplicate in flow mapping", delta('rebind: {a: "b", ¶a: "c"}'), "PK003"),
    ("duplicate, quoted once", HEAD + '¶"pin": x\n' + E, "PK003"),
    ("missing key at the top", "¶" + HEAD.replace("summary: s\n", "") + E, "PK009"),
    ("missing reason", HEAD + "entries:\n  - ¶symbol: a:b\n", "PK009"),
    ("missing delta name", entry("deltas:\n  - ¶remove: |\n      x = 1"), "PK009"),
]

TYPES = [
    ("entries is a mapping", HEAD + "entries: ¶{symbol: a:b}\n", "PK004"),
    ("entries is empty", HEAD + "entries: ¶[]\n", "PK004"),
    ("deltas is text", entry("deltas: ¶none"), "PK004"),
    ("entry is text", HEAD + "entries:\n  - ¶acme.engine:step\n", "PK004"),
    ("reason is a list", entry("reason: ¶[a]"), "PK004"),
    ("reason has no value", entry("reason:¶"), "PK004"),
    ("reason is null", entry("reason: ¶null"), "PK004"),
    ("reason is blank", entry('reason: ¶" "'), "PK004"),
    ("reason with a control character", entry('reason: ¶"a\\0b"'), "PK004"),
    ("schema of the future", HEAD.replace("1", "¶2") + E, "PK004"),
    ("schema as text", HEAD.replace("1", '¶"1"') + E, "PK004"),
    ("unknown kind", entry("kind: ¶copied"), "PK004"),
    ("nth below 1", delta("remove: |\n  x = 1\nnth: ¶0"), "PK004"),
    ("nth in octal", delta("remove: |\n  x = 1\nnth: ¶010"), "PK004"),
    ("nth is text", delta('remove: |\n  x = 1\nnth: ¶"1"'), "PK004"),
    ("count is a huge number", delta(f"remove: |\n  x = 1\ncount: ¶{'9' * 20}"), "PK004"),
    ("late in YAML 1.1", entry("late: ¶yes"), "PK004"),
    ("empty pattern", delta('remove: ¶""'), "PK004"),
    ("empty rebind", delta("rebind: ¶{}"), "PK004"),
    ("negative position", delta('call: {match: "f(a)", drop: [¶-1]}'), "PK004"),
    ("unquoted number as text", HEAD.replace("pin: acme", "pin: ¶0.10") + E, "PK005"),
    ("unquoted truth value", entry("branch: ¶no"), "PK005"),
    ("unquoted date", entry("removal: ¶2026-08-22"), "PK005"),
    ("unquoted key", delta('rebind: {¶on: "x"}'), "PK005"),
]

SCALARS = [
    ("plain pattern", delta('expr: ¶batch.mode == "eager"\nwith: "x"'), "PK007"),
    ("plain pattern over lines", delta("remove: ¶x = (1 +\n  2)"), "PK007"),
    ("folded pattern", delta("remove: ¶>\n  x = 1\n  y = 2"), "PK007"),
    ("plain with", delta('expr: "x"\nwith: ¶y'), "PK007"),
    ("plain insert", delta("insert: ¶go()\nat: end"), "PK007"),
    ("folded insert", delta("insert: ¶>-\n  go()\n\n  on()\nat: end"), "PK007"),
    ("quoted over lines", delta('insert: ¶"go();\n  on()"\nat: end'), "PK007"),
    ("plain set value", delta("call: {match: 'f()', set: {a: ¶b}}"), "PK007"),
    ("plain rebind value", delta("rebind: {a: ¶b}"), "PK007"),
    ("plain returns", delta("returns: ¶int"), "PK007"),
    ("plain parameter", delta("parameter: {add: ¶rank}"), "PK007"),
    ("plain decorator", delta("decorator: {add: ¶cached}"), "PK007"),
    ("plain callee that is no dotted name", delta("call: {match: 'f()', callee: ¶a or b}"), "PK007"),
    ("folded import", HEAD + "imports:\n  - ¶>\n    import a\n\n    import b\n" + E, "PK007"),
    ("symbol over lines", entry("symbol: ¶a.b:c\n  d"), "PK007"),
    ("symbol without colon", entry("symbol: ¶acme.engine.step"), "PK006"),
    ("symbol with two colons", entry("symbol: ¶acme:engine:step"), "PK006"),
    ("quoted symbol", entry('symbol: "¶acme.engine.step"'), "PK006"),
    ("watch", entry("kind: owned\npart: p.py\nwatch: [a:b, ¶ab]"), "PK006"),
    ("probe", entry("remove_when:\n  - defines: ¶acme.2engine"), "PK006"),
]

OPERATIONS = [
    ("no operation", entry("deltas:\n  - ¶name: d"), "PK011"),
    ("two operations", delta("remove: |\n  x = 1\n¶returns: 'int'"), "PK011"),
    ("replace without with", delta("¶replace: |\n  x = 1"), "PK011"),
    ("expr without with", delta('¶expr: "x"'), "PK011"),
    ("insert with with", delta('insert: "x"\nat: start\n¶with: "y"'), "PK011"),
    ("insert without place", delta('¶insert: "x"'), "PK011"),
    ("insert with two places", delta('insert: "x"\nat: start\n¶before: "y = 1"'), "PK011"),
    ("insert at with nth", delta('insert: "x"\nat: start\n¶nth: 2'), "PK011"),
    ("parts without replace", delta('expr: "x"\nwith: "y"\n¶parts: {a: "x"}'), "PK011"),
    ("deltas without replace", delta('remove: "x = 1"\n¶deltas: []'), "PK011"),
    ("nth and count", delta('remove: "x = 1"\nnth: 1\n¶count: 2'), "PK011"),
    ("call without change", delta("call: {¶match: 'f()'}"), "PK011"),
    ("argument set and dropped", delta("call: {match: 'f()', set: {a: '1'}, drop: ¶[a]}"), "PK011"),
    ("clause without change", delta("clause: ¶{of: 'if a: ...'}"), "PK011"),
    ("clause with two", delta("clause: {of: 'if a: ...', remove: 'else', ¶replace: 'else'}\nwith: 'else: x'"), "PK011"),
    ("clause.replace without with", delta("¶clause: {of: 'if a: ...', replace: 'else'}"), "PK011"),
    ("clause.remove with with", delta("clause: {of: 'if a: ...', remove: 'else'}\n¶with: 'else: x'"), "PK011"),
    ("parameter placed twice", delta("parameter: {add: 'a', before: b, ¶after: c}"), "PK011"),
    ("parameter removed and placed", delta("parameter: {remove: a, ¶before: b}"), "PK011"),
    ("member within", delta("member: {remove: a}\n¶within: 'if a: ...'"), "PK011"),
    ("member.replace without with", delta("¶member: {replace: a}"), "PK011"),
    ("decorator with with", delta("decorator: {remove: 'a'}\n¶with: 'b'"), "PK011"),
    ("take in an expression", delta("expr: 'a'\nwith: ¶{take: {pin: p, symbol: a:b}}"), "PK011"),
    ("take to without from", delta("insert: {take: {pin: p, symbol: a:b, ¶to: 'x = 1'}}\nat: end"), "PK011"),
    ("placeholder in insert", delta("insert: |\n  a = 1\n  if ¶__upstream__: pass\nat: end"), "PK011"),
    ("placeholder in parameter", delta("parameter: {replace: a}\nwith: '¶__upstream__'"), "PK011"),
    ("unused part", delta("replace: 'x = 1'\nwith: '__upstream__'\nparts: {¶attn: 'x'}"), "PK011"),
    ("mistyped part", delta("replace: 'x = 1'\nwith: '__attn__; ¶__atn__'\nparts: {attn: 'x'}"), "PK011"),
    ("mistyped upstream", delta("replace: 'x = 1'\nwith: '¶__upstrem__'"), "PK011"),
    (
        "nested without wrapping",
        delta("replace: 'x = 1'\nwith: 'y = 1'\ndeltas: ¶[{name: e, remove: 'x = 1'}]"),
        "PK011",
    ),
    ("probe with two keys", entry("remove_when:\n  - defines: a:b\n    ¶missing: a:c"), "PK017"),
    ("probe without key", entry("remove_when:\n  - ¶{}"), "PK017"),
    ("empty any", entry("remove_when:\n  - any: ¶[]"), "PK004"),
]

NAMES = [
    ("name with hash", delta("remove: 'x = 1'", "¶'a # b'"), "PK010"),
    ("name with blank", delta("remove: 'x = 1'", "¶' a'"), "PK010"),
    ("name over lines", delta("remove: 'x = 1'", '¶"a\\nb"'), "PK010"),
    ("name like a number", delta("remove: 'x = 1'", "¶a (1/2)"), "PK010"),
    ("empty name", delta("remove: 'x = 1'", "¶''"), "PK004"),
    ("same name twice", entry("deltas:\n  - {name: d, remove: 'x = 1'}\n  - ¶{name: d, remove: 'y = 1'}"), "PK010"),
    (
        "same name nested",
        delta("replace: 'x = 1'\nwith: '__upstream__'\ndeltas: [¶{name: d, remove: 'x = 1'}]"),
        "PK010",
    ),
    ("entry name", entry("name: ¶a-b"), "PK018"),
    ("entry keyword", entry("name: ¶class"), "PK018"),
    ("entry name with its class", entry("name: ¶Runner.step"), "PK018"),
    ("class name", HEAD + "entries:\n  - class: {name: ¶1a, members: [{symbol: a:b, reason: r}]}\n", "PK018"),
    ("part name", delta("replace: 'x = 1'\nwith: 'y = 1'\nparts: {¶upstream: 'x'}"), "PK018"),
    ("rebound name", delta("rebind: {¶a.b: 'x'}"), "PK018"),
    ("parameter name", delta("parameter: {remove: ¶'*'}"), "PK018"),
    ("argument name", delta("call: {match: 'f()', set: {¶a b: 'x'}}"), "PK018"),
    ("late name", entry("late: [¶a.b]"), "PK018"),
    ("depends_on", entry("name: a\ndepends_on: [a, b]").replace("- symbol", "- ¶symbol"), "PK019"),
    ("twice in a class", HEAD + "entries:\n  - class:\n      name: C\n      members:\n        - {symbol: a:f, reason: r}\n"
     "        - ¶{symbol: b:f, reason: r}\n", "PK015"),
]  # fmt: skip

KINDS = [
    ("copy without symbol", HEAD + "entries:\n  - ¶kind: copy\n    reason: r\n", "PK013"),
    ("copy with body", entry("¶body: 'pass'"), "PK013"),
    ("copy with part", entry("symbol: a:b\n¶part: p.py"), "PK013"),
    ("backport without probe", entry("symbol: a:b\nkind: backport").replace("- reason", "- ¶reason"), "PK013"),
    (
        "backport with prose only",
        entry("symbol: a:b\nkind: backport\nremoval: when it is there").replace("- reason", "- ¶reason"),
        "PK013",
    ),
    ("delegate without body", entry("symbol: a:b\nkind: delegate\nvia: original").replace("- reason", "- ¶reason"), "PK013"),
    ("delegate without via", entry("symbol: a:b\nkind: delegate\nbody: 'pass'").replace("- reason", "- ¶reason"), "PK013"),
    ("super outside a class", entry("symbol: a:b\nkind: delegate\nbody: 'pass'\nvia: super"), "PK013@6"),
    (
        "delegate with insert",
        entry("symbol: a:b\nkind: delegate\nbody: 'pass'\nvia: original\ndeltas:\n  - ¶{name: d, insert: 'x', at: end}"),
        "PK013",
    ),
    ("owned without part", HEAD + "entries:\n  - ¶kind: owned\n    reason: r\n", "PK013"),
    ("owned with symbol", HEAD + "entries:\n  - kind: owned\n    reason: r\n    part: p.py\n    ¶symbol: a:b\n", "PK013"),
    ("owned with deltas", entry("kind: owned\npart: p.py\n¶deltas: []"), "PK013"),
    (
        "owned in a class",
        HEAD + "entries:\n  - class: {name: C, members: [¶{kind: owned, part: p.py, reason: r}]}\n",
        "PK013",
    ),
    *(
        (f"part {part}", entry(f"kind: owned\npart: ¶{part}"), "PK012")
        for part in ("../p.py", "/p.py", "a//p.py", "p.txt", "'a\\p.py'", "./p.py")
    ),
    *(
        (f"module {module}", HEAD.replace("m.py", f"¶{module}") + E, "PK014")
        for module in (
            "/m.py", "../m.py", "a/../m.py", "a//m.py", "m", "m.pyc", "a-b/m.py", "a/class.py", "__init__.py", "a/__init__.py",
            "'C:/m.py'", "'a\\m.py'", "é.py", "1.py", ".py", "./m.py",
        )
    ),
]  # fmt: skip

PYTHON = [
    ("with", delta("replace: 'x = 1'\nwith: |\n  if a:\n      __upstream__\n  y = = 2").replace("= = 2", "= ¶= 2"), "PK020"),
    ("with after blank lines", delta("replace: 'x = 1'\nwith: |\n\n  a = 1\n\n  b = ¶)"), "PK020"),
    ("with, deeper indentation", delta("replace: 'x = 1'\nwith: |2-  # explicit\n\n  b = ¶)"), "PK020"),
    ("with, quoted", delta("replace: 'x = 1'\nwith: 'b = ¶)'"), "PK020"),
    ("with, escaped", delta('replace: "x = 1"\nwith: "b = \\"\\u00e9\\" + ¶)"'), "PK020"),
    ("with, single quotes doubled", delta("replace: 'x = 1'\nwith: 'b = ''c'' + ¶)'"), "PK020"),
    ("with, second line of a quoted text", delta('replace: "x = 1"\nwith: "a = 1\\nb = ¶)"'), "PK020"),
    ("with, behind wide characters", delta("replace: 'x = 1'\nwith: |\n  b = 'é𝄞' + ¶)"), "PK020"),
    ("with, in CRLF", delta("replace: 'x = 1'\nwith: |\n  a = 1\n  b = ¶)").replace("\n", "\r\n"), "PK020"),
    ("with, only a comment", delta("replace: 'x = 1'\nwith: |\n  ¶# nothing"), "PK020"),
    ("with, tab", delta("replace: 'x = 1'\nwith: |\n  if a:\n  ¶\tb = 1"), "PK020"),
    ("insert", delta("insert: |\n  return ¶]\nat: end"), "PK020"),
    ("expression", delta("expr: 'a'\nwith: |\n  a and\n  b ¶]"), "PK020"),
    ("expression that is a statement", delta("expr: 'a'\nwith: '¶b = 1'"), "PK020@L"),
    ("expression that closes ours", delta("expr: 'a'\nwith: '¶a) + (b'"), "PK020"),
    ("set", delta("call: {match: 'f()', set: {a: 'b ¶c'}}"), "PK020"),
    ("targets", delta("call: {match: 'f()', targets: '¶a; b'}"), "PK020"),
    ("rebind", delta("rebind: {a: '¶)'}"), "PK020"),
    ("parameter: two", delta("parameter: {add: '¶a, b'}"), "PK020"),
    ("parameter: comma", delta("parameter: {add: '¶a,'}"), "PK020"),
    ("parameter: closes ours", delta("parameter: {add: '¶a): pass'}"), "PK020@L"),
    ("parameter: replaced by two", delta("parameter: {replace: a}\nwith: '¶a, b'"), "PK020"),
    ("clause without head", delta("clause: {of: 'if a: ...', add: '¶x = 1'}"), "PK020"),
    ("clause with more", delta("clause:\n  of: 'if a: ...'\n  add: |\n    else:\n        x = 1\n    ¶y = 1"), "PK020"),
    ("clause: case", delta("clause:\n  of: 'match a: ...'\n  add: |\n    case 1:\n        x = ¶)"), "PK020"),
    ("clause: with", delta("clause: {of: 'if a: ...', replace: 'else'}\nwith: '¶y = 1'"), "PK020"),
    ("decorator", delta("decorator: {add: '¶@cached'}"), "PK020"),
    ("member", delta("member: {add: 'def f(¶:'}"), "PK020"),
    ("body", entry("kind: delegate\nsymbol: a:b\nvia: original\nbody: |\n  return ¶)"), "PK020"),
    ("import", HEAD + "imports:\n  - import ¶a as\n" + E, "PK020@L"),
    ("no import", HEAD + "imports:\n  - '¶x = 1'\n" + E, "PK020"),
    ("relative import", HEAD + "imports:\n  - ¶from . import a\n" + E, "PK020"),
    ("star import", HEAD + "imports:\n  - ¶from a import *\n" + E, "PK020"),
    ("pattern", delta("remove: |\n  x = = 1").replace("= = 1", "= ¶= 1"), "PK030"),
    ("pattern in a range", delta("remove: {from: 'x = 1', to: 'y = ¶)'}"), "PK030"),
    ("pattern of a statement for an expression", delta("expr: |\n  x = 1\nwith: 'y'"), "PK030@L"),
    ("pattern in within", delta("remove: 'x = 1'\nwithin: {of: 'if a: ...', clause: '¶wile'}"), "PK030"),
    ("pattern that is all", delta("remove: '¶...'"), "PK031"),
    ("pattern in a probe", entry("remove_when:\n  - contains: {in: a:b, pattern: '¶)'}"), "PK030"),
]  # fmt: skip

TABLE = [*YAML, *KEYS, *TYPES, *SCALARS, *OPERATIONS, *NAMES, *KINDS, *PYTHON]


@pytest.mark.parametrize(("text", "codes"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_says_what_and_where(text, codes):
    text, places = marked(text)
    found = problems(text)
    assert [(f.code, f.manifest.file) for f in found] == [(c.split("@")[0], "m.yaml") for c in codes.split()], found
    for finding, code in zip(found, codes.split(), strict=True):
        _, _, place = code.partition("@")
        if place == "L":  # the column is Python's affair and differs between its versions
            continue
        if place:
            assert finding.manifest.line == int(place)
        else:
            assert (finding.manifest.line, finding.manifest.column) in places, (str(finding.manifest), places)
    if not any("@" in code for code in codes.split()) and len(set(places)) == len(codes.split()):
        assert {(f.manifest.line, f.manifest.column) for f in found} == set(places)


def test_every_finding_has_a_page_of_exit_code_2():
    codes = {code.split("@")[0] for row in TABLE for code in row[2].split()}
    assert {page(code).exit_code for code in codes} == {2}


def test_undecodable_bytes_are_placed():
    (finding,) = problems(HEAD.encode() + b"removal: \xc3\xa9 \xff\n")
    assert (finding.code, finding.manifest.line, finding.manifest.column) == ("PK001", 5, 12)


CLASS = "A generated class is an item of its own, `- class: {name: Runner, members: [...]}`; this entry goes into its `members`"
ARGUMENT = "An argument is no expression: match its call, and say `call: {match: ..., set: {rank: ...}}`."


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        (entry("remove_wen: []"), "Did you mean `remove_when`?"),
        (delta('exprr: "x"'), "Did you mean `expr`?"),
        (entry("kind: backprot\nremove_when: [{defines: a:b}]"), "Did you mean `backport`?"),
        (entry("name: step\ndepends_on: [stepp]"), "Did you mean `step`?"),
        (HEAD.replace("pin: acme", "pin: 0.10") + E, 'Write "0.10".'),
        (entry("class: Runner"), f"{CLASS}."),
        (entry("class: {name: Runner, members: []}"), f"{CLASS}."),
        (entry("name: Runner.step"), f"{CLASS} and says `name: step`."),
        (
            HEAD + "entries:\n  - kind: copy\n    class: {name: A, members: [{symbol: a:b, reason: r}]}\n",
            "The entries of a class say that, one by one: `members: [{symbol: ..., ...}]`.",
        ),
        (
            HEAD + "entries:\n  - class: {name: A, reason: r, members: [{symbol: a:b, reason: r}]}\n",
            "The entries of a class say that, one by one: `members: [{symbol: ..., ...}]`.",
        ),
        (delta("expr: |\n  rank=0\nwith: '1'"), ARGUMENT),
        (delta("expr: 'rank'\nwith: 'rank=1'"), ARGUMENT),
        ("a:\n\tb: 1\n", "Indent with spaces: YAML does not take tabs."),
        ("a: b: c\n", "Text that holds `: ` must be quoted, or stand in a block scalar (`|`)."),
    ],
)
def test_help_says_what_to_write(text, help_):
    assert help_ in [f.help for f in problems(text)]


def test_all_errors_of_a_file_come_together_and_in_order():
    text = EXAMPLE.replace("schema: 1", "schema: 2").replace("kind: copy", "kind: copyy").replace("model(...)", "= 1")
    text = text.replace("name: AFD two", "nmae: AFD two").replace('"self.rank"', "self.rank")
    found = problems(text)
    assert [f.code for f in found] == ["PK004", "PK004", "PK007", "PK002", "PK009", "PK030"]
    assert [f.manifest.line for f in found] == sorted(f.manifest.line for f in found)


def test_findings_name_the_entry_and_the_delta():
    text = EXAMPLE.replace("model(...)", "= 1").replace("functionality", "functionalty")
    assert [(f.entry, f.delta) for f in problems(text)] == [
        ("acme_backport/runner.py::step_with_overlap", None),
        ("acme_backport/runner.py::step_with_overlap", "AFD two halves"),
    ]


def test_members_are_named_with_their_class():
    text = HEAD + "entries:\n  - class:\n      name: C\n      members:\n        - {symbol: a:b.f, resaon: r}\n"
    assert {f.entry for f in problems(text)} == {"m.py::C.f"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (entry("symbol: a:b\nkind: backport\nremove_when: [{defines: a b}]"), "PK006"),
        (entry("symbol: a:b\nkind: backport").replace("entries:", "remove_when: [{defines: a b}]\nentries:"), "PK006"),
        (
            entry(
                "symbol: a:b\nkind: delegate\nvia: original\nbody: 'pass'\ndeltas: [{name: d, parameter: {add: ')'}}]"
            ),
            "PK020",
        ),
        (delta("replace: 'x = 1'\nwith: __a__\nparts: {a: 'x'}"), "PK007"),
        (delta("replace: 'x = 1'\nwith: '__a__; __ab__'\nparts: {a: ')', ab: 'x'}"), "PK030"),
        (delta("replace: 'x = 1'\nwith: __upstream__\ndeltas: [{name: e, remove: 'x = 1'}]"), "PK007"),
        (entry("name: f\ndepends_on: [g]\nkind: copi"), "PK004"),
        (delta("remove: ')'"), "PK030"),
    ],
)
def test_one_error_is_reported_as_one(text, code):
    assert [f.code for f in problems(text)] == [code]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # what is missing at the top hides nothing below, nor does a broken key rule hide the values
        ("schema: 1\nremove_when:\n  - {dfines: a:b}\n", "PK002 PK009 PK009 PK009 PK017"),
        (delta("remove: ')'\nreturns: int\nnth: x"), "PK004 PK007 PK011 PK030"),
        # of the branches of a union, the one that was meant
        (delta("replace: {form: 'x = 1', to: 'y = 1'}\nwith: 'z'"), "PK002 PK009"),
        (delta("replace: [a]\nwith: 'z'"), "PK004"),
        (entry("late: [0.1, a.b]"), "PK005 PK018"),
        (HEAD + "entries:\n  - {class: {nme: C, members: [{symbol: a:b}]}}\n", "PK002 PK009 PK009"),
    ],
)
def test_no_error_hides_another(text, expected):
    assert sorted(f.code for f in problems(text)) == expected.split()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (entry("late: yes"), "`late` must be true or false or a list, not `yes`"),
        (entry("branch: 010"), "`branch` must be a whole number or text, not `010`"),
        (entry("late: [a, [b]]"), "item 2 of `late` must be text, not a list"),
        (delta("rebind: {a: {}}"), "`a` of `rebind` must be text, not a mapping"),
        (
            delta("rebind: {no: 'x'}"),
            "the key `no` of `rebind` must be quoted: YAML reads no as true or false, this must be text",
        ),
        (delta("replace: [a]\nwith: 'z'"), "`replace` must be text or a mapping, not a list"),
        (delta("insert: 'x'\nat: strat"), "`at` must be `start` or `end`, not `strat`"),
    ],
)
def test_messages_say_what_was_wanted(text, message):
    assert [f.message for f in problems(text)] == [message]


def test_numbers_beyond_what_python_converts():
    assert [f.code for f in problems(delta(f"remove: 'x = 1'\ncount: {'9' * 5000}"))] == ["PK004"]
    assert [f.code for f in problems(delta(f"rebind: {{{'9' * 500}: 'x'}}"))] == ["PK005"]


def test_an_alias_bomb_costs_nothing():
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 40))
    found = problems("a0: &a0 x\n" + levels)
    assert {f.code for f in found} == {"PK002", "PK008", "PK009"}
