"""Wheels and sdists of a package index that behaves."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.resolve import SourceOptions, pin_report
from tests.upstream.conftest import Open, code, everything
from tests.upstream.packages import FILES, PADDING, digest, make_sdist, make_wheel, record_row
from tests.upstream.server import Index

WHEEL = "acme-1.0-py3-none-any.whl"
SDIST = "acme-1.0.tar.gz"


class Bars:
    """A progress callback that writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int | None]] = []

    def start(self, total: int | None) -> None:
        self.calls.append(("start", total))

    def advance(self, n: int) -> None:
        self.calls.append(("advance", n))

    def done(self) -> None:
        self.calls.append(("done", None))

    @property
    def advanced(self) -> int:
        return sum(n or 0 for what, n in self.calls if what == "advance")


def test_wheel_by_range(index: Index, open_acme: Open) -> None:
    data = make_wheel()
    index.add(WHEEL, data)
    index.add(SDIST, make_sdist())
    upstream = open_acme()
    assert upstream.artifact == Artifact("wheel", WHEEL, digest(data))
    assert set(upstream.modules()) == {"acme", "acme._version", "acme.engine", "acme.deep", "acme.deep.runner"}
    source = upstream.read("acme.engine")
    assert source.text == FILES["acme/engine.py"]
    assert (source.path, source.raw_sha256) == ("acme/engine.py", digest(FILES["acme/engine.py"]))
    assert upstream.read("acme.deep").path == "acme/deep/__init__.py"
    runner = upstream.read("acme.deep.runner")
    assert (runner.eol, runner.raw_sha256) == ("CRLF", digest(FILES["acme/deep/runner.py"]))
    assert upstream.stats.bytes < 40_000 < len(PADDING)
    assert not index.asked(SDIST)
    assert all(seen.range for seen in index.asked(WHEEL))
    report = pin_report(upstream)
    assert (report.source, report.file, report.files) == ("wheel", WHEEL, 3)
    assert (report.bytes, report.requests) == (upstream.stats.bytes, len(index.seen))


