from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from afd_patchkit.runtime.gate import is_release, parsed

TABLE = [
    ("0.26.0", True),
    ("0.26.0rc1", False),
    ("0.26.0.post1", False),
    ("0.26.0+cpu", True),
    ("0.26.0+das.opt1.dtk2604", True),
    ("0.26.0.dev5+gabc", False),
    ("0.26.0.1", False),
    ("0.26.01", False),
    ("0.26.1.dev3+g1", False),
    ("0.27.0.dev12+gabc", False),
    ("0.33.0.dev1", False),
    ("0.1.dev8666+g0e3", False),
    ("v0.26.0", True),
    ("0.26", True),
    ("1!0.26.0", False),
    ("0.260.0", False),
]
"""Table H of the cases: found, and whether it is 0.26.0."""


@pytest.mark.parametrize(("found", "expected"), TABLE)
def test_what_counts_as_the_pinned_release(found, expected):
    assert is_release(found, "0.26.0") is expected
    assert is_release(found, "0.26.0") is (Version(found) in SpecifierSet("==0.26.0", prereleases=True))


@pytest.mark.parametrize(
    ("found", "pinned", "expected"),
    [
        ("0.19.1rc2.dev1304+g80d8c194f", "0.19.1rc2.dev1304+g80d8c194f", True),
        ("0.19.1rc2.dev1304+g80d8c194f.d20261130", "0.19.1rc2.dev1304+g80d8c194f", False),
        ("1.0-1", "1.0.post1", True),
        ("1.0.Alpha.2", "1a2", True),
        ("1.0+ABC-01", "1.0+abc.1", True),
        ("unknown", "1.0", False),
        ("", "1.0", False),
        ("1.0\n2", "1.0", False),
    ],
)
def test_spelling_and_local_versions(found, pinned, expected):
    assert is_release(found, pinned) is expected


numbers = st.integers(0, 3).map(str)
optional = lambda s: st.one_of(st.just(""), s)  # noqa: E731
versions = st.builds(
    "".join,
    st.tuples(
        optional(st.sampled_from(["v", " "])),
        optional(numbers.map(lambda n: n + "!")),
        st.lists(numbers, min_size=1, max_size=3).map(".".join),
        optional(
            st.tuples(
                st.sampled_from(["a", ".b", "-c", "rc", "_preview", "ALPHA"]),
                optional(st.sampled_from([".", "-"])),
                optional(numbers),
            ).map("".join)
        ),
        optional(st.tuples(st.sampled_from(["-", ".post", "post", "-r", ".rev."]), numbers).map("".join)),
        optional(st.tuples(st.sampled_from([".dev", "dev", "-dev"]), optional(numbers)).map("".join)),
        optional(st.lists(st.sampled_from(["a", "01", "1", "B2"]), min_size=1, max_size=2).map(lambda p: "+" + "-".join(p))),
    ),
)  # fmt: skip


@given(versions, versions)
def test_as_packaging_says(found, pinned):
    wanted = SpecifierSet(f"=={Version(pinned)}", prereleases=True)
    assert is_release(found, pinned) is wanted.contains(Version(found))


@given(versions)
def test_every_version_is_read(version):
    assert parsed(version) is not None
    assert is_release(str(Version(version)), version)
