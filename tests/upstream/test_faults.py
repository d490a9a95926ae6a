"""An index, a server or a network that misbehaves: bounded time, bounded retries, a clear word at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from afd_patchkit.findings.errors import UpstreamError
from afd_patchkit.upstream import network, transfer
from afd_patchkit.upstream.base import Artifact
from afd_patchkit.upstream.resolve import SourceOptions
from afd_patchkit.upstream.transfer import Transfer
from tests.upstream.conftest import Open, code, everything
from tests.upstream.packages import FILES, digest, make_sdist, make_wheel
from tests.upstream.server import Index

WHEEL = "acme-1.0-py3-none-any.whl"
SDIST = "acme-1.0.tar.gz"
PAGE, WHEEL_PATH, SDIST_PATH = "/simple/acme/", f"/files/{WHEEL}", f"/files/{SDIST}"


@pytest.mark.parametrize("ranges", ["ignore", "refuse", "wrong", "long"])
def test_without_ranges_the_sdist(index: Index, open_acme: Open, ranges: str) -> None:
    index.ranges = ranges
    index.add(WHEEL, make_wheel())
    index.add(SDIST, make_sdist())
    upstream = open_acme()
    assert upstream.artifact.file == SDIST
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
    assert len(index.asked(WHEEL)) == 1
    assert upstream.stats.bytes < 100_000  # the ignored range did not bring the whole wheel


def test_without_ranges_and_sdist_the_whole_wheel(index: Index, open_acme: Open) -> None:
    index.ranges = "ignore"
    data = make_wheel()
    index.add(WHEEL, data)
    upstream = open_acme()
    assert upstream.artifact == Artifact("wheel", WHEEL, digest(data))
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
    assert [bool(seen.range) for seen in index.asked(WHEEL)] == [True, False]


def test_without_ranges_the_locked_wheel_whole(index: Index, open_acme: Open) -> None:
    index.ranges = "ignore"
    data = make_wheel()
    index.add(WHEEL, data)
    index.add(SDIST, make_sdist())
    upstream = open_acme(locked_artifact=Artifact("wheel", WHEEL, digest(data)))
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
    assert not index.asked(SDIST)


def test_ranges_end_between_opening_and_reading(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    upstream = open_acme()
    index.ranges = "ignore"
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]


def test_file_of_another_size_than_the_index_says(index: Index, open_acme: Open) -> None:
    index.ranges = "size"
    index.add(WHEEL, make_wheel())
    index.add(SDIST, make_sdist())
    with pytest.raises(UpstreamError, match="not the file the index describes") as error:
        open_acme()
    assert code(error) == "PK403"


@pytest.mark.parametrize("fault", ["truncate", "drop", "status:500", "status:503", "status:429", "status:502"])
@pytest.mark.parametrize("path", [PAGE, WHEEL_PATH, SDIST_PATH])
def test_passing_faults_are_retried(index: Index, open_acme: Open, path: str, fault: str) -> None:
    index.add(WHEEL, make_wheel()) if path != SDIST_PATH else index.add(SDIST, make_sdist())
    index.faults[path] = [fault, fault]
    upstream = open_acme()
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
    assert upstream.stats.requests == len(index.seen)
    assert not index.faults[path]


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        ("truncate", "3 tries"),
        ("drop", "3 tries"),
        ("status:500", "status 500 (3 tries)"),
        ("status:403", "credentials"),
    ],
)
def test_lasting_faults_end(index: Index, open_acme: Open, fault: str, word: str) -> None:
    index.add(SDIST, make_sdist())
    index.faults[SDIST_PATH] = [fault] * 9
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme()
    assert word in everything(error)
    assert len(index.asked(SDIST)) == (1 if fault == "status:403" else 3)


def test_truncated_range_while_reading(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    upstream = open_acme()
    index.faults[WHEEL_PATH] = ["truncate"] * 9
    with pytest.raises(UpstreamError, match=r"acme/engine\.py .* cannot be fetched") as error:
        upstream.read("acme.engine")
    assert code(error) == "PK408"
    index.faults.clear()
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]


def stalls(monkeypatch: pytest.MonkeyPatch, path: str, timeout: float = 0.2) -> None:
    """Requests of `path` have a short time-out: any other may take as long as a busy machine makes it."""

    class Patient(Transfer):
        def __init__(self, client: httpx.Client, url: str, headers: Mapping[str, str], **arguments: Any) -> None:
            if urlsplit(url).path == path:
                arguments["timeout"] = timeout
            super().__init__(client, url, headers, **arguments)

    monkeypatch.setattr(network, "Transfer", Patient)


@pytest.mark.parametrize("path", [PAGE, SDIST_PATH])
@pytest.mark.parametrize(
    ("fault", "word"),
    [
        ("stall", "no answer for 600 s (2 tries)"),
        ("trickle", "stalled after"),
        ("trickle:headers", "stalled after 0 bytes"),
        ("trickle:informational", "stalled after 0 bytes"),
        ("trickle:chunk-header", "stalled after"),
        ("trickle:packed", "stalled after"),
        ("trickle:redirect", "stalled after"),
    ],
)
def test_what_comes_too_slowly_is_given_up(
    index: Index, open_acme: Open, monkeypatch: pytest.MonkeyPatch, path: str, fault: str, word: str
) -> None:
    """Whatever trickles: no single read ever waits for long."""
    stalls(monkeypatch, path)
    monkeypatch.setattr(transfer, "_SLOWEST", 1e9)
    index.add(SDIST, make_sdist())
    index.faults[path] = [fault] * 9
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(retries=1)
    assert word in everything(error)
    assert "(2 tries)" in everything(error)
    while len(index.asked(path)) < 2:  # the server may read a request after its client has left
        time.sleep(0.01)
    assert len(index.asked(path)) == 2


class Told:
    """What somebody who waits was told; `one` is set when it was `awaited`."""

    def __init__(self, awaited: str) -> None:
        self.waits: list[str] = []
        self.over: list[str] = []
        self.awaited, self.one = awaited, threading.Event()

    def waiting(self, what: str) -> None:
        self.waits.append(what)
        if what == self.awaited:
            self.one.set()

    def arrived(self, what: str) -> None:
        self.over.append(what)


def test_what_is_waited_for_is_told(index: Index, open_acme: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server goes on when somebody was told of what stalls; on a slow machine one is told of other things before."""
    monkeypatch.setattr(transfer, "PATIENCE", 0.01)
    told = Told(f"{index.url}{SDIST_PATH} (try 2 of 3)")
    index.release = told.one
    index.add(SDIST, make_sdist())
    index.faults[SDIST_PATH] = ["status:503", "stall"]
    assert open_acme(waits=told).artifact.file == SDIST
    assert told.one.is_set()
    assert sorted(told.waits) == sorted(told.over)


