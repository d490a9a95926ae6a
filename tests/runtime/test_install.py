"""What is bound, kept and given back in one process."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import sys
import types

import pytest

from afd_patchkit.runtime import Installer, InstallError, binding, loaded
from tests.runtime.world import OURS, UP, bindings, write


def up(name="core"):
    return importlib.import_module(f"{UP}.{name}")


def states(report):
    return {row.target.partition(":")[2]: row.state for row in report.rows}


def test_every_name_is_bound_and_given_back(scene):
    core, alias, renamed = up(), up("alias"), up("renamed")
    before = bindings()
    installer = scene.installer("run")
    report = installer.install()
    assert report.ok
    assert (core.run(1), alias.run(1), renamed.go(1)) == (101, 101, 101)
    assert alias.Holder.go is core.run
    assert type(vars(alias.Holder)["boot"]) is staticmethod
    assert alias.Holder.boot(1) == 101
    assert set(report.rows[0].places) == {
        "acme_up.core.run",
        "acme_up.alias.run",
        "acme_up.renamed.go",
        "acme_up.alias.Holder.go",
        "acme_up.alias.Holder.boot",
    }
    installer.uninstall()
    assert bindings() == before
    assert not any(getattr(finder, "package", None) == OURS for finder in sys.meta_path)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("Engine.step", types.FunctionType),
        ("Engine.boot", staticmethod),
        ("Engine.make", classmethod),
        ("Engine.room", property),
        ("Fast.table", functools.cached_property),
        ("session", types.FunctionType),
        ("hidden", types.FunctionType),
        ("Engine", type),
    ],
)
def test_the_kind_of_the_attribute_is_kept(scene, path, kind):
    core = up()
    before = bindings()
    installer = scene.installer(path)
    installer.install()
    owner = vars(core.Engine if path.startswith("Engine.") else core.Fast) if "." in path else vars(core)
    name = path.rpartition(".")[2]
    assert type(owner[name]) is kind
    if path == "Engine.room":
        engine = core.Engine(3)
        engine.room = 9
        assert (engine.room, engine.size) == (7, 9)
    elif path == "Fast.table":
        assert core.Fast(1).table == ["ours"]
    elif path == "Engine.make":
        assert core.Fast.make(1).size == 2
    elif path == "Engine.boot":
        assert core.Engine.boot(2) == core.Engine(1).boot(2) == 4
    installer.uninstall()
    assert bindings() == before


def test_another_kind_is_refused(scene):
    up()
    scene.edit("acme_ours/core.py", "def step(self):", "@property\ndef step(self):")
    with pytest.raises(InstallError, match="it is a function, and its replacement a property"):
        scene.installer("Engine.step").install()


def test_what_a_class_inherits_is_not_its_own(scene):
    up()
    pinned = scene.pinned(f"{UP}.core", "Engine.step")
    installer = Installer(OURS, [scene.target("Fast.step", pinned=pinned)])
    with pytest.raises(InstallError, match=r"acme_up\.core has no Fast\.step"):
        installer.install()


def test_a_subclass_sees_the_replacement(scene):
    core = up()
    scene.installer("Engine.step").install()
    assert core.Fast(1).step() == "ours"


def test_metaclass_and_module_have_no_say(scene):
    scene.edit(
        "acme_up/core.py",
        "class Fast(Engine):",
        "class Meta(type):\n    def __setattr__(cls, name, value):\n        raise AssertionError\n\n    def __getattribute__(cls, name):\n        raise AssertionError\n\n\nclass Strict(metaclass=Meta):\n    def step(self):\n        return 1\n\n\nclass Fast(Engine):",
    )
    core = up()

    class Guarded(types.ModuleType):
        def __setattr__(self, name, value):
            raise AssertionError

        def __getattr__(self, name):
            raise AssertionError(name)

    object.__setattr__(core, "__class__", Guarded)
    installer = scene.installer("Strict.step", "run")
    installer.install()
    assert type.__getattribute__(vars(core)["Strict"], "step")(None) == "ours"
    installer.uninstall()
    assert type.__getattribute__(vars(core)["Strict"], "step")(None) == 1


def test_lazy_modules_stay_unloaded(scene):
    up("lazy")
    spec = importlib.util.find_spec("acme_up.alias")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = importlib.util.module_from_spec(spec)
    sys.modules["acme_up.alias"] = lazy
    spec.loader.exec_module(lazy)
    kind = type(lazy)
    assert loaded.is_lazy(lazy)

    class Proxy:
        def __getattribute__(self, name):
            raise AssertionError(name)

    sys.modules["acme_up.proxy"] = Proxy()
    up("renamed").proxy = Proxy()
    installer = scene.installer("run")
    installer.install()
    installer.verify()
    assert type(lazy) is kind
    assert lazy.run(1) == 101
    installer.uninstall()
    assert lazy.run(1) == 2


def test_an_owner_that_waits_for_its_first_use_is_bound_then(scene):
    spec = importlib.util.find_spec("acme_up.core")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    core = importlib.util.module_from_spec(spec)
    sys.modules["acme_up.core"] = core
    spec.loader.exec_module(core)
    installer = scene.installer("run")
    assert states(installer.install()) == {"run": "waiting"}
    assert loaded.is_lazy(core)
    assert core.run(1) == 101
    assert states(installer.verify()) == {"run": "bound"}


def test_who_cannot_be_rebound_is_named(scene):
    beyond = up("beyond")
    report = scene.installer("run").install()
    assert set(report.rows[0].beyond) == {
        "acme_up.beyond.call (the default of a parameter)",
        "acme_up.beyond.half (a partial)",
        "acme_up.beyond.table (a value of a dict)",
    }
    assert beyond.call() == 2


def test_listed_aliases_only(scene):
    core, alias, renamed = up(), up("alias"), up("renamed")
    installer = scene.installer("run", aliases=("acme_up.renamed",))
    report = installer.install()
    assert (core.run(1), alias.run(1), renamed.go(1)) == (101, 2, 101)
    assert "acme_up.alias.run" in report.rows[0].native
    assert report.ok


def test_twice_is_once(scene):
    core = up()
    before = bindings()
    installer = scene.installer("run")
    installer.install()
    ours = core.run
    assert installer.install().ok
    assert core.run is ours
    installer.uninstall()
    assert bindings() == before
    installer.uninstall()
    assert bindings() == before


def test_modules_that_are_imported_later(scene):
    installer = scene.installer("run", "Engine.step")
    assert states(installer.install()) == {"run": "waiting", "Engine.step": "waiting"}
    alias = up("alias")
    assert alias.run(1) == up("late").run(1) == up().run(1) == 101
    assert alias.__spec__.loader is alias.__loader__
    assert type(alias.__loader__).__name__ == "SourceFileLoader"
    assert states(installer.verify()) == {"run": "bound", "Engine.step": "bound"}
    installer.uninstall()
    assert alias.run(1) == up("late").run(1) == up().run(1) == 2


def test_a_cycle_of_imports_is_waited_for(scene):
    """Ours imports from a module that is half run when the target's own has been run."""
    write(scene.folder, {"acme_up/front.py": "from acme_up.core import run\n\nVALUE = 5\nAT_ONCE = run(1)\n"})
    scene.edit(
        "acme_ours/core.py",
        "from functools import cached_property",
        "from functools import cached_property\n\nfrom acme_up.front import VALUE",
    )
    scene.installer("run").install()
    front = up("front")
    assert front.AT_ONCE == 2
    assert front.run(1) == 101


