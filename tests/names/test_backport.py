"""Backports: names of a donor resolved on the target."""

from __future__ import annotations

import pytest

from tests.names.world import codes, notes

TARGET = {
    "acme/util.py": """
        from string import Formatter as Unknown
        def same(x): return ("target", x)
        def other_body(x): return x + 1
        def other_signature(x): return x
        LIMIT = 1
        class Plan:
            size: int
            def __init__(self): self.made = 1
            def kept(self): return 1
            def changed(self): return 1
            class Deep: pass
        class Child(Plan): pass
        class Open(Unknown): pass
    """,
    "acme/envs.py": "FLAG = 'target flag'\ndef read(): return 1\n",
    "acme/pack/__init__.py": "",
    "acme/pack/leaf.py": "value = 'leaf'\n",
    "acme/runner.py": """
        import logging
        logger = logging.getLogger(__name__)
        counter = 0
        def bump():
            global counter
            counter += 1
        class Runner:
            SEED = 4
            def __init__(self): self.old = 1
            def step(self): return "target"
    """,
    "acme/log.py": "import logging\ndef init_logger(name): return logging.getLogger(name)\n",
}
DONOR = {
    **TARGET,
    "acme/util.py": """
        from string import Formatter as Unknown
        def same(x):
            '''Another docstring.'''
            return ("target",  x)
        def other_body(x): return x + 2
        def other_signature(x, *, y=1): return x
        LIMIT = 2
        def new_helper(): return 1
        class Plan:
            size: int
            extra: int = 0
            def __init__(self): self.made = 1; self.fresh = 2
            def kept(self): return 1
            def changed(self): return 2
            class Deep: pass
            @property
            def prop(self): return 1
        class Child(Plan): pass
        class Open(Unknown):
            known = 1
    """,
    "acme/envs.py": "FLAG = NEW_FLAG = 1\ndef read(): return 2\n",
    "acme/fresh/fast.py": "kernel = 1\n",
    "acme/fresh/__init__.py": "def thing(): return 1\n",
    "acme/pack/leaf.py": "value = 'leaf'\nnewer = 2\n",
    "acme/runner.py": """
        import json
        import acme.envs as envs
        from acme import pack
        from acme.util import LIMIT, Child, Open, Plan, new_helper, other_body, other_signature, same
        from acme.fresh import thing
        from acme.log import init_logger
        from acme.compiled import op
        try:
            from acme.fresh.fast import kernel
            HAS = True
        except ImportError:
            kernel = None
            HAS = False
        try:
            from math import tau as constant
        except ImportError:
            constant = 0
        if HAS:
            from acme.fresh.fast import sometimes
        logger = init_logger(__name__)
        counter = 0
        own_constant = 5
        def bump():
            global counter
            counter += 1
        def helper(): return "donor helper"
        def uses_same(x): return json.dumps(same(x))
        def uses_changed(x): return other_body(x), other_signature(x), LIMIT
        def uses_missing(): return new_helper(), thing()
        def annotates(a: Plan, b: "list[other_body]") -> LIMIT: return a
        def uses_own(): return helper(), own_constant
        def uses_counter():
            global counter
            counter += 1
            return counter
        def uses_envs(): return envs.FLAG, envs.NEW_FLAG, envs.read(), pack.leaf.value, pack.leaf.newer
        def uses_kernel(): return kernel, HAS, constant
        def uses_op(): return op
        def logs(): return logger.name, __name__
        def reads(plan: Plan, maybe: "Plan | None", child: Child, op: Open, other: int):
            plan.size, plan.made, plan.kept(), plan.Deep, plan.copy
            plan.extra, maybe.fresh, child.prop, plan.changed()
            op.known, op.unknown, other.anything
            child.stored = 1
            return child.stored
        def imports_inside():
            from acme.util import same, new_helper
            from .fresh import thing
            import acme.fresh
            from .pack import leaf
            import json
            return leaf.value
        class Runner:
            SEED = 4
            NEWER = 5
            def __init__(self): self.old = self.new = 1
            def step(self, seed=SEED):
                return self.old, self.new, super().step(), self.helper()
            def newer(self, n=NEWER): return n
            def helper(self): return 1
        class Fresh:
            def m(self): return super().m()
    """,
    "acme/only_new.py": """
        import acme.log as log
        from acme.log import init_logger
        logger = init_logger(__name__)
        other = log.init_logger(__name__)
        def helper(): return 1
        def f(): return logger.name, __name__, f"{__name__}"
        def g(): return helper()
        def h(): return other.name
        class C:
            def m(self): return super().m()
    """,
}