def test_no_network(open_acme: Open) -> None:
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(index_urls=("http://127.0.0.1:9/simple",), retries=1)
    assert "http://127.0.0.1:9/simple/acme/" in everything(error)
    assert "--source acme=PATH" in everything(error)


def test_dead_index_is_asked_once_per_run(open_acme: Open, options: Callable[..., SourceOptions], index: Index) -> None:
    index.faults[PAGE] = ["status:500"] * 9
    index.add(WHEEL, make_wheel())
    shared = options(retries=1)
    for version in ("1.0", "2.0"):
        with pytest.raises(UpstreamError, match="PK401"):
            open_acme(given=shared, version=version)
    assert len(index.seen) == 2


def test_not_found(index: Index, open_acme: Open) -> None:
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme()
    assert "no such project" in everything(error)
    index.add("acme-0.9-py3-none-any.whl", make_wheel())
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme()
    assert "has no acme 1.0; newest: 0.9" in everything(error)


STATUSES = [300, 304, 400, 401, 403, 404, 405, 406, 410, 418, 451, 500, 501, 502, 503, 504, 505, 599]


@pytest.mark.parametrize("ranges", [f"status:{status}" for status in STATUSES] + ["truncate", "drop"])
@pytest.mark.parametrize("locked", [False, True])
def test_a_range_that_is_refused_or_cut_short_is_read_whole(
    index: Index, open_acme: Open, ranges: str, locked: bool
) -> None:
    index.ranges = ranges
    data = make_wheel()
    index.add(WHEEL, data)
    upstream = open_acme(locked_artifact=Artifact("wheel", WHEEL, digest(data)) if locked else None)
    assert upstream.artifact == Artifact("wheel", WHEEL, digest(data))
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
    assert [bool(seen.range) for seen in index.asked(WHEEL)][-2:] == [True, False]


@pytest.mark.parametrize("ranges", [*(f"status:{status}" for status in STATUSES), "ignore", "truncate"])
def test_ranges_that_end_after_the_table_was_read(index: Index, open_acme: Open, ranges: str) -> None:
    index.add(WHEEL, make_wheel())
    upstream = open_acme()
    index.ranges = ranges
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]