def test_a_module_that_took_the_replacement_from_upstream_gives_it_back(scene):
    up()
    installer = scene.installer("run")
    write(scene.folder, {"acme_up/taker.py": "from acme_ours.core import run\n"})
    by_name = up("taker")
    installer.install()
    late = up("late")
    assert late.run(1) == 101
    installer.uninstall()
    assert late.run(1) == 2
    assert by_name.run(1) == 101, "it took ours from the generated package, before anything was installed"


def test_reloads(scene):
    core, alias = up(), up("alias")
    before = bindings()
    installer = scene.installer("run")
    installer.install()
    importlib.reload(core)
    assert core.run(1) == 101
    importlib.reload(alias)
    assert alias.run(1) == 101
    scene.edit("acme_ours/core.py", "x + 100", "x + 1000")
    importlib.reload(sys.modules["acme_ours.core"])
    assert core.run(1) == 101
    assert installer.install().ok
    assert (core.run(1), alias.run(1)) == (1001, 1001)
    installer.uninstall()
    assert (core.run(1), alias.run(1)) == (2, 2)
    assert bindings().keys() == before.keys()


def test_an_alias_from_before_upstream_was_imported_again(scene):
    core, alias = up(), up("alias")
    old = alias.run
    importlib.reload(core)
    assert core.run is not old
    installer = scene.installer("run", sites=(("acme_up.alias", "run"),))
    assert installer.install().ok
    assert alias.run(1) == 101
    installer.uninstall()
    assert alias.run is old


def test_specifications_are_asked_as_without_the_hook(scene):
    scene.installer("run").install()
    spec = importlib.util.find_spec("acme_up.late")
    assert spec.loader.get_source("acme_up.late") == "from acme_up.core import run\n"
    assert spec.loader.is_package("acme_up.late") is False
    with pytest.raises(AttributeError):
        spec.loader.nothing  # noqa: B018


