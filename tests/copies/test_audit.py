"""`audit`: each kind of fault of a hand copy is a finding with its place, and what is no fault is none."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from afd_patchkit.cli.group import main
from afd_patchkit.copies.audit import AuditOptions, audit
from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.upstream.options import SourceOptions
from tests.copies.world import ENGINE, FILES, found, write

HEAD = "import acme.engine as core\n\n\n"
DISPATCH = """
# Patch reason: batches of two.
# Signature: matches upstream; no added parameters.
def dispatch(batch, rank=0):
    core.logger.debug("dispatch %s", batch)
    count = core.helper(batch, core.LIMIT)
    if count > core.LIMIT:
        raise ValueError("too many")
    # ### PATCH START: two halves
    if rank:
        return [ours(batch)]
    # ### PATCH END: two halves
    results = []
    for part in batch:
        results.append(core.helper(part, rank))
    return results


def ours(batch):
    return batch


core.dispatch = dispatch
"""


def test_a_faithful_copy_gives_no_finding_and_one_row(world):
    report = world.audit({"patch.py": HEAD + DISPATCH})
    assert found(report) == []
    (row,) = report.copies
    assert (row.function, row.upstream, row.evidence) == ("dispatch", "acme.engine:dispatch", "assignment")
    assert (row.fenced, row.unfenced) == (1, 0)
    assert row.cosmetic == {"comments": 1, "names": 3}
    assert report.exit_code == 0


CHANGES = {
    "a changed statement": (
        'raise ValueError("too many")', 'raise ValueError("too many parts")', [("PK705", 11)], "differs from upstream's line"),
    "a dropped statement": (
        '    core.logger.debug("dispatch %s", batch)\n', "", [("PK705", 7)], "is missing"),
    "an added statement": ("    results = []\n", "    results = []\n    print(results)\n", [("PK705", 17)], "not upstream's"),
    "an open fence": (
        "    # ### PATCH END: two halves\n", "", [("PK702", 12), ("PK705", 13)], "left open"),
    "an END alone": ("    # ### PATCH START: two halves\n", "", [("PK702", 14), ("PK705", 12)], "no START opens"),
    "an unnamed END": ("PATCH END: two halves", "PATCH END", [("PK703", 15)], "names none"),
    "an END of another name": ("PATCH END: two halves", "PATCH END: thirds", [("PK703", 15)], "names 'thirds'"),
    "a wide fence": (
        "    results = []\n", "    # ### PATCH START: wide\n    results = []\n    # ### PATCH END: wide\n",
        [("PK704", 16)], "nothing in fence"),
    "a signature": ("def dispatch(batch, rank=0):", "def dispatch(batch, rank=0, more=None):", [("PK708", 7)], "claims that"),
    "a return annotation": ("def dispatch(batch, rank=0):", "def dispatch(batch, rank=0) -> list:", [("PK708", 7)], "claims that"),
    "a parameter of the comment": (
        "no added parameters.", "added parameters: `depth`.", [("PK709", 6)], "names a parameter depth"),
    "a name that is gone": ("core.helper(batch", "core.helpful(batch", [("PK705", 9), ("PK712", 9)], "no acme.engine.helpful"),
    "a call that does not fit": (
        "return [ours(batch)]", "return [core.helper(batch)]", [("PK711", 14)], "nothing for limit"),
    "a target that is gone": ("core.dispatch = dispatch", "core.dispatched = dispatch", [("PK712", 26)], "never read"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_each_fault_is_a_finding_at_its_place(world, name):
    old, new, wanted, words = CHANGES[name]
    assert old in DISPATCH
    report = world.audit({"patch.py": HEAD + DISPATCH.replace(old, new)})
    assert found(report) == wanted
    assert any(words in f.message for f in report.findings)
    assert all(f.generated and f.generated.file.endswith("plugin/patch.py") for f in report.findings)
    assert report.exit_code == 1


def test_a_change_inside_a_call_is_fenced_by_the_fence_inside_it(world):
    copy = DISPATCH.replace(
        "    count = core.helper(batch, core.LIMIT)\n",
        "    count = core.helper(\n        batch,\n        # ### PATCH START: limit\n        core.LIMIT + 1,\n"
        "        # ### PATCH END: limit\n    )\n",
    )
    report = world.audit({"patch.py": HEAD + copy})
    assert found(report) == []
    assert report.copies[0].fenced == 2


def test_renamed_locals_annotations_and_docstrings_are_cosmetic(world):
    copy = '''
    from acme.engine import Engine, logger


    def run(*args, **kwargs):
        """Ours."""
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
    report = world.audit({"patch.py": copy})
    assert found(report) == []
    assert report.copies[0].cosmetic == {"docstring": 1, "locals": 2}


def test_a_lost_static_method_and_a_lost_decorator(world):
    copy = """
    from acme.engine import Engine, dispatch, logger


    def run(*args, **kwargs):
        # ### PATCH START: note
        logger.debug("ours")
        # ### PATCH END: note
        engine = Engine(*args, **kwargs)
        try:
            engine.loop()
        except SystemExit as e:
            logger.info("exit")
            raise e
        finally:
            engine.close()


    def step(self, batch, limit=8):
        # ### PATCH START: note
        logger.debug("ours")
        # ### PATCH END: note
        out = dispatch(batch, self.rank)
        total = len(out)
        if total and self.ready:
            self.cache["last"] = out
        return out


    Engine.run = run
    setattr(Engine, "step", step)
    """
    report = world.audit({"patch.py": copy})
    assert [f.message for f in report.findings if f.code == "PK707"] == [
        "upstream's Engine.run is decorated with staticmethod, the copy is not",
        "upstream's Engine.step is decorated with traced, the copy is not",
    ]


def test_two_functions_fused_into_one_are_both_named(world):
    copy = """
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
    report = world.audit({"patch.py": copy})
    (item,) = [f for f in report.findings if f.code == "PK710"]
    assert "acme.engine:WideEngine.loop, fused into the copy of acme.engine:Engine.loop" in item.message
    assert item.generated.line == 9
    assert not [f for f in report.findings if f.code == "PK705"]


