"""The text of fences, in one spelling."""

from __future__ import annotations

import pytest

from afd_patchkit.fence import closing, delta_of, looks_like, numbered, opening, parsed


@pytest.mark.parametrize("marker", ["### PATCH", "@@ ours", "a.b*"])
def test_what_is_written_is_read(marker: str) -> None:
    assert parsed(f"    {opening('two halves', marker)}", marker) == ("START", "two halves")
    assert parsed(closing("two halves (1/2)", marker), marker) == ("END", "two halves (1/2)")
    assert parsed(opening("x", f"{marker}x"), marker) is None
    assert parsed("x = 1", marker) is None
    assert looks_like(f"#{marker} START", marker)
    assert not looks_like("# START", marker)


def test_numbers_of_fences() -> None:
    assert (numbered("a", 1, 1), numbered("a", 2, 3)) == ("a", "a (2/3)")
    assert (delta_of("a (2/3)"), delta_of("a (b)"), delta_of("a")) == ("a", "a (b)", "a")