def test_neighbours_come_in_one_request(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    upstream = open_acme()
    before = len(index.seen)
    found = upstream.read_many(["acme.engine", "acme.deep", "acme.deep.runner", "acme.engine"])
    assert [f.module for f in found.values()] == ["acme.engine", "acme.deep", "acme.deep.runner"]
    assert len(index.seen) == before + 1
    assert found["acme.engine"] is upstream.read("acme.engine")


def test_distant_members_come_in_parallel_requests(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    upstream = open_acme()
    before = len(index.seen)
    upstream.read_many(["acme", "acme.deep.runner"])
    assert len(index.seen) == before + 2
    assert upstream.stats.bytes < 40_000


def test_package_files(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    expected = {path: text.encode() for path, text in FILES.items()}
    upstream = open_acme()
    assert dict(upstream.package_files()) == expected
    assert [path for path, _ in upstream.package_files("/__init__.py")] == ["acme/__init__.py", "acme/deep/__init__.py"]


def test_small_wheel_is_read_whole(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel(padding=False))
    upstream = open_acme()
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
    assert [seen.range for seen in index.asked(WHEEL)] == [None]


def test_size_not_given(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel(), size=False)
    upstream = open_acme()
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
    assert index.asked(WHEEL)[0].range == "bytes=0-0"


def test_data_folder_of_a_wheel(index: Index, open_acme: Open) -> None:
    files = {
        "acme/__init__.py": "",
        "acme-1.0.data/purelib/acme/pure.py": "P = 1\n",
        "acme-1.0.data/scripts/run.py": "S\n",
    }
    index.add(WHEEL, make_wheel(files))
    upstream = open_acme()
    assert set(upstream.modules()) == {"acme", "acme.pure"}
    assert upstream.read("acme.pure").text == "P = 1\n"


def test_packages_narrow_a_wheel(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel({"acme/__init__.py": "", "other/__init__.py": "", "single.py": ""}))
    assert set(open_acme().modules()) == {"acme", "other", "single"}
    assert set(open_acme(packages=("single", "acme")).modules()) == {"acme", "single"}


@pytest.mark.parametrize("algorithm", ["sha384", "sha512"])
def test_stronger_digests_in_record(index: Index, open_acme: Open, algorithm: str) -> None:
    index.add(WHEEL, make_wheel(algorithm=algorithm))
    assert open_acme().read("acme.engine").text == FILES["acme/engine.py"]
    again = open_acme()
    assert again.read("acme.engine").text == FILES["acme/engine.py"]
    assert again.stats.requests == 1  # the page


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["acme-1.0-py3-none-any.whl", "acme-1.0-cp310-abi3-manylinux_2_28_x86_64.whl"], 0),
        (["acme-1.0-cp310-abi3-win_amd64.whl", "acme-1.0-cp310-abi3-manylinux_2_28_x86_64.whl"], 1),
        (["acme-1.0-cp310-abi3-manylinux_2_28_aarch64.whl", "acme-1.0-cp310-abi3-manylinux_2_28_x86_64.whl"], 1),
        (["acme-1.0-cp311-cp311-manylinux_2_28_x86_64.whl", "acme-1.0-cp310-cp310-manylinux_2_28_x86_64.whl"], 1),
        (["acme-1.0-cp310-abi3-win_amd64.whl", "acme-1.0-cp310-abi3-macosx_11_0_arm64.whl"], 1),
        (["acme-1.0.post1-py3-none-any.whl", "acme-1.0-cp310-abi3-win_amd64.whl"], 1),
        (["acme-1.0+cpu-py3-none-any.whl", "acme-1.0-cp310-abi3-win_amd64.whl"], 1),
        (["not_a_wheel.whl", "acme-1.0-cp310-abi3-win_amd64.whl"], 1),
        (["other-1.0-py3-none-any.whl", "acme-1.0-cp310-abi3-win_amd64.whl"], 1),
        (["acme-1-py3-none-any.whl", "acme-2.0-py3-none-any.whl"], 0),
    ],
)
def test_choice_of_the_wheel(index: Index, open_acme: Open, names: list[str], chosen: int) -> None:
    for name in names:
        index.add(name, make_wheel(padding=False))
    assert open_acme().artifact.file == names[chosen]


def test_locked_artifact_is_the_only_choice(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel(padding=False))
    sdist = make_sdist()
    index.add(SDIST, sdist)
    upstream = open_acme(locked_artifact=Artifact("sdist", SDIST, digest(sdist)))
    assert upstream.artifact.file == SDIST
    assert not index.asked(WHEEL)


def test_sdist(index: Index, open_acme: Open) -> None:
    data = make_sdist(below="src/")
    index.add(SDIST, data)
    bars = Bars()
    upstream = open_acme(progress=bars)
    assert upstream.artifact == Artifact("sdist", SDIST, digest(data))
    assert set(upstream.modules()) == {"acme", "acme._version", "acme.engine", "acme.deep", "acme.deep.runner"}
    assert upstream.read("acme.engine").path == "acme/engine.py"
    assert bars.calls[0] == ("start", len(data))
    assert bars.calls[-1] == ("done", None)
    assert bars.advanced == len(data)


def test_yanked(index: Index, open_acme: Open) -> None:
    index.add("acme-1.0-cp310-abi3-win_amd64.whl", make_wheel(padding=False))
    index.add(WHEEL, make_wheel(padding=False), yanked="broken on Tuesdays")
    assert open_acme().artifact.file == "acme-1.0-cp310-abi3-win_amd64.whl"  # the other one was yanked
    index.files["acme"].pop(0)
    upstream = open_acme()
    assert upstream.artifact.file == WHEEL
    (note,) = upstream.notes
    assert note.code == "PK640"
    assert "broken on Tuesdays" in note.message
    assert note.exit_code == 0


@pytest.mark.parametrize("yanked", [False, "why"])
def test_html_only(index: Index, open_acme: Open, yanked: str | bool) -> None:
    index.pages = "html"
    data = make_wheel()
    index.add(WHEEL, data, yanked=yanked)
    upstream = open_acme()
    assert upstream.artifact.sha256 == digest(data)
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
    assert len(upstream.notes) == bool(yanked)


