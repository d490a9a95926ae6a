"""The benchmark of upgrades measures what it says: an invented release that changes two thirds of the functions."""

from __future__ import annotations

from tools.bench.upgrade import peers, triples, upgraded


def test_the_synthetic_release_and_the_peers(tmp_path, capsys):
    result, took = upgraded(tmp_path, 12)
    assert took > 0
    assert [result.count(s) for s in ("unchanged", "clean", "review")] == [4, 4, 4]
    changed = triples(result.entries)
    assert len(changed) == 8
    peers(changed, "the changed ones", took, 12)
    said = capsys.readouterr().out
    assert "git merge-file on the changed ones (8)" in said
    assert "patch on the changed ones (8)" in said
    assert "without a conflict 4" in said
