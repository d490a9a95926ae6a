"""Upgrades of deltas on elements, appended and renamed arguments, and nested headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from .world import World, codes

ENGINE = """
def f(self, batch):
    size = len(batch)

    def inner(a, *, b=1):
        return a

    out, done = self.run(batch, size, rank=1)
    self.check(out)
    return out, done
"""
RETURNED = "- name: ours\n  elements: {of: 'return out, ...', add: 'size'}\n"
UNPACKED = "- name: ours\n  elements: {of: 'out, done = self.run(...)', add: '_'}\n"
APPENDED = "- name: ours\n  call: {match: 'self.run(...)', append: ['1']}\n"
RENAMED = "- name: ours\n  call: {match: 'self.run(...)', rename: {rank: rnk}}\n"
NESTED = "- name: ours\n  parameter: {add: 'c=2'}\n  within: 'def inner(...): ...'\n"
RETYPED = "- name: ours\n  elements: {of: 'return out, ...', replace: 'done'}\n  with: 'bool(__upstream__)'\n"

CASES = {
    "changed elsewhere": (RETURNED, "b=1", "b=2", "clean", set()),
    "another element": (RETURNED, "return out, done", "return out, done, size", "review", {"PK510", "PK523", "PK532"}),
    "an element of the target": (UNPACKED, "out, done =", "out, done, more =", "conflict", {"PK521"}),
    "no tuple any more": (RETURNED, "return out, done", "return Result(out, done)", "conflict", {"PK521", "PK532"}),
    "the element is gone": (RETYPED, "return out, done", "return out, size", "conflict", {"PK521"}),
    "a position more": (APPENDED, "batch, size, rank", "batch, size, out, rank", "review", {"PK519"}),
    "a keyword more": (APPENDED, "rank=1", "rank=1, fast=True", "clean", set()),
    "two stars": (RENAMED, "rank=1", "rank=1, **self.more", "review", {"PK519"}),
    "the keyword is gone": (RENAMED, ", rank=1", "", "conflict", {"PK521"}),
    "renamed upstream, too": (RENAMED, "rank=1", "rnk=1", "absorbed", {"PK522"}),
    "the nested function has it": (NESTED, "b=1):", "b=1, c=2):", "conflict", {"PK518"}),
    "the nested function is gone": (NESTED, "    def inner(a, *, b=1):\n        return a\n", "", "conflict", {"PK521"}),
    "a parameter of the nested function": (NESTED, "inner(a,", "inner(a, d,", "review", {"PK510"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_upgrade(tmp_path: Path, name: str) -> None:
    world = World(tmp_path)
    deltas, was, now, status, expected = CASES[name]
    assert was in ENGINE
    world.release("1.0", {"engine": ENGINE})
    world.release("2.0", {"engine": ENGINE.replace(was, now)})
    world.deltas(deltas)
    assert world.regen(full=True).findings == ()
    (entry,) = world.upgrade().entries
    assert (entry.status, codes(entry)) == (status, expected), [f.message for d in entry.deltas for f in d.reasons]