def test_second_pin_asks_for_no_second_page(
    index: Index, open_acme: Open, options: Callable[..., SourceOptions]
) -> None:
    index.add(WHEEL, make_wheel(padding=False))
    index.add("acme-2.0-py3-none-any.whl", make_wheel(version="2.0", padding=False))
    shared = options()
    open_acme(given=shared)
    second = open_acme(given=shared, version="2.0")
    assert len(index.asked("/simple/")) == 1
    assert second.stats.requests == 1


def test_next_index_when_the_first_has_no_such_release(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel(padding=False))
    upstream = open_acme(index_urls=(f"{index.url}/nothing-here", index.simple))
    assert upstream.artifact.file == WHEEL
    with pytest.raises(UpstreamError, match="PK401"):
        open_acme(index_urls=("http://127.0.0.1:9/simple", index.simple), retries=0)  # down is not the same as empty


# ---- cache ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["wheel", "small wheel", "sdist"])
def test_locked_and_cached_needs_no_network(index: Index, open_acme: Open, kind: str) -> None:
    data = make_sdist() if kind == "sdist" else make_wheel(padding=kind == "wheel")
    index.add(SDIST if kind == "sdist" else WHEEL, data)
    first = open_acme()
    first.read("acme.engine")
    seen = len(index.seen)
    locked = {"acme/engine.py": first.read("acme.engine").raw_sha256}
    again = open_acme(locked=locked, locked_artifact=first.artifact)
    assert again.read("acme.engine").text == FILES["acme/engine.py"]
    assert "acme.deep" in again.modules()
    assert len(index.seen) == seen
    report = pin_report(again)
    assert (report.source, report.bytes, report.requests, report.files) == ("cache", 0, 0, 1)
    assert again.artifact == first.artifact


