"""`adopt`: the deltas of a hand copy are derived, the smallest first, and what they generate is the copy."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from afd_patchkit.adopt.adopting import adopt, write_manifests
from afd_patchkit.adopt.result import Adoption
from afd_patchkit.api import check, load_project, regen
from afd_patchkit.cli.group import main
from afd_patchkit.copies.audit import AuditOptions
from afd_patchkit.findings.errors import DeltaError, ManifestError
from afd_patchkit.run.options import RunOptions
from tests.copies.world import World, write

HEAD = "import acme.engine as core\n"
DISPATCH = """
# Patch reason: batches of two.
def dispatch(batch, rank=0):
    core.logger.debug("dispatch %s", batch)
    count = core.helper(batch, core.LIMIT)
    if count > core.LIMIT:
        raise ValueError("too many")
    results = []
    for part in batch:
        # one after the other
        results.append(core.helper(part, rank))
    return results


core.dispatch = dispatch
"""


def adopted(world: World, text: str, **more: Any) -> Adoption:
    """The adoption of one file."""
    write(world.plugin, {"patch.py": text})
    return adopt(world.plugin / "patch.py", AuditOptions(pins=world.pins, sources=world.sources), **more)


def deltas(done: Adoption, number: int = 0) -> list[dict[str, Any]]:
    """The deltas of the entry with this number, as YAML reads them."""
    assert all(c.proved for c in done.copies), [c.why for c in done.copies]
    found: list[dict[str, Any]] = yaml.safe_load(done.files["adopted/patch.yaml"])["entries"][number].get("deltas", [])
    return found


CHANGED_BELOW_A_CLASS = """import acme.engine as core


class Ours(core.Engine):
    def warm(self, times: int = 1):
        for _ in range(times):
            # ### PATCH START: twice
            self.step([])
            # ### PATCH END: twice
            self.step([])
