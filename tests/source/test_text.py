"""Upstream files as text: what is decoded, what is parsed, and what is refused as an error of the upstream."""

from __future__ import annotations

import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.source import text
from afd_patchkit.source.text import load_source, too_long


@pytest.mark.parametrize(
    "raw",
    [
        b"# coding: idna\n.xn--9999.",
        b"# coding: punycode\nx = '\xff-'\n",
        b"# coding: utf-7\nx = '+2AA-'\n",
        b"# coding: unicode_escape\nx = '\\ud800'\n",
        b"# coding: rot13\nx = 1\n",
        b"# coding: nonesuch\nx = 1\n",
        b"# coding: hex\nx = 1\n",
        b"x = '\xff'\n",
        b"x = '\0'\n",
    ],
)
def test_bytes_that_are_no_text_of_their_encoding(raw):
    with pytest.raises(UpstreamError) as caught:
        load_source(raw, pin="acme", path="acme/m.py")
    assert [f.code for f in caught.value.findings] == ["PK404"]


def test_a_file_that_is_absurdly_long_is_not_parsed(monkeypatch):
    monkeypatch.setattr(text, "LONGEST", 100)
    file = load_source(b"a\n" * 101, pin="acme", path="acme/m.py")
    with pytest.raises(UpstreamError, match="more than 100 words"):
        _ = file.tree
    assert load_source(b"a\n" * 100, pin="acme", path="acme/m.py").tree.body
    assert not too_long(b"# " + b"-" * 10_000)
    assert too_long(b"[" * 101)