def test_locked_and_cached_fetches_only_what_is_new(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    first = open_acme()
    first.read("acme.engine")
    seen = len(index.seen)
    again = open_acme(locked_artifact=first.artifact)
    assert again.read("acme.engine").text == FILES["acme/engine.py"]
    assert len(index.seen) == seen
    assert again.read("acme").text == FILES["acme/__init__.py"]
    assert [s.path for s in index.seen[seen:]] == ["/simple/acme/", f"/files/{WHEEL}"]
    assert pin_report(again).source == "wheel"


def test_offline_after_one_run(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    open_acme().read("acme.engine")
    seen = len(index.seen)
    for locks in ({}, {"locked_artifact": open_acme(offline=True).artifact}):
        upstream = open_acme(offline=True, **locks)
        assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
        assert len(upstream.modules()) == 5
        with pytest.raises(UpstreamError, match=r"acme/__init__\.py .* not in the cache") as error:
            upstream.read("acme")
        assert code(error) == "PK406"
    assert len(index.seen) == seen


def test_offline_with_an_empty_cache(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    with pytest.raises(UpstreamError, match="with --offline") as error:
        open_acme(offline=True)
    assert code(error) == "PK401"
    assert "--source acme=PATH" in everything(error)
    assert not index.seen


def blobs(cache: Path) -> list[Path]:
    return [path for path in (cache / "v1" / "blobs").rglob("*") if path.is_file()]


def test_corrupted_blob_is_fetched_again(index: Index, open_acme: Open, tmp_path: Path) -> None:
    index.add(WHEEL, make_wheel())
    first = open_acme()
    first.read("acme.engine")
    (blob,) = blobs(tmp_path / "cache")
    blob.write_bytes(b"class Engine: evil = True\n")
    locked = {"acme/engine.py": digest(FILES["acme/engine.py"])}
    again = open_acme(locked=locked, locked_artifact=first.artifact)
    assert again.read("acme.engine").text == FILES["acme/engine.py"]
    assert again.stats.requests > 0
    assert blob.read_text() == FILES["acme/engine.py"]
    blob.write_bytes(b"")
    with pytest.raises(UpstreamError) as error:
        open_acme(offline=True).read("acme.engine")
    assert code(error) == "PK406"
    assert not blob.exists()


@pytest.mark.parametrize("damage", [b"", b"{}", b"0\n{}", b"\xff" * 40])
def test_corrupted_member_table_is_built_again(index: Index, open_acme: Open, tmp_path: Path, damage: bytes) -> None:
    index.add(WHEEL, make_wheel())
    first = open_acme()
    first.read("acme.engine")
    (table,) = (tmp_path / "cache" / "v1" / "members").iterdir()
    good = table.read_bytes()
    table.write_bytes(damage)
    again = open_acme(locked_artifact=first.artifact)
    assert again.read("acme.engine").text == FILES["acme/engine.py"]
    assert table.read_bytes() == good
    table.write_bytes(damage)
    with pytest.raises(UpstreamError) as error:
        open_acme(locked_artifact=first.artifact, offline=True).read("acme.engine")
    assert code(error) == "PK406"


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_read_only_cache(index: Index, open_acme: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add(WHEEL, make_wheel())
    index.add("acme-2.0.tar.gz", make_sdist(version="2.0"))
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
    if os.geteuid() == 0:  # root writes anywhere: refuse it in its name

        def refuse(*args: object, **kwargs: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "makedirs", refuse)
        monkeypatch.setattr(Path, "mkdir", refuse)
    assert open_acme().read("acme.engine").text == FILES["acme/engine.py"]
    assert open_acme(version="2.0").read("acme.engine").text == FILES["acme/engine.py"]
    assert not list(cache.iterdir())


def test_cache_folder_is_a_file(index: Index, open_acme: Open, tmp_path: Path) -> None:
    index.add(SDIST, make_sdist())
    (tmp_path / "cache").write_text("in the way")
    assert open_acme().read("acme.engine").text == FILES["acme/engine.py"]


PROGRAM = """
import sys
from pathlib import Path
from afd_patchkit.model import Pin
from afd_patchkit.upstream.resolve import SourceOptions, open_upstream
url, cache, version = sys.argv[1:]
options = SourceOptions(index_urls=(url,), cache_dir=Path(cache), search_path=())
upstream = open_upstream("acme", Pin(distribution="acme", version=version), options)
for module in sorted(upstream.modules()):
    print(module, upstream.read(module).raw_sha256)
"""


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_parallel_processes_share_a_cache(index: Index, tmp_path: Path, root: Path, version: str) -> None:
    index.add(WHEEL, make_wheel())
    index.add("acme-2.0.tar.gz", make_sdist(version="2.0"))
    command = [sys.executable, "-c", PROGRAM, index.simple, str(tmp_path / "cache"), version]
    running = [
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    results = [(*process.communicate(timeout=600), process.returncode) for process in running]
    assert [(error, status) for _, error, status in results] == [("", 0)] * 4
    assert len({out for out, *_ in results}) == 1
    assert f"acme.engine {digest(FILES['acme/engine.py'])}" in results[0][0]
    if version == "2.0":
        assert len(index.asked("acme-2.0.tar.gz")) == 1  # one process downloads, the others wait
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.name.startswith(".tmp")]


def test_no_room_for_a_download(index: Index, open_acme: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    from afd_patchkit.upstream.network import Network

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    index.add(SDIST, make_sdist())
    monkeypatch.setattr(Network, "download", full)
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme()
    assert "No space left on device" in everything(error)


# ---- verification ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("padding", [True, False])
def test_wrong_record(index: Index, open_acme: Open, padding: bool) -> None:
    rows = {"acme/engine.py": record_row("acme/engine.py", b"something else")}
    index.add(WHEEL, make_wheel(rows=rows, padding=padding))
    index.add(SDIST, make_sdist())
    with pytest.raises(UpstreamError, match=r"acme/engine\.py .* not the file its RECORD describes") as error:
        open_acme().read("acme.engine")
    assert code(error) == "PK403"
    assert not index.asked(SDIST)


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ({"acme/engine.py": None}, "no usable digest"),
        ({"acme/engine.py": "acme/engine.py,,"}, "no usable digest"),
        ({"acme/engine.py": "acme/engine.py,md5=AAAA,3"}, "no usable digest"),
        ({"acme/engine.py": "acme/engine.py,sha256=A,3"}, "broken digest"),
        ({"x": record_row("acme/engine.py", b"other")}, "two digests"),
    ],
)
def test_unusable_record(index: Index, open_acme: Open, rows: dict[str, str | None], word: str) -> None:
    index.add(WHEEL, make_wheel(rows=rows))
    with pytest.raises(UpstreamError, match=word) as error:
        open_acme()
    assert code(error) == "PK403"


@pytest.mark.parametrize(("filename", "make"), [(WHEEL, lambda: make_wheel(padding=False)), (SDIST, make_sdist)])
def test_broken_index_hash(
    index: Index, open_acme: Open, filename: str, make: Callable[[], bytes], tmp_path: Path
) -> None:
    index.add(filename, make(), sha256="0" * 64)
    with pytest.raises(UpstreamError, match="not the file the index describes") as error:
        open_acme()
    assert code(error) == "PK403"
    assert not (tmp_path / "cache" / "v1" / "blobs").exists()


@pytest.mark.parametrize("sha256", [None, "not a digest"])
def test_index_without_usable_hash(index: Index, open_acme: Open, sha256: str | None) -> None:
    data = make_wheel(padding=False)
    index.add(WHEEL, data, sha256=sha256)
    with pytest.raises(UpstreamError, match="gives no sha256") as error:
        open_acme()
    assert code(error) == "PK403"
    assert (
        open_acme(locked_artifact=Artifact("wheel", WHEEL, digest(data))).read("acme").text == FILES["acme/__init__.py"]
    )


def test_locked_digest_differs(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    upstream = open_acme(locked={"acme/engine.py": "0" * 64})
    assert upstream.read("acme").text == FILES["acme/__init__.py"]
    with pytest.raises(UpstreamError, match=r"acme/engine\.py .* not the locked file") as error:
        upstream.read("acme.engine")
    assert code(error) == "PK402"
    assert digest(FILES["acme/engine.py"]) in everything(error)


def test_locked_file_is_gone(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    with pytest.raises(UpstreamError, match="that the lock names") as error:
        open_acme(locked={"acme/gone.py": "0" * 64}).read("acme.gone")
    assert code(error) == "PK405"


def test_index_changed_the_locked_artifact(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    with pytest.raises(UpstreamError, match="other content than the locked one") as error:
        open_acme(locked_artifact=Artifact("wheel", WHEEL, "1" * 64))
    assert code(error) == "PK402"


def test_locked_artifact_is_not_offered_any_more(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(locked_artifact=Artifact("sdist", SDIST, "1" * 64))
    assert "not offered any more" in everything(error)


@pytest.mark.parametrize(("name", "version"), [("acme", "1.1"), ("other", "1.0")])
def test_artifact_of_another_release_under_a_right_name(index: Index, open_acme: Open, name: str, version: str) -> None:
    index.add(WHEEL, make_wheel(name=name, version=version))
    with pytest.raises(UpstreamError, match="is pinned") as error:
        open_acme()
    assert code(error) == "PK402"
    index.files.clear()
    index.add(SDIST, make_sdist(name=name, version=version))
    with pytest.raises(UpstreamError, match="is pinned") as error:
        open_acme()
    assert code(error) == "PK402"


def test_no_such_module(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    with pytest.raises(UpstreamError, match=r"no module acme\.engin") as error:
        open_acme().read("acme.engin")
    assert (code(error), error.value.exit_code) == ("PK205", 1)
    assert "near: acme.engine" in everything(error)
    with pytest.raises(UpstreamError, match=r"no file acme/x\.py"):
        open_acme().read_bytes("acme/x.py")


def test_evil_wheel_is_not_replaced_by_the_sdist(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel({"acme/__init__.py": "", "../evil.py": "x"}))
    index.add(SDIST, make_sdist())
    with pytest.raises(UpstreamError, match="leaves the archive") as error:
        open_acme()
    assert code(error) == "PK407"
    assert not index.asked(SDIST)