"""


def fenced(old: str, new: str, name: str = "ours") -> str:
    """The copy with one text replaced, inside a fence."""
    assert DISPATCH.count(old) == 1
    pad = " " * (len(new) - len(new.lstrip()))
    return HEAD + DISPATCH.replace(old, f"{pad}# ### PATCH START: {name}\n{new}{pad}# ### PATCH END: {name}\n")


# what the copy has instead of which lines, and the one delta that this is
SMALLEST: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a call with another argument": (
        "    count = core.helper(batch, core.LIMIT)\n",
        "    count = core.helper(batch, core.LIMIT + 1)\n",
        {"call": {"match": "helper(batch, LIMIT)\n", "set": {1: "LIMIT + 1\n"}}},
    ),
    "a condition with one more test": (
        "    if count > core.LIMIT:\n        raise ValueError(\"too many\")\n",
        "    if count > core.LIMIT and rank:\n        raise ValueError(\"too many\")\n",
        {"expr": "count > LIMIT\n", "with": "__upstream__ and rank\n"},
    ),
    "a statement more": (
        "    results = []\n",
        "    # why\n    print(count)\n    results = []\n",
        {"insert": "# why\nprint(count)\n", "before": "results = ...\n"},
    ),
    "a statement less": (
        '    core.logger.debug("dispatch %s", batch)\n', "    # gone\n", {"remove": "logger.debug(...)\n"},
    ),
    "an else": (
        "    if count > core.LIMIT:\n        raise ValueError(\"too many\")\n",
        "    if count > core.LIMIT:\n        raise ValueError(\"too many\")\n    else:\n        print(count)\n",
        {"clause": {"of": "if count > LIMIT:\n    ...\n", "add": "else:\n    print(count)\n"}},
    ),
    "a block around a statement": (
        "    results = []\n",
        "    if rank:\n        results = []\n    else:\n        results = [rank]\n",
        {"replace": "results = ...\n", "with": "if rank:\n    __upstream__\nelse:\n    results = [rank]\n"},
    ),
    "a block around a loop": (
        "    for part in batch:\n        # one after the other\n        results.append(core.helper(part, rank))\n",
        "    if rank:\n        for part in batch:\n            results.append(core.helper(part, rank))\n",
        {"replace": "for part in batch:\n    ...\n", "with": "if rank:\n    __upstream__\n"},
    ),
    "a block around a loop with a change inside": (
        "    for part in batch:\n        # one after the other\n        results.append(core.helper(part, rank))\n",
        "    if rank:\n        for part in batch:\n            results.append(core.helper(part, rank + 1))\n",
        {
            "replace": "for part in batch:\n    ...\n",
            "with": "if rank:\n    __upstream__\n",
            "deltas": [{"name": "inside 1", "call": {"match": "helper(part, rank)\n", "set": {1: "rank + 1\n"}}}],
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_operation_says_the_change(world, name):
    old, new, wanted = SMALLEST[name]
    done = adopted(world, fenced(old, new))
    assert [c.proved for c in done.copies] == [True], done.copies[0].why
    (delta,) = deltas(done)
    assert delta.pop("name") == "ours"
    assert delta == wanted
    assert done.copies[0].frozen == 0


def test_a_change_outside_of_fences_is_unexplained_and_check_complains_until_it_is_named(world):
    done = adopted(world, HEAD + DISPATCH.replace("results = []", "results = [None]"))
    assert [d["name"] for d in deltas(done)] == ["UNEXPLAINED 1"]
    assert done.copies[0].unexplained == 1
    project = written(world, done)
    options = RunOptions(sources=world.sources)
    assert [f.code for f in regen(project, options).findings] == ["PK233"]
    report = check(project, options)
    assert report.exit_code == 1
    assert [f.code for f in report.findings] == ["PK233"]
    manifest = project.manifests / "adopted/patch.yaml"
    manifest.write_text(manifest.read_text().replace("UNEXPLAINED 1", "a first result"))
    regen(project, options)
    assert check(project, options).exit_code == 0


def written(world: World, done: Adoption) -> Any:
    """A project with what was derived."""
    root = world.folder / "project"
    write(
        root,
        {
            "afd-patchkit.toml": "",
            "manifests/pins.yaml": 'schema: 1\npins:\n  acme: {distribution: acme, version: "1.0"}\n',
        },
    )
    write_manifests(done, root / "manifests")
    return load_project(root)


def test_names_through_the_module_are_late_and_helpers_become_a_part(world):
    text = (
        HEAD
        + "LEAST = 3\n\n\ndef small(batch):\n    return len(batch) < LEAST\n\n"
        + DISPATCH.replace(
            "    results = []\n",
            "    # ### PATCH START: small ones\n    if small(batch):\n        return []\n    # ### PATCH END: small ones\n    results = []\n",
        )
    )
    done = adopted(world, text)
    assert deltas(done) == [
        {"name": "small ones", "insert": "if small(batch):\n    return []\n", "before": "results = ...\n"}
    ]
    manifest = yaml.safe_load(done.files["adopted/patch.yaml"])
    assert manifest["entries"][0]["late"] == ["LIMIT", "helper", "logger"]
    assert manifest["entries"][0]["reason"] == "batches of two."
    assert manifest["imports"] == ["from afd_backports.adopted.patch_own import small\n"]
    assert manifest["installs"] == [{"symbol": "acme.engine:dispatch"}]
    assert (
        done.files["adopted/parts/patch_own.py"] == "LEAST = 3\n\n\ndef small(batch):\n    return len(batch) < LEAST\n"
    )
    project = written(world, done)
    report = regen(project, RunOptions(sources=world.sources))
    assert [f.code for f in report.findings if f.exit_code] == []


def test_a_method_a_delegate_and_renamed_locals(world):
    text = '''
    from acme.engine import Engine, dispatch, logger


    class Ours(Engine):
        """Ours."""

        # Patch reason: counted.
        def close(self):
            # ### PATCH START: count
            self.count = 1
            # ### PATCH END: count
            super().close()

        def __init__(self, config: dict, rank: int = 0) -> None:
            self.config = config
            self.rank = rank
            # ### PATCH START: cache
            self.cache = None
            # ### PATCH END: cache
            self.ready = False
            if config.get("warm"):
                self.warm()
            self.ready = True


    def run(*args, **kwargs):
        # ### PATCH START: note
        logger.debug("ours")
        # ### PATCH END: note
        machine = Engine(*args, **kwargs)
        try:
            machine.loop()
        except SystemExit as error:
            logger.info("exit")
            raise error
        finally:
            machine.close()


    Engine.run = staticmethod(run)
    '''
    done = adopted(world, text)
    assert [(c.pair.hand.qualname, c.proved, c.why) for c in done.copies] == [
        ("Ours.close", True, ""), ("Ours.__init__", True, ""), ("run", True, ""),
    ]  # fmt: skip
    entries = yaml.safe_load(done.files["adopted/patch.yaml"])["entries"]
    members = entries[0]["class"]["members"]
    assert (members[0]["kind"], members[0]["body"]) == ("delegate", "self.count = 1\n__original__()\n")
    assert members[1]["deltas"][0]["expr"] == "{}\n"
    assert done.copies[2].differs == {"locals": 2}
    project = written(world, done)
    assert [f.code for f in regen(project, RunOptions(sources=world.sources)).findings if f.exit_code] == []


def test_a_delegate_keeps_its_locals_though_upstream_has_a_statement_of_the_same_shape(world):
    text = """
    from acme.engine import LIMIT, Engine, dispatch


    class Ours(Engine):
        # Patch reason: twice.
        def step(self, batch, limit: int = LIMIT):
            # ### PATCH START: twice
            items = dispatch(batch, self.rank)
            # ### PATCH END: twice
            super().step(items, limit)
            return items
    """
    done = adopted(world, text)
    assert [(c.pair.delegates, c.proved, c.why) for c in done.copies] == [(True, True, "")]


def test_two_functions_that_were_fused_become_two_entries(world):
    text = """
    import acme.engine as core


    def loop(self):
        # ### PATCH START: ours
        if self.rank:
            return None
        # ### PATCH END: ours
        if isinstance(self, core.WideEngine):
            waves = 0
            while self.poll():
                self.step([])
                waves += 1
                if waves > core.LIMIT:
                    self.flush()
                    waves = 0
            raise SystemExit
        while self.poll():
            self.step([])
            self.flush()
        raise SystemExit


    core.Engine.loop = loop
    core.WideEngine.loop = loop
    """
    done = adopted(world, text)
    assert [(c.pair.symbol.reference, c.proved) for c in done.copies] == [
        ("acme.engine:Engine.loop", True), ("acme.engine:WideEngine.loop", True),
    ]  # fmt: skip
    assert [deltas(done, n)[0]["name"] for n in (0, 1)] == ["ours", "ours"]


def test_parameters_and_decorators_are_declared(world):
    text = """
    from acme.engine import Engine, dispatch


    # Signature: adds parameter `depth`.
    def step(self, batch, limit: int = 8, depth=0) -> list:
        out = dispatch(batch, self.rank)
        total = len(out)
        if total and self.ready:
            self.cache["last"] = out
        return out


    Engine.step = step
    """
    done = adopted(world, text)
    assert [(d["name"], d.get("parameter"), d.get("decorator")) for d in deltas(done)] == [
        ("UNEXPLAINED 1", {"replace": "limit"}, None),
        ("parameter depth", {"add": "depth=0\n", "after": "limit"}, None),
        ("UNEXPLAINED 2", None, {"remove": "traced('step')\n"}),
    ]


def test_nothing_is_guessed_and_a_symbol_can_be_given(world):
    text = textwrap.dedent(DISPATCH).replace("def dispatch", "def ours").replace("core.dispatch = dispatch", "")
    done = adopted(world, HEAD + text, function="ours")
    assert [f.code for f in done.findings] == ["PK715"]
    done = adopted(world, HEAD + text, function="ours", symbol="acme.engine:dispatch")
    assert [(c.proved, c.entry["name"]) for c in done.copies] == [(True, "ours")]
    assert [f.code for f in adopted(world, HEAD + text, function="nobody").findings] == ["PK715"]
    assert [f.code for f in adopted(world, HEAD + text, function="ours", symbol="acme.engine:gone").findings] == [
        "PK715"
    ]


def test_a_name_that_nothing_binds_is_a_refusal_and_hides_no_other(world):
    text = (
        fenced("    results = []\n", "    results = [unheard_of]\n")
        + """