def test_a_module_that_holds_it_by_name_is_not_rebound(world):
    copy = """
    import acme.engine as core
    from contextlib import contextmanager


    @contextmanager
    def session(name: str, size: int = 4):
        core.logger.info("open %s", name)
        # ### PATCH START: size
        box = core.queue.Queue[str](size + 1)
        # ### PATCH END: size
        try:
            yield box
        finally:
            core.logger.info("close %s", name)


    core.session = session
    """
    report = world.audit({"patch.py": copy})
    (item,) = report.findings
    assert item.code == "PK319"
    assert "acme.cli holds acme.engine:session" in item.message
    write(world.upstream, {"acme/serve.py": "from acme.engine import session as opened\n"})
    (item,) = world.audit({"patch.py": copy}).findings
    assert item.message == "2 modules hold acme.engine:session by name, and are not rebound"
    assert [d.partition(" (")[0] for d in item.details] == [
        "acme.cli holds acme.engine:session as `session`", "acme.serve holds acme.engine:session as `opened`",
    ]  # fmt: skip
    (world.upstream / "acme/serve.py").unlink()
    report = world.audit(
        {
            "patch.py": copy.replace(
                "    core.session = session",
                "    import acme.cli as cli\n    core.session = session\n    cli.session = session",
            )
        }
    )
    assert found(report) == []


def test_an_override_a_comment_and_a_likeness_are_evidence_too(world):
    copy = """
    from acme.engine import Engine, dispatch, helper, logger, LIMIT


    class Ours(Engine):
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


    # Upstream source: acme/engine.py, Engine.close
    def finish(self):
        self.cache.clear()
        # ### PATCH START: state
        self.ready = None
        # ### PATCH END: state
        logger.debug("closed")
    """
    other = """
    from acme.tools import helper
    from acme.engine import LIMIT, logger


    def dispatch(batch, rank=0):
        logger.debug("dispatch %s", batch)
        count = helper(batch, LIMIT)
        if count > LIMIT:
            raise ValueError("too many")
        results = []
        for part in batch:
            results.append(helper(part, rank + 1))
        return results
    """
    report = world.audit({"patch.py": copy, "other.py": other})
    assert {(c.function, c.upstream, c.evidence) for c in report.copies} == {
        ("Ours.__init__", "acme.engine:Engine.__init__", "override"),
        ("finish", "acme.engine:Engine.close", "comment"),
        ("dispatch", "acme.engine:dispatch", "name"),
    }
    assert found(report) == [("PK706", 5)]