def test_a_second_copy_of_the_package_goes_on_with_the_first(scene):
    core = up()
    before = bindings()
    scene.installer("run").install()
    second = scene.installer("run")
    assert states(second.verify()) == {"run": "bound"}
    assert second.install().ok
    second.uninstall()
    assert bindings() == before
    assert core.run(1) == 2


def test_an_import_that_failed_can_be_tried_again(scene):
    core = up()
    scene.edit("acme_ours/core.py", "from functools import cached_property", "raise RuntimeError('not yet')")
    installer = scene.installer("run")
    with pytest.raises(InstallError, match=r"acme_ours\.core cannot be imported: RuntimeError: not yet"):
        installer.install()
    assert not any(getattr(finder, "package", None) == OURS for finder in sys.meta_path)
    scene.edit("acme_ours/core.py", "raise RuntimeError('not yet')", "")
    assert installer.install().ok
    assert core.run(1) == 101


@pytest.mark.parametrize("step", range(9))
def test_rollback_at_every_step(scene, monkeypatch, step):
    up(), up("alias"), up("renamed")
    before = bindings()
    installer = scene.installer("run", "Engine.step", "Engine.boot", "Engine.room")
    count = 0
    original = binding.NamePlace.set

    def failing(self, value):
        nonlocal count
        count += 1
        if count == step + 1:
            raise TypeError("immutable")
        original(self, value)

    monkeypatch.setattr(loaded.NamePlace, "set", failing)
    if step == 8:
        assert installer.install().ok
        assert count == 8
        return
    with pytest.raises(InstallError, match="cannot be bound: immutable"):
        installer.install()
    assert bindings() == before
    assert not installer.verify().ok


def test_all_problems_are_told_and_nothing_is_bound(scene, caplog):
    core = up()
    before = bindings()
    scene.edit("acme_ours/core.py", "def boot(x):", "def other(x):")
    targets = [scene.target(path) for path in ("run", "Engine.step", "Engine.boot")]
    targets.append(scene.target("gone", pinned=scene.pinned(f"{UP}.core", "run")))
    core.Engine.step = before_step = lambda self: "foreign"
    before = bindings()
    installer = Installer(OURS, targets)
    with pytest.raises(InstallError) as info:
        installer.install()
    assert len(info.value.problems) == 3
    assert bindings() == before
    with caplog.at_level(logging.WARNING):
        report = installer.install(strict=False)
    assert len(report.problems) == 3
    assert not report.ok
    assert "acme_up.core has no gone" in caplog.text
    assert core.Engine.step is before_step


@pytest.mark.parametrize(
    "patch",
    [
        "core.run = lambda x: 5",
        "original = core.run\n@functools.wraps(original)\ndef around(*a, **k):\n    return original(*a, **k)\ncore.run = around",
        "core.run = functools.partial(core.run, twice=True)",
        "core.run = functools.lru_cache(core.run)",
        "def run(x, *, twice=False):\n    return x + 1\n\n\ncore.run = run",
    ],
)
def test_a_foreign_patch_is_named(scene, patch):
    core = up()
    write(scene.folder, {"stranger.py": f"import functools\nfrom acme_up import core\n{patch}\n"})
    importlib.import_module("stranger")
    foreign = core.run
    with pytest.raises(InstallError, match=r"acme_up\.core:run: (stranger\.|an object of type functools)"):
        scene.installer("run").install()
    assert core.run is foreign
    row = scene.installer("run").verify().rows[0]
    assert row.state == "off"
    assert "stranger" in row.why or "functools" in row.why


def test_a_foreign_patch_behind_an_alias_is_named(scene):
    core, alias = up(), up("alias")
    write(scene.folder, {"stranger.py": "def run(x):\n    return 0\n"})
    alias.run = importlib.import_module("stranger").run
    installer = scene.installer("run", sites=(("acme_up.alias", "run"), ("acme_up.renamed", "go")))
    with pytest.raises(InstallError, match=r"stranger\.run \(.*\) is in place of its other name acme_up\.alias\.run"):
        installer.install()
    assert core.run(1) == 2


def test_another_text_is_refused(scene):
    installer = scene.installer("run", "Engine")
    scene.edit("acme_up/core.py", "return x + 1", "return x + 2")
    scene.edit("acme_up/core.py", "self.size = size", "self.size = size or 1")
    with pytest.raises(InstallError) as info:
        installer.install()
    assert info.value.problems == (
        "acme_up.core:run: acme_up.core:run has another text than the pinned one",
        "acme_up.core:Engine: acme_up.core:Engine has another text than the pinned one",
    )
    up()
    with pytest.raises(InstallError) as info:
        installer.install()
    assert ["another text" in problem for problem in info.value.problems] == [True, True]


