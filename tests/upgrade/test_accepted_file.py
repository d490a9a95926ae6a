"""accepted.json is read as its models say, and an error names what is wrong in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.project import Project, load_project
from afd_patchkit.upgrade.accepted import Acceptance, dumps, load, path_of

ONE = Acceptance("m.py::f", "", "PK511", "acme", "b", "n", "2.0", "read it")
ROW = '"entry": "e", "code": "c", "pin": "p", "base": "b", "new": "n", "target": "t"'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "afd-patchkit.toml").write_text("")
    (tmp_path / "manifests").mkdir()
    return load_project(tmp_path)


def test_what_is_written_is_read(project: Project) -> None:
    assert load(project) == ()
    path_of(project).write_bytes(dumps([ONE]))
    assert load(project) == (ONE,)


@pytest.mark.parametrize(
    ("text", "said", "place"),
    [
        ("[1,\n2", "EOF while parsing a list", (2, 1)),
        ("[]", "an object", (0, 0)),
        ('{"schema": 2, "accepted": []}', "`schema`: input should be 1", (0, 0)),
        ('{"schema": 1}', "`accepted`: field required", (0, 0)),
        ('{"schema": 1, "accepted": [3]}', "`accepted.0`: ", (0, 0)),
        (f'{{"schema": 1, "accepted": [{{{ROW}}}]}}', "`accepted.0.why`: field required", (0, 0)),
        (
            f'{{"schema": 1, "accepted": [{{{ROW}, "why": 3}}]}}',
            "`accepted.0.why`: input should be a valid string",
            (0, 0),
        ),
        (f'{{"schema": 1, "accepted": [{{{ROW}, "why": "w", "by": "me"}}]}}', "`accepted.0.by`: ", (0, 0)),
    ],
)
def test_errors_name_the_place(project: Project, text: str, said: str, place: Any) -> None:
    path_of(project).write_text(text)
    with pytest.raises(ManifestError) as caught:
        load(project)
    (finding,) = caught.value.findings
    assert finding.code == "PK097"
    assert said in finding.message
    assert (finding.manifest.line, finding.manifest.column) == place


def test_all_errors_come_together(project: Project) -> None:
    path_of(project).write_text('{"schema": 1, "accepted": [{"entry": 3}]}')
    with pytest.raises(ManifestError) as caught:
        load(project)
    assert len(caught.value.findings[0].details) == 6