def test_a_copy_without_an_upstream_and_one_with_several(world):
    twins = "\n\n".join(
        f"class {name}:\n    def work(self):\n        a = 1\n        b = 2\n        return a + b" for name in "AB"
    )
    write(world.upstream, {"acme/twins.py": twins})
    copy = """
    import acme


    def unheard_of(x):
        # ### PATCH START: ours
        return x
        # ### PATCH END: ours


    def work(self):
        # ### PATCH START: ours
        print(self)
        # ### PATCH END: ours
        a = 1
        b = 2
        return a + b
    """
    report = world.audit({"patch.py": copy})
    assert found(report) == [("PK715", 4), ("PK716", 10)]
    (several,) = [f for f in report.findings if f.code == "PK716"]
    assert several.details == ("acme.twins:A.work (100% alike)", "acme.twins:B.work (100% alike)")


def test_what_is_of_another_distribution_is_said_and_not_judged(world):
    copy = """
    import acme
    import other.core as core


    def run(x):
        # ### PATCH START: ours
        return x
        # ### PATCH END: ours


    core.run = run
    """
    report = world.audit({"patch.py": copy})
    assert found(report) == [("PK670", 5)]
    assert report.exit_code == 0


def test_a_table_of_a_document_names_what_is_not_patched(world):
    page = """
    | patched function | why |
    |---|---|
    | `acme.engine.dispatch` | ours |
    | `acme.engine.Engine.flush` | long gone |

    | setting | meaning |
    |---|---|
    | `acme.engine.LIMIT` | eight |
    """
    report = world.audit({"patch.py": HEAD + DISPATCH, "docs/patches.md": page})
    (item,) = report.findings
    assert (item.code, item.generated.line, item.generated.column) == ("PK713", 4, 4)