def test_one_file_without_ranges_says_nothing_of_others(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    index.add("other-1.0-py3-none-any.whl", make_wheel(name="other"), project="other")
    shared = None
    for project, gone in (("acme", True), ("other", False)):
        index.ranges = "status:403" if gone else "yes"
        upstream = open_acme(distribution=project, packages=("acme",), **({"given": shared} if shared else {}))
        shared = upstream.request.options
        assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
    assert all(seen.range for seen in index.asked("other-1.0"))


def test_file_not_found(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel())
    index.add(SDIST, make_sdist())
    index.faults[WHEEL_PATH] = ["status:404"]
    upstream = open_acme()
    assert upstream.artifact.file == SDIST
    assert len(index.asked(WHEEL)) == 1


@pytest.mark.parametrize(
    ("page", "word"),
    [
        ("not json", "not understood"),
        ("[]", "not understood"),
        ('{"name": "acme", "meta": {"api-version": "2.0"}, "files": []}', "version 2.0"),
        ('{"meta": {}, "files": [{"url": 3}]}', "not understood"),
        ('{"name": "acme", "meta": {"api-version": "1.0"}, "files": []}', "newest: none"),
    ],
)
def test_index_pages_that_are_none(index: Index, open_acme: Open, page: str, word: str) -> None:
    index.add(WHEEL, make_wheel())
    index.pages = page
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme()
    assert word in everything(error)


def test_redirects(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel(), url="/moved")
    index.redirects = {"/moved": "/again", "/again": WHEEL_PATH}
    upstream = open_acme()
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
    assert upstream.stats.requests == len(index.seen)


def test_endless_redirects(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel(), url="/loop")
    index.redirects = {"/loop": "/loop"}
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme()
    assert "more than 5 redirects" in everything(error)


def test_redirect_to_another_scheme(index: Index, open_acme: Open) -> None:
    index.add(WHEEL, make_wheel(), url="/out")
    index.redirects = {"/out": "file:///etc/passwd"}
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme()
    assert "refused redirect" in everything(error)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/x.whl"])
def test_files_that_are_not_on_http_do_not_exist(index: Index, open_acme: Open, url: str) -> None:
    index.add(WHEEL, make_wheel(), url=url)
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme()
    assert "newest: none" in everything(error)


# ---- credentials ----------------------------------------------------------------------------------------------


def with_user(index: Index, user: str) -> str:
    return index.simple.replace("http://", f"http://{user}@")


def test_credentials_in_the_address(index: Index, open_acme: Open) -> None:
    index.auth = "jane:s3cr:t@"
    index.add(WHEEL, make_wheel())
    upstream = open_acme(index_urls=(with_user(index, "jane:s3cr%3At%40"),))
    assert upstream.read("acme.engine").text == FILES["acme/engine.py"]


def test_credentials_from_netrc(
    index: Index, open_acme: Open, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.auth = "jane:s3cret"
    index.add(WHEEL, make_wheel())
    netrc = tmp_path_factory.mktemp("netrc") / "netrc"
    netrc.write_text("machine 127.0.0.1 login jane password s3cret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    assert open_acme().read("acme.engine").text == FILES["acme/engine.py"]


@pytest.mark.parametrize("fault", ["", "drop", "status:500"])
def test_credentials_are_never_shown(index: Index, open_acme: Open, fault: str) -> None:
    index.auth = "jane:right"
    index.add(WHEEL, make_wheel())
    index.faults[PAGE] = [fault] * 3 if fault else []
    with pytest.raises(UpstreamError, match="PK401") as error:
        open_acme(index_urls=(with_user(index, "jane:wr0ng"),))
    assert "wr0ng" not in everything(error)
    assert "jane" not in everything(error)


def test_credentials_stay_with_their_host(index: Index, open_acme: Open) -> None:
    from tests.upstream.server import Running

    with Running() as other:
        index.auth = "jane:right"
        data = make_wheel()
        index.add(WHEEL, data, url=f"{other.url}{WHEEL_PATH}")
        other.add(WHEEL, data)
        upstream = open_acme(index_urls=(with_user(index, "jane:right"),))
        assert upstream.read("acme.engine").text == FILES["acme/engine.py"]
        assert {seen.authorization for seen in other.seen} == {None}


def test_bad_proxy(index: Index, open_acme: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks9://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    index.add(WHEEL, make_wheel())
    with pytest.raises(UpstreamError, match="proxy") as error:
        open_acme(retries=0)
    assert code(error) in {"PK401", "PK410"}
