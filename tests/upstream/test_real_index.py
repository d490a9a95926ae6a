"""The pinned upstreams on the real package index."""

from __future__ import annotations

from pathlib import Path

import pytest

from afd_patchkit.model import Pin
from afd_patchkit.upstream.resolve import SourceOptions, evidence, open_upstream, pin_report

pytestmark = pytest.mark.upstream

COMMON = ("forward_context", "v1.worker.gpu_model_runner", "v1.worker.gpu_ubatch_wrapper", "v1.core.sched.scheduler",
          "v1.engine.core", "v1.worker.gpu.model_runner", "v1.worker.gpu.cudagraph_utils", "v1.worker.ubatching",
          "v1.worker.ubatch_utils", "config.vllm")  # fmt: skip
FACTS = {
    # wheel, its Python files, commit that _version.py names
    "0.26.0": ("adb1e4c9b46d0dfdb094121ae5aad670a42412dd813ed4e5db069ed6a15006de", 2234, "ffd46bfab"),
    "0.30.0": ("ef52ee58c410ead0b8afb190838fa4cbcb52075596f67862a03859d984966ac4", 2681, None),
}


def test_two_releases_cost_less_than_three_megabytes(tmp_path: Path) -> None:
    options = SourceOptions(cache_dir=tmp_path, search_path=())
    traffic = 0
    artifacts, locks = {}, {}
    for version, (sha256, files, commit) in FACTS.items():
        upstream = open_upstream("vllm", Pin(distribution="vllm", version=version), options)
        assert (upstream.artifact.source, upstream.artifact.sha256) == ("wheel", sha256)
        assert len(upstream.members()) == files
        sources = upstream.read_many([f"vllm.{module}" for module in COMMON])
        assert all(source.tree.body for source in sources.values())
        assert commit is None or evidence(upstream)["commit"] == commit
        report = pin_report(upstream)
        assert report.requests < 25
        traffic += report.bytes
        artifacts[version] = upstream.artifact
        locks[version] = {source.path: source.raw_sha256 for source in sources.values()}
    print(f"{traffic} bytes for {2 * len(COMMON)} files of two releases")
    assert traffic < 3_000_000

    for offline in (True, False):
        again = SourceOptions(cache_dir=tmp_path, search_path=(), offline=offline)
        for version, locked in locks.items():
            pin = Pin(distribution="vllm", version=version)
            upstream = open_upstream("vllm", pin, again, locked=locked, locked_artifact=artifacts[version])
            upstream.read_many([f"vllm.{module}" for module in COMMON])
            assert pin_report(upstream).requests == 0
