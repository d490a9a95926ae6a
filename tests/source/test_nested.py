"""Upstream text that is nested so deeply that parsers give up, or end the process that runs them."""

from __future__ import annotations

import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.source.text import load_source


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = " + "(" * 1_500 + "1" + ")" * 1_500, "too many nested parentheses"),
        ("x = " + "[" * 20_000 + "]" * 20_000, "too many nested parentheses"),
        ("x = " + "{" * 5_000, ""),
        ("x = " + "+".join(["1"] * 20_000), "nested too deeply"),
        ("x = " + "-" * 20_000 + "1", "nested too deeply"),
        ("x = a" + "()" * 20_000, "nested too deeply"),
        ("".join(" " * n + "if a:\n" for n in range(200)) + " " * 200 + "pass\n", "too many levels of indentation"),
    ],
)
def test_it_is_said_and_nothing_crashes(text, said):
    file = load_source(text.encode(), pin="acme", path="acme/engine.py")
    with pytest.raises(UpstreamError) as caught:
        _ = file.tree
    (found,) = caught.value.findings
    assert (found.code, caught.value.exit_code) == ("PK404", 3)
    assert said in found.message
