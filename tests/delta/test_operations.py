"""Every operation, by the tables in `operations/`."""

from __future__ import annotations

import shlex

import pytest

from tests.delta import tables
from tests.delta.deltas import apply


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.table}: {case.id}") for case in tables.tables()])
def test_operations(case, request):
    applied = apply(case.upstream, case.deltas, symbol=case.symbol, donors=case.donors)
    notes = tuple(found.code for found in applied.findings)
    if request.config.getoption("--rewrite"):
        tables.rewrite(case, applied.buffer.text, notes)
        return
    command = f"python -m pytest --rewrite {shlex.quote(request.node.nodeid)}"
    assert (applied.buffer.text, notes) == (case.output, case.notes), f"if this is right now: {command}"


def test_the_tables_are_as_they_would_be_written():
    names = [(case.table, case.id) for case in tables.tables()]
    assert len(set(names)) == len(names)
    for path in tables.FOLDER.iterdir():
        assert path.read_bytes().decode() == tables.show(tables.read(path)), path.name