def test_a_text_that_goes_on_is_another_one(scene):
    installer = scene.installer("run")
    scene.edit("acme_up/core.py", "    return x + 1\n", "    return x + 1\n    x += 1\n")
    scene.edit("acme_up/core.py", "    x += 1", "    yield x")
    up()
    with pytest.raises(InstallError, match="another text"):
        installer.install()


def test_what_changes_between_the_disk_and_the_import_is_given_back(scene):
    installer = scene.installer("run", "Engine.step")
    installer.install()
    scene.edit("acme_up/core.py", "return x + 1", "return x + 3")
    with pytest.raises(InstallError, match="everything was given back") as info:
        up()
    assert not isinstance(info.value, ImportError)
    assert up().Engine(1).step() == "step"
    assert states(installer.verify()) == {"run": "off", "Engine.step": "off"}


def test_a_module_that_is_not_there(scene):
    pinned = scene.pinned(f"{UP}.core", "run")._replace(module="acme_up.gone")
    installer = Installer(OURS, [scene.target("run", module="acme_up.gone", pinned=pinned)])
    with pytest.raises(InstallError, match=r"acme_up\.gone is not there"):
        installer.install()


def test_the_gate(scene):
    core = up()
    scene.version("1.0rc1")
    installer = scene.installer("run")
    with pytest.raises(InstallError, match=r"acme-up 1\.0rc1 is installed, and 1\.0 is needed"):
        installer.install()
    assert core.run(1) == 2
    assert installer.install(any_version=True).ok
    installer.uninstall()
    (scene.folder / "acme_up-0.dist-info/METADATA").unlink()
    (scene.folder / "acme_up-0.dist-info").rmdir()
    with pytest.raises(InstallError, match="is not installed as a distribution"):
        installer.install()


def test_a_binding_that_was_lost_is_told(scene):
    core, alias = up(), up("alias")
    installer = scene.installer("run")
    installer.install()
    write(scene.folder, {"stranger.py": "def run(x):\n    return 0\n"})
    core.run = importlib.import_module("stranger").run
    row = installer.verify().rows[0]
    assert (row.state, installer.verify().ok) == ("lost", False)
    assert "stranger.run" in row.why
    with pytest.raises(InstallError, match=r"is not given back: stranger\.run"):
        installer.uninstall()
    assert core.run(1) == 0
    assert alias.run(1) == 2


def test_a_name_that_got_the_original_elsewhere_is_left(scene):
    core, renamed = up(), up("renamed")
    original = core.run
    installer = scene.installer("run")
    installer.install()
    renamed.go = original
    row = installer.verify().rows[0]
    assert row.left == ("acme_up.renamed.go",)
    assert not installer.verify().ok


def test_some_targets_by_name(scene):
    core = up()
    installer = scene.installer("run", "Engine.step", "Engine.boot")
    installer.install("acme_ours.core:run", "acme_up.core:Engine.boot")
    assert states(installer.verify()) == {"run": "bound", "Engine.step": "off", "Engine.boot": "bound"}
    assert core.Engine(1).step() == "step"
    with pytest.raises(ValueError, match="no target 'nothing'"):
        installer.install("nothing")
    installer.install("core")
    assert core.Engine(1).step() == "ours"


def test_of_a_subclass_nothing_is_bound(scene):
    core = up()
    before = bindings()
    installer = scene.installer("Engine.step", mode="subclass")
    assert installer.install().ok
    assert states(installer.verify()) == {"Engine.step": "subclass"}
    assert bindings() == before
    assert core


def test_the_report_as_text_and_data(scene):
    up("beyond")
    report = scene.installer("run").install()
    assert str(report).startswith("bound (process): acme_up.core:run -> acme_ours.core:run\n")
    assert "  beyond reach: acme_up.beyond.half (a partial)" in str(report)
    assert report.as_dict()["targets"][0]["state"] == "bound"


def test_a_generated_delegate_keeps_its_original(scene):
    core = up()
    scene.edit(
        "acme_ours/core.py",
        "from functools import cached_property",
        "import acme_up.core\n\n_original_acme_up_core_run = vars(acme_up.core)['run']\n",
    )
    write(
        scene.folder,
        {
            "stranger.py": "import acme_up.core\n\ndef _patchkit_original(): ...\n\n_original_acme_up_core_run = acme_up.core.run\n"
        },
    )
    stranger = importlib.import_module("stranger")
    scene.installer("run").install()
    assert sys.modules["acme_ours.core"]._original_acme_up_core_run(1) == 2
    assert stranger._original_acme_up_core_run(1) == 2
    assert core.run(1) == 101
