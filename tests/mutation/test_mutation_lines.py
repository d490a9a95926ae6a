"""Which tests reach a line: instruments, records, and the tests that are chosen."""

from __future__ import annotations

import ast
from pathlib import Path

from tools.mutation.hits import HITS, PHASE, SIZE, VARIABLE, Hit, prepare
from tools.mutation.lines import Record, Records, instrumented, reaching

MODULE = '''"""A module."""
from __future__ import annotations

x = 1


def f(a):
    """Of f."""
    if a:
        return 1
    return 2
'''


def test_a_module_reports_its_lines_once_per_phase(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    prepare(tmp_path)
    names: dict[str, object] = {}
    text = instrumented(MODULE, "set/m.py")
    assert ast.get_docstring(ast.parse(text)) == "A module."
    exec(compile(text, "m", "exec"), names)
    f = names["f"]
    assert [f(False), f(False)] == [2, 2]
    with (tmp_path / PHASE).open("r+b") as file:
        file.write((7).to_bytes(SIZE, "little"))
    assert f(True) == 1
    found = (tmp_path / HITS).read_text().splitlines()
    assert found == ["0 0 set/m.py", "0 9 set/m.py", "0 11 set/m.py", "7 9 set/m.py", "7 10 set/m.py"]


def test_instruments_are_no_calls(tmp_path: Path) -> None:
    calls = [
        [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        for text in (MODULE, instrumented(MODULE, "m"))
    ]
    assert (len(calls[0]), len(calls[1])) == (0, 1)  # where the reporter is made
    assert isinstance(Hit.line, property)


A, B, C, D = "t/a.py::a", "t/a.py::b", "t/b.py::c", "t/b.py::d"


def record() -> Record:
    made = Record()
    made.lines.update({A: {("m", 3)}, "fix": {("m", 5)}, C: {("m", 3), ("m", 5)}, D: {("m", 9)}})
    made.seconds = {A: 0.5, B: 0.1, C: 2.0, D: 0.1, "fix": 30.0}
    made.fixtures = {A: [], B: ["fix"], C: [], D: []}
    return made


def test_the_tests_of_a_line_are_those_that_reach_it_by_themselves_or_by_a_fixture() -> None:
    assert reaching(record(), [("m", 3)], [], 60).tests == (A, C)
    assert reaching(record(), [("m", 5)], [], 60).tests == (C, B)
    assert reaching(record(), [("m", 4)], [], 60).tests == ()


def test_likely_ones_are_first_and_long_ones_are_left_out() -> None:
    assert reaching(record(), [("m", 3), ("m", 5)], [B, D], 60).tests == (B, A, C)
    choice = reaching(record(), [("m", 3), ("m", 5)], [], 10)
    assert (choice.tests, choice.left_out) == ((A, C), 1)


def test_a_test_that_failed_with_the_instruments_is_always_shown_what_it_sees() -> None:
    made = record()
    made.failed = {D, "t/c.py::text"}  # the second reaches nothing: it reads the modules' text
    assert reaching(made, [("m", 3)], [], 60).tests == (D, A, C)


def test_records_are_kept(tmp_path: Path) -> None:
    records = Records(tmp_path / "kept")
    assert records.get("x") is None
    records.put("x", record())
    again = Record()
    again.add(records.get("x") or {})
    assert again == record()
