"""Who holds a symbol by name."""

from __future__ import annotations

import pytest

from afd_patchkit.manifest.model import Pin
from afd_patchkit.rebase.aliases import alias_sites
from afd_patchkit.upstream.base import MemoryUpstream
from afd_patchkit.upstream.resolve import open_upstream
from afd_patchkit.upstream.settings import SourceOptions

FILES = {
    "pkg/__init__.py": "from pkg.a import f\n",
    "pkg/a.py": "def f(): ...\nclass C: ...\n",
    "pkg/b.py": "from .a import f\n",
    "pkg/c.py": "import os\nfrom pkg.a import (\n    C,\n    f as g,\n)\n",
    "pkg/d.py": "def late():\n    from .a import f\n    return f\n",
    "pkg/e.py": "from .a import *\n",
    "pkg/h.py": "try:\n    from pkg.a import f\nexcept ImportError:\n    f = None\n",
    "pkg/i.py": "from pkg import f\nfrom pkg.other import f as other\n",
    "pkg/sub/__init__.py": "",
    "pkg/sub/j.py": "class K:\n    from ..a import f\n",
    "pkg/broken.py": "from pkg.a import f\ndef :\n",
    "pkg/text.py": '"""\nfrom pkg.a import f\n"""\n',
    "pkg2/other.py": "from pkg.a import f\n",
}


def sites(**more: bool) -> list[tuple[str, str, str, int]]:
    found = alias_sites(MemoryUpstream(FILES), "pkg.a:f", **more)
    return [(s.module, s.name, s.kind, s.place.line) for s in found]


def test_static_local_and_star() -> None:
    assert sites() == [
        ("pkg", "f", "static", 1),
        ("pkg.b", "f", "static", 1),
        ("pkg.c", "g", "static", 2),
        ("pkg.d", "f", "local", 2),
        ("pkg.e", "", "star", 1),
        ("pkg.h", "f", "static", 2),
        ("pkg.sub.j", "f", "static", 2),
    ]


def test_reexports_are_followed_when_asked_for() -> None:
    assert [s for s in sites(reexports=True) if s not in sites()] == [("pkg.i", "f", "static", 1)]


def test_methods_are_held_with_their_class() -> None:
    found = alias_sites(MemoryUpstream(FILES), "pkg.a:C.method")
    assert [(s.module, s.kind) for s in found] == [("pkg.c", "static"), ("pkg.e", "star")]


FACTS = {
    # static and local sites together, 0.26.0 and 0.33.0
    "forward_context:set_forward_context": (16, 19),
    "forward_context:get_forward_context": (58, 128),
    "v1.engine.utils:launch_core_engines": (2, 2),
    "v1.core.kv_cache_utils:resolve_kv_cache_block_sizes": (5, 7),
    "v1.core.kv_cache_coordinator:get_kv_cache_coordinator": (2, 3),
    "v1.executor.multiproc_executor:MultiprocExecutor": (3, 3),
    "v1.worker.gpu.sample.gumbel:gumbel_sample": (3, 4),
    "distributed.parallel_state:GroupCoordinator": (4, 10),
    "v1.core.single_type_kv_cache_manager:MambaManager": (0, 2),
    "model_executor.layers.fused_moe:FusedMoE": (46, 0),
}


@pytest.mark.upstream
def test_counts_of_two_releases() -> None:
    options = SourceOptions()
    counts = []
    for version in ("0.26.0", "0.33.0"):
        upstream = open_upstream("vllm", Pin(distribution="vllm", version=version), options)
        found = {s: alias_sites(upstream, f"vllm.{s}", store=options.store) for s in FACTS}
        counts.append({s: len([a for a in sites if a.kind != "star"]) for s, sites in found.items()})
        launch = {a.module for a in found["v1.engine.utils:launch_core_engines"]}
        assert launch == {"vllm.v1.engine.core_client", "vllm.entrypoints.cli.serve"}
    assert {s: (counts[0][s], counts[1][s]) for s in FACTS} == FACTS