def found(world, symbol: str, **given):
    plan = world(TARGET, DONOR).plan(symbol, kind="backport", **given)
    return {(f.code, f.message.split("`")[1]): f for f in plan.findings if not f.code.startswith("PK6")}


def test_names_are_resolved_on_the_target(world) -> None:
    here = world(TARGET, DONOR)
    assert found(world, "acme.runner:uses_same") == {}
    generated = here.generate("acme.runner:uses_same", kind="backport")
    assert generated.uses_same(1) == '["target", 1]'


def test_what_the_target_lacks_names_the_donor_and_the_nearest(world) -> None:
    missing = found(world, "acme.runner:uses_missing")
    assert set(missing) == {("PK318", "new_helper"), ("PK318", "thing")}
    assert (
        "acme.util:new_helper at the donor new 2.0; the target acme 1.0 lacks it"
        in missing["PK318", "new_helper"].message
    )
    assert "it has no module acme.fresh" in missing["PK318", "thing"].message
    assert missing["PK318", "thing"].details[0].startswith("near on the target: acme.")


def test_a_sibling_provides_what_the_target_lacks_and_is_recorded(world) -> None:
    here = world(TARGET, DONOR)
    provided = {"new_helper": "entry acme.util:new_helper", "thing": "part", "same": "entry acme.util:same"}
    plan = here.plan("acme.runner:uses_missing", kind="backport", provided=provided)
    assert (codes(plan), plan.imports) == ([], ())
    assert plan.rebindings == {"new_helper": "entry acme.util:new_helper", "thing": "part"}
    assert here.plan("acme.runner:uses_same", kind="backport", provided=provided).rebindings == {
        "same": "entry acme.util:same"
    }


def test_the_donors_own_import_is_no_rebinding_when_a_part_has_it_too(world) -> None:
    here = world(TARGET, DONOR)
    alone = here.plan("acme.runner:uses_same", kind="backport")
    given = {"same": "from acme.util import same"}
    beside = here.plan("acme.runner:uses_same", kind="backport", provided=given)
    assert beside.rebindings == {}
    assert (beside.imports, codes(beside)) == (alone.imports, codes(alone))
    other = here.plan("acme.runner:uses_same", kind="backport", provided={"same": "from other.util import same"})
    assert list(other.rebindings) == ["same"]


def test_dependencies_that_differ_are_warned_of_with_what_differs(world) -> None:
    findings = found(world, "acme.runner:uses_changed")
    assert {key: f.message.rpartition(": ")[2] for key, f in findings.items()} == {
        ("PK311", "other_body"): "body",
        ("PK311", "other_signature"): "signature",
        ("PK311", "LIMIT"): "value",
    }
    assert found(world, "acme.runner:annotates") == {}


def test_class_dependencies_list_their_members(world) -> None:
    plan = world(TARGET, {**DONOR, "acme/m.py": "from acme.util import Plan\ndef f(): return Plan()\n"}).plan(
        "acme.m:f", kind="backport"
    )
    assert [f.message.partition("1.0: ")[2] for f in plan.findings] == [
        "members only there: extra, prop; members differ: __init__, changed"
    ]


def test_members_in_branches_and_of_tuples_count_like_others(world) -> None:
    def plan(value: str) -> str:
        return (
            f"class Plan:\n    a, b = 1, {value}\n    try: c = 1\n    except E: d = 1\n    def f(self): return self.d\n"
        )

    here, there = ({"acme/__init__.py": "", "acme/util.py": plan(value)} for value in ("2", "3"))
    made = world(here, {**there, "acme/m.py": "from acme.util import Plan\ndef f(): return Plan.d\n"})
    found = made.plan("acme.m:f", kind="backport").findings
    assert [f.message.partition("1.0: ")[2] for f in found] == ["members differ: a, b"]