def close(self):
    self.cache.clear()
    self.ready = False
    core.logger.debug("closed")
    print("ours")


core.Engine.close = close
"""
    )
    done = adopted(world, text)
    assert [(c.pair.hand.qualname, c.proved) for c in done.copies] == [("dispatch", False), ("close", True)]
    (item,) = done.findings
    assert item.code == "PK718"
    assert "unheard_of" in item.message
    assert item.generated.line > 1


@pytest.mark.parametrize("data", [b"def f(:\n", b"\xff\xfe", b"x = " + b"(" * 400 + b")" * 400])
def test_a_file_that_cannot_be_read_is_a_finding(world, data):
    world.plugin.mkdir()
    (world.plugin / "patch.py").write_bytes(data)
    done = adopt(world.plugin / "patch.py", AuditOptions(pins=world.pins, sources=world.sources))
    assert [f.code for f in done.findings] == ["PK701"]


def test_deep_code_is_read_and_too_deep_code_is_an_error_of_the_input(world):
    done = adopted(world, fenced("    results = []\n", f"    results = [{' + '.join(['rank'] * 600)}]\n"))
    assert [c.proved for c in done.copies] == [True]
    with pytest.raises(DeltaError) as found:
        adopted(world, fenced("    results = []\n", f"    results = [{' + '.join(['rank'] * 3000)}]\n"))
    assert [f.code for f in found.value.findings] == ["PK229"]


# ---- the command ----------------------------------------------------------------------------------------------------


def run(world: World, *more: str) -> Any:
    return CliRunner().invoke(
        main,
        ["adopt", str(world.plugin / "patch.py"), "--source", f"acme={world.upstream}", *more],
        standalone_mode=False,
    )


def test_the_command_shows_writes_once_and_replaces(world, monkeypatch):
    text = fenced("    results = []\n", "    results = [rank]\n")
    write(world.plugin, {"patch.py": text})
    project = world.folder / "project"
    write(
        project,
        {
            "afd-patchkit.toml": "",
            "manifests/pins.yaml": 'schema: 1\npins:\n  acme: {distribution: acme, version: "1.0"}\n',
        },
    )
    monkeypatch.chdir(project)
    shown = run(world)
    assert shown.return_value == 0, shown.output
    assert "# adopted/patch.yaml" in shown.output
    assert not (project / "manifests/adopted").exists()
    done = run(world, "--write", "--replace")
    assert done.return_value == 0, done.output
    assert (project / "manifests/adopted/patch.yaml").is_file()
    left = (world.plugin / "patch.py").read_text()
    assert "def dispatch" not in left
    assert "from afd_backports.adopted.patch import dispatch\n" in left
    assert left.rstrip().endswith("core.dispatch = dispatch")
    write(world.plugin, {"patch.py": text})
    with pytest.raises(ManifestError) as again:
        raise run(world, "--write").exception
    assert [f.code for f in again.value.findings] == ["PK717"]


def test_a_file_that_cannot_be_replaced_leaves_no_manifests_behind(world, monkeypatch):
    text = CHANGED_BELOW_A_CLASS
    write(world.plugin, {"patch.py": text})
    project = world.folder / "project"
    pins = 'schema: 1\npins:\n  acme: {distribution: acme, version: "1.0"}\n'
    write(project, {"afd-patchkit.toml": "", "manifests/pins.yaml": pins})
    monkeypatch.chdir(project)
    refused = run(world, "--write", "--replace")
    assert refused.return_value == 1, refused.output
    assert "PK718" in refused.output
    assert "Nothing was written" in refused.output
    assert not (project / "manifests/adopted").exists()
    assert (world.plugin / "patch.py").read_text() == text
    assert run(world, "--write").return_value == 0
    assert (project / "manifests/adopted/patch.yaml").is_file()


@pytest.mark.parametrize(
    ("more", "says"), [(["--replace"], "--write"), (["--symbol", "x:y"], "QUALNAME"), (["--set", "a-b"], "package")]
)
def test_options_that_do_not_go_together_are_said(world, more, says):
    write(world.plugin, {"patch.py": HEAD + DISPATCH})
    assert says in str(run(world, *more).exception)


STEP = """
def step(self, batch, limit: int = LIMIT) -> list:
    out = dispatch(batch, self.rank)
    total = len(out)
    if total and self.ready:
        self.cache["last"] = out
    return out


