"""The benchmark of upgrades measures what it says: an invented release that changes two thirds of the functions."""

from __future__ import annotations

from tools.bench.upgrade import peers, triples, upgraded


def test_the_synthetic_release_and_the_peers(tmp_path, capsys):
    result, took = upgraded(tmp_path, 12)
    assert took.wall > 0
    assert [result.count(s) for s in ("unchanged", "clean", "review")] == [4, 4, 4]
    changed = triples(result.entries)
    assert len(changed) == 8
    peers(changed, "the changed ones", took)
    said = capsys.readouterr().out
    assert "git merge-file on the changed ones" in said
    assert "ours / patch" in said
    assert said.count("4 of 8 without a conflict") == 2
