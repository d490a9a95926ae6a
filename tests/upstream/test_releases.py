"""Which releases are newer than the pin."""

from __future__ import annotations

import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.model import Pin
from afd_patchkit.upstream.releases import newer_releases
from tests.upstream.packages import make_sdist, make_wheel


@pytest.fixture
def offered(index):
    for version in ("0.9", "1.0", "1.10", "1.2", "2.0rc1", "1.11"):
        index.add(
            f"acme-{version}-py3-none-any.whl",
            make_wheel(version=version),
            yanked="broken" if version == "1.11" else False,
        )
    index.add("acme-1.3.tar.gz", make_sdist())
    return index


@pytest.mark.parametrize(
    ("pinned", "expected"),
    [
        ("1.0", ["1.2", "1.3", "1.10"]),
        ("1.10", []),
        ("1.2+local", ["1.3", "1.10"]),
        ("1.9.dev1", ["1.10", "2.0rc1"]),
        ("9", []),
    ],
)
def test_newer_releases(offered, options, pinned, expected):
    assert newer_releases("acme", Pin(distribution="acme", version=pinned), options()) == expected


@pytest.mark.parametrize(
    ("pin", "fields", "code"),
    [
        ({"version": "1.0"}, {"offline": True}, "PK406"),
        ({"version": "main"}, {}, "PK401"),
        ({"version": "1.0", "distribution": "nobody"}, {}, "PK401"),
        ({"version": "1.0"}, {"index_urls": ()}, "PK401"),
    ],
)
def test_what_cannot_be_known(offered, options, pin, fields, code):
    with pytest.raises(UpstreamError) as error:
        newer_releases("acme", Pin(**{"distribution": "acme", **pin}), options(**fields))
    assert error.value.findings[0].code == code