Engine.step = step
"""
STEP_HEAD = "from acme import tools\nfrom acme.engine import LIMIT, Engine, dispatch\nfrom acme.tools import helper, traced\n\n\n"
DECORATED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "upstream's": ('@traced("step")', []),
    "upstream's, reached through its module": ('@tools.traced("step")', []),
    "with another argument": ('@traced("ours")', [{"decorator": {"replace": "traced('step')\n"}, "with": "traced('ours')\n"}]),
    "with another one inside": ('@traced("step")\n@helper', [{"decorator": {"add": "helper\n", "after": "traced('step')\n"}}]),
    "with another one outside": ('@helper\n@traced("step")', [{"decorator": {"add": "helper\n"}}]),
    "with one that does nothing": ('@traced("step")\n@override', []),
}  # fmt: skip


@pytest.mark.parametrize(("decorators", "wanted"), DECORATED.values(), ids=DECORATED)
def test_decorators_are_compared_whole(world, decorators, wanted):
    done = adopted(world, "from typing import override\n" + STEP_HEAD + decorators + STEP)
    found = [{k: v for k, v in d.items() if k in ("decorator", "with")} for d in deltas(done)]
    assert found == wanted


def test_decorators_in_another_order_are_refused(world):
    (world.upstream / "acme/engine.py").write_text(
        (world.upstream / "acme/engine.py").read_text().replace('@traced("step")', '@traced("step")\n    @helper')
    )
    done = adopted(world, STEP_HEAD + '@helper\n@traced("step")' + STEP)
    assert [(c.proved, c.why) for c in done.copies] == [(False, "what is generated is decorated otherwise")]
    assert [f.code for f in done.findings] == ["PK718"]
    assert not done.files