def test_constants_and_helpers_of_the_donors_module(world) -> None:
    assert set(found(world, "acme.runner:uses_own")) == {("PK318", "helper"), ("PK318", "own_constant")}
    here = world(TARGET, DONOR)
    generated = here.generate("acme.runner:uses_counter", kind="backport")
    assert (generated.uses_counter(), here.module("acme.runner").counter) == (1, 1)


def test_attributes_of_modules_are_looked_up_too(world) -> None:
    findings = found(world, "acme.runner:uses_envs")
    assert set(findings) == {
        ("PK318", "envs.NEW_FLAG"),
        ("PK311", "envs.FLAG"),
        ("PK311", "envs.read"),
        ("PK318", "pack.leaf.newer"),
    }


def test_guarded_imports_are_copied_and_fall_back(world) -> None:
    here = world(TARGET, DONOR)
    plan = here.plan("acme.runner:uses_kernel", kind="backport")
    assert codes(plan) == ["PK317"]
    assert len(plan.statements) == 2
    generated = here.generate("acme.runner:uses_kernel", kind="backport")
    assert generated.uses_kernel() == (None, False, 6.283185307179586)


def test_modules_that_no_upstream_shows_are_taken_as_they_are(world) -> None:
    plan = world(TARGET, DONOR).plan("acme.runner:uses_op", kind="backport")
    assert ([n.statement() for n in plan.imports], codes(plan)) == (["from acme.compiled import op"], [])


def test_the_logger_of_a_module_that_the_target_lacks_keeps_its_name(world) -> None:
    here = world(TARGET, DONOR)
    assert here.generate("acme.runner:logs", kind="backport").logs() == ("acme.runner", "acme.runner")
    assert here.generate("acme.only_new:f", kind="backport").f() == ("acme.only_new", "acme.only_new", "acme.only_new")
    assert here.generate("acme.only_new:h", kind="backport").h() == "acme.only_new"
    assert here.plan("acme.only_new:f", kind="backport").rebindings == {"logger": 'init_logger("acme.only_new")'}
    assert notes(here.plan("acme.only_new:f", kind="backport")) == ["PK630"]
    assert codes(here.plan("acme.only_new:g", kind="backport")) == ["PK318"]
    assert codes(here.plan("acme.only_new:f", kind="backport", late=frozenset({"logger"}))) == ["PK315", "PK318"]


def test_attributes_that_the_targets_class_lacks(world) -> None:
    findings = found(world, "acme.runner:reads")
    assert set(findings) == {
        ("PK312", "plan.extra"),
        ("PK312", "maybe.fresh"),
        ("PK312", "child.prop"),
        ("PK312", "op.known"),
        ("PK311", "plan.changed"),
    }
    assert found(world, "acme.runner:reads", change={"plan.extra": "plan.size"}).keys() == findings.keys() - {
        ("PK312", "plan.extra")
    }


def test_imports_in_the_body_are_looked_up(world) -> None:
    findings = found(world, "acme.runner:imports_inside")
    assert set(findings) == {("PK318", "new_helper"), ("PK318", "thing"), ("PK318", "acme.fresh")}


def test_methods_use_the_targets_class(world) -> None:
    findings = found(world, "acme.runner:Runner.step")
    assert set(findings) == {("PK312", "self.new"), ("PK312", "self.helper")}
    plan = world(TARGET, DONOR).plan("acme.runner:Runner.step", kind="backport")
    assert sorted({e.text for e in plan.edits}) == ["Runner.SEED", "super(Runner, self)"]
    assert set(found(world, "acme.runner:Runner.newer")) == {("PK307", "NEWER")}
    assert set(found(world, "acme.runner:Fresh.m")) == {("PK318", "Fresh")}
    assert set(found(world, "acme.only_new:C.m")) == {("PK318", "C")}


@pytest.mark.parametrize("kind", ["copy", "backport"])
def test_a_backport_between_equal_trees_is_like_a_copy(world, kind) -> None:
    here = world(TARGET, TARGET)
    plan = here.plan("acme.runner:bump", kind=kind)
    assert (codes(plan), [e.text for e in plan.edits]) == ([], ["pass", "_acme_runner.counter"])