BAD = {
    "does not parse": (b"import acme\n\ndef f(:\n    pass\n", ("PK701", 3)),
    "is no text": (b"import acme\n# \xff\xfe\n", ("PK701", 0)),
    "holds a zero byte": (b"import acme\0\n", ("PK701", 0)),
    "is nested too deeply": (b"import acme\nx = " + b"(" * 400 + b")" * 400 + b"\n", ("PK701", 2)),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_read_is_a_finding_and_the_rest_is_looked_at(world, name):
    data, wanted = BAD[name]
    write(world.plugin, {"good.py": HEAD + DISPATCH})
    (world.plugin / "bad.py").write_bytes(data)
    report = world.audit({})
    assert found(report)[0][0] == wanted[0]
    assert report.findings[0].generated.file.endswith("bad.py")
    assert len(report.copies) == 1


def test_cyclic_imports_links_and_empty_files_do_no_harm(world):
    write(
        world.plugin, {"a.py": "from b import x\nimport acme\n", "b.py": "from a import x\nimport acme\n", "c.py": ""}
    )
    (world.plugin / "loop").symlink_to(world.plugin)
    assert found(world.audit({"patch.py": HEAD + DISPATCH})) == []


def test_a_nested_copy_and_a_long_file(world):
    inner = DISPATCH.replace("\n", "\n    ")
    filler = "\n".join(f"def filler_{n}(x):\n    return x + {n}\n" for n in range(5000))
    report = world.audit({"patch.py": f"import acme.engine as core\n\n{filler}\n\ndef apply():{inner}\n"})
    assert [(c.function, c.fenced, c.unfenced) for c in report.copies] == [("apply.dispatch", 1, 0)]


# ---- the baseline, the command --------------------------------------------------------------------------------------


def test_a_baseline_lets_pass_what_was_there_and_no_more(world):
    worse = DISPATCH.replace('"too many"', '"too many parts"')
    baseline = world.folder / "baseline.json"
    written = world.audit({"patch.py": HEAD + worse}, baseline=baseline, update=True)
    assert written.exit_code == 0
    assert found(world.audit({"patch.py": "\n\n" + HEAD + worse}, baseline=baseline)) == []
    more = world.audit({"patch.py": HEAD + worse.replace("results = []", "results = [None]")}, baseline=baseline)
    assert found(more) == [("PK705", 16)]


@pytest.mark.parametrize("text", [None, "", "[]", '{"format": "x", "findings": {}}'])
def test_a_baseline_that_is_none_is_said(world, text):
    path = world.folder / "baseline.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ManifestError, match="baseline") as caught:
        world.audit({"patch.py": HEAD + DISPATCH}, baseline=path)
    assert caught.value.findings[0].code == "PK099"


@pytest.mark.parametrize("form", ["text", "json", "markdown", "github", "sarif"])
def test_every_format_names_the_copy_or_its_finding(world, form, monkeypatch):
    write(world.plugin, {"patch.py": HEAD + DISPATCH.replace('"too many"', '"much"')})
    monkeypatch.chdir(world.folder)
    arguments = ["audit", "plugin", "--source", f"acme={world.upstream}", "--format", form]
    done = CliRunner().invoke(main, arguments, standalone_mode=False)
    assert done.return_value == 1, done.output
    assert "PK705" in done.output
    if form == "json":
        data = json.loads(done.output)
        assert data["copies"][0]["upstream"] == "acme.engine:dispatch"
        assert data["findings"][0]["generated"] == {"file": "plugin/patch.py", "line": 11, "column": 1}
    elif form != "github":
        assert "plugin/patch.py" in done.output


def test_without_pins_and_without_a_project_the_command_says_what_to_give(world, monkeypatch):
    write(world.plugin, {"patch.py": ""})
    monkeypatch.chdir(world.folder)
    done = CliRunner().invoke(main, ["audit", "plugin"], standalone_mode=False)
    assert "--pin NAME=VERSION" in str(done.exception)


def test_a_copy_of_an_older_release_is_said_to_be_one(world):
    older = write(
        world.folder / "older", {**FILES, "acme/engine.py": ENGINE.replace("count > LIMIT", "count >= LIMIT")}
    )
    copy = DISPATCH.replace("count > core.LIMIT", "count >= core.LIMIT")
    sources = SourceOptions(sources={"acme": world.upstream, "acme@0.9": older}, offline=True)
    write(world.plugin, {"patch.py": HEAD + copy})
    report = audit([world.plugin], AuditOptions(pins=world.pins, sources=sources, near=("0.9",), base=world.folder))
    (item,) = [f for f in report.findings if "closest" in f.message]
    assert item.code == "PK714"
    assert item.message == "dispatch is closest to acme 0.9, one line behind 1.0"


def test_a_renamed_loop_variable_and_a_fence_in_a_loop_are_no_unfenced_changes(world):
    copy = DISPATCH.replace(
        "    for part in batch:\n        results.append(core.helper(part, rank))\n",
        "    for _part in batch:\n        # ### PATCH START: count\n        print(count)\n        results.append(core.helper(batch, rank))\n"
        "        # ### PATCH END: count\n",
    )
    report = world.audit({"patch.py": HEAD + copy})
    assert found(report) == []
    assert report.copies[0].unfenced == 0


STEP = """
from acme.engine import Engine, LIMIT, dispatch
from acme.tools import traced


@traced("ours")
def step(self, batch, limit: int = LIMIT) -> list:
    # ### PATCH START: note
    print(batch)
    # ### PATCH END: note
    out = dispatch(batch, self.rank)
    total = len(out)
    if total and self.ready:
        self.cache["last"] = out
    return out


Engine.step = step
"""


def test_a_decorator_with_another_argument(world):
    report = world.audit({"patch.py": STEP})
    assert [(f.code, f.message) for f in report.findings] == [
        ("PK707", "upstream's Engine.step is decorated with traced('step'), the copy with traced('ours')"),
    ]
    assert found(world.audit({"patch.py": STEP.replace("ours", "step")})) == []
