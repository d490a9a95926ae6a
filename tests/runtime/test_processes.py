"""Threads that come and go at once, processes that begin anew, and what importing the runtime costs them."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from afd_patchkit.runtime import Installer, InstallError
from tests.runtime.world import OURS, UP, bindings, write

ROOT = Path(__file__).parents[2]


def up(name="core"):
    return importlib.import_module(f"{UP}.{name}")


def test_scopes_nest_and_give_back_whatever_happens(scene):
    core, alias = up(), up("alias")
    before = bindings()
    installer = scene.installer("run", "Engine.step", mode="scope")
    with installer.scope("acme_up.core:run"):
        assert (core.run(1), alias.run(1), core.Engine(1).step()) == (101, 101, "step")
        with pytest.raises(KeyError), installer.scope() as report:  # noqa: PT012 - what is left by an error
            assert [row.state for row in report.rows] == ["bound", "bound"]
            late = up("late")
            assert late.run(1) == 101
            raise KeyError
        assert (core.run(1), late.run(1), core.Engine(1).step()) == (101, 101, "step")
    assert late.run(1) == 2
    assert before.items() <= bindings().items()
    assert installer.install().ok, "targets of a scope are not for the whole process"
    assert core.run(1) == 2


def test_a_scope_that_cannot_begin_leaves_nothing(scene):
    core = up()
    before = bindings()
    core.Engine.step = foreign = lambda self: "foreign"
    with (
        pytest.raises(InstallError, match=r"acme_up\.core:Engine\.step"),
        scene.installer("run", "Engine.step", mode="scope").scope(),
    ):
        raise AssertionError
    assert core.Engine.step is foreign
    del before["acme_up.core.Engine.step"]
    assert before.items() <= bindings().items()


def test_scopes_of_many_threads(scene):
    """Whoever is inside sees the replacement, until the last one has left."""
    core = up()
    before = bindings()
    installer = scene.installer("run", "Engine.step", mode="scope")
    seen, problems = [], []
    ready = threading.Barrier(8)

    def work():
        try:
            ready.wait()
            for _ in range(5):
                with installer.scope():
                    seen.append((core.run(1), core.Engine(1).step()))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert seen == [(101, "ours")] * 40
    assert bindings() == before


def test_threads_that_install_and_import_at_once(scene):
    installer = scene.installer("run", "Engine.step")
    ready = threading.Barrier(6)
    problems = []

    def work(action):
        try:
            ready.wait()
            action()
        except BaseException as error:
            problems.append(error)

    actions = [installer.install] * 2 + [lambda name=name: up(name) for name in ("alias", "renamed", "late", "core")]
    threads = [threading.Thread(target=work, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert installer.verify().ok
    assert [row.state for row in installer.verify().rows] == ["bound", "bound"]
    assert up("alias").run(1) == up("renamed").go(1) == up("late").run(1) == 101
    installer.uninstall()
    assert up("alias").run(1) == up("renamed").go(1) == up("late").run(1) == 2


CHILD = """
import json, multiprocessing, sys

sys.path[:0] = {paths!r}

def child(queue, function):
    from acme_ours.installs import installer
    first = [row.state for row in installer.verify().rows]
    import acme_up.alias
    installer.install()
    queue.put([first, function(1), acme_up.alias.run(1), installer.verify().ok])

if __name__ == "__main__":
    from acme_ours.installs import installer
    import acme_up.core
    installer.install()
    context = multiprocessing.get_context({method!r})
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(queue, acme_up.core.run))
    process.start()
    print(json.dumps(queue.get()))
    process.join()
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_a_child_process(scene, method):
    target = scene.target("run")
    text = f"from afd_patchkit.runtime import *\nfrom afd_patchkit.runtime import Gate, Installer, Pinned, Target\n\ninstaller = Installer({OURS!r}, [{target!r}])\n"
    script = CHILD.format(paths=[str(scene.folder), str(ROOT)], method=method)
    write(scene.folder, {"acme_ours/installs.py": text, "start.py": script})
    done = subprocess.run([sys.executable, "start.py"], cwd=scene.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [["off" if method == "spawn" else "bound"], 101, 101, True]


def test_importing_it_imports_little(tmp_path):
    """No engine and no third party; what is slow is imported when it is needed."""
    code = (
        "import sys; before = set(sys.modules); import afd_patchkit.runtime; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    found = done.stdout.split()
    assert not {
        n
        for n in found
        if n.startswith("afd_patchkit.") and not n.startswith(("afd_patchkit.runtime", "afd_patchkit.version"))
    }
    tops = {name.partition(".")[0] for name in found} - {"afd_patchkit"}
    assert tops <= {name.lstrip("_") for name in sys.stdlib_module_names} | sys.stdlib_module_names
    assert not tops & {
        "ast",
        "asyncio",
        "dataclasses",
        "hashlib",
        "inspect",
        "linecache",
        "logging",
        "subprocess",
        "tokenize",
    }
    assert not {"importlib.metadata", "importlib.util"} & set(found)


PATHS = ["run", "session", "Engine.step", "Engine.boot", "Engine.make", "Engine.room", "Fast.table"]
MODULES = ["core", "alias", "renamed", "beyond", "late"]
ACTIONS = st.one_of(
    st.tuples(st.just("import"), st.sampled_from(MODULES)),
    st.tuples(st.just("reload"), st.sampled_from(["alias", "renamed", "late"])),
    st.tuples(st.just("install"), st.sets(st.sampled_from(PATHS), min_size=1)),
    st.tuples(st.just("name"), st.tuples(st.sampled_from(MODULES), st.sampled_from(["run", "session", "Engine"]))),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(early=st.sets(st.sampled_from(MODULES)), actions=st.lists(ACTIONS, max_size=8))
def test_installed_and_uninstalled_is_as_before(scene, early, actions):
    from tests.runtime.world import forget

    forget()
    importlib.invalidate_caches()
    for name in sorted(early):
        up(name)
    before = bindings()
    installer = Installer(OURS, [scene.target(path) for path in PATHS])
    try:
        for action, value in actions:
            if action == "import":
                up(value)
            elif action == "reload" and f"{UP}.{value}" in sys.modules:
                importlib.reload(sys.modules[f"{UP}.{value}"])
            elif action == "install":
                installer.install(*(f"{UP}.core:{path}" for path in sorted(value)))
            elif action == "name" and f"{UP}.core" in sys.modules:
                module, name = value
                up(module).__dict__[f"other_{name}"] = vars(sys.modules[f"{UP}.core"])[name]
        assert all(row.state != "lost" and not row.left for row in installer.verify().rows)
    finally:
        installer.uninstall()
    originals = bindings()
    strangers = [name for name, (_, value) in originals.items() if getattr(value, "__module__", "").startswith(OURS)]
    assert strangers == []
    assert all(originals[name] == value for name, value in before.items() if not _made_anew(name, actions))
    assert not any(getattr(finder, "package", None) == OURS for finder in sys.meta_path)


def _made_anew(name, actions):
    """Whether a reload has run the statement that binds a name, or a test has bound it."""
    reloaded = {value for action, value in actions if action == "reload"}
    return name.split(".")[1] in reloaded and ("Holder" in name or "__" in name)
