"""Every rule of name resolution, executed: the generated function does what the original does."""

from __future__ import annotations

import inspect
import logging
import sys
import typing

import pytest

from tests.names.world import codes, notes

# ---- imported names (rule 1) --------------------------------------------------------------------------------------


IMPORTS = {
    "acme/tools/__init__.py": "",
    "acme/tools/deep.py": "VALUE = 'deep'\n",
    "acme/tools/near.py": """
        import os.path
        import collections.abc as cabc
        import xml.dom.minidom
        from os.path import join as glue
        from . import deep
        from .deep import VALUE as renamed
        from ..base import ROOT

        def use():
            return (os.path.basename("a/b"), cabc.Mapping, glue("x", "y"), deep.VALUE, renamed, ROOT, xml.dom.minidom.Node)
    """,
    "acme/base.py": "ROOT = object()\n",
}


def test_imported_names_are_the_same_objects(world) -> None:
    here = world(IMPORTS)
    generated = here.generate("acme.tools.near:use")
    assert generated.use() == here.module("acme.tools.near").use()
    assert here.source("acme.tools.near:use").startswith(
        "import collections.abc as cabc\nimport os.path\nimport xml.dom.minidom\nfrom os.path import join as glue\n\n"
        "from acme.base import ROOT\nfrom acme.tools import deep\nfrom acme.tools.deep import VALUE as renamed\n"
    )


GUARDED = {
    "acme/guarded.py": """
        import sys
        try:
            import not_there as fast
            FAST = True
        except ImportError:
            fast = None
            FAST = False
        try:
            from also_not_there import thing
        except ImportError:
            pass
        if sys.version_info >= (3, 0):
            from json import dumps as dump
        else:
            dump = None

        def which():
            return fast, FAST, dump([1])

        def lacking():
            return thing
    """,
}


def test_guarded_imports_give_what_upstream_got(world) -> None:
    generated = world(GUARDED).generate("acme.guarded:which")
    assert generated.which() == (None, False, "[1]")


def test_a_name_that_upstream_may_not_have_fails_when_it_is_used_and_not_before(world) -> None:
    here = world(GUARDED)
    generated = here.generate("acme.guarded:lacking")
    with pytest.raises(AttributeError):
        generated.lacking()
    here.module("acme.guarded").thing = 7
    assert generated.lacking() == 7


TYPES = {
    "acme/types_only.py": """
        from __future__ import annotations
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from acme.never import Heavy

        def typed(a: Heavy, b: list[Heavy] | None = None) -> Heavy:
            c: Heavy = a
            if TYPE_CHECKING:
                assert isinstance(c, Heavy)
            return c

        def untyped(a):
            return a
    """,
    "acme/quoted.py": """
        from typing import TYPE_CHECKING, Literal
        if TYPE_CHECKING:
            from acme.never import Heavy
        class Local: pass

        def quoted(a: "Heavy | None", b: "Local", c: Literal["Heavy", "x"] = "x"):
            d: Heavy = a
            return d

        def at_run_time(a: Literal["x"]):
            return Heavy(a)
    """,
}


def test_names_for_type_checkers_stay_behind_their_guard(world) -> None:
    here = world(TYPES)
    source = here.source("acme.types_only:typed")
    assert source.startswith("from __future__ import annotations\n\nfrom typing import TYPE_CHECKING\n")
    assert "if TYPE_CHECKING:\n    from acme.never import Heavy\n" in source
    assert here.generate("acme.types_only:typed").typed(3) == 3
    assert here.generate("acme.quoted:quoted").quoted(4, None) == 4


def test_quoted_types_can_be_resolved_in_the_generated_module(world) -> None:
    here = world(TYPES)
    generated = here.generate("acme.quoted:quoted")
    hints = typing.get_type_hints(generated.quoted, localns={"Heavy": int})
    assert hints["b"] is here.module("acme.quoted").Local


def test_a_type_checking_name_at_run_time_is_refused(world) -> None:
    here = world(TYPES)
    assert codes(here.plan("acme.quoted:at_run_time")) == ["PK304"]
    changed = {"    return a\n": "    return isinstance(a, Heavy)\n"}
    assert codes(here.plan("acme.types_only:untyped", change=changed)) == ["PK304"]


# ---- names defined in the module (rules 2 and 12) -----------------------------------------------------------------

DEFINED = {
    "acme/log.py": """
        import logging
        logger = logging.getLogger(__name__)
        LIMIT = object()
        def helper(x): return ("upstream", x)
        class Box: pass

        def work(x):
            logger.warning("seen %s", x)
            return helper(x), LIMIT, Box

        def sibling_user(x):
            return helper(x)

        def loop(n):
            return [] if n == 0 else [n, *loop(n - 1)]
    """,
}


def test_definitions_are_imported_from_upstream_and_logs_stay_in_its_namespace(world, caplog) -> None:
    here = world(DEFINED)
    generated = here.generate("acme.log:work")
    module = here.module("acme.log")
    with caplog.at_level(logging.WARNING, "acme.log"):
        assert generated.work(1) == (("upstream", 1), module.LIMIT, module.Box)
    assert [(r.name, r.getMessage()) for r in caplog.records] == [("acme.log", "seen 1")]


def test_a_sibling_with_the_name_of_an_upstream_object_must_be_declared(world) -> None:
    here = world(DEFINED)
    provided = {"helper": "entry acme.log:helper"}
    assert codes(here.plan("acme.log:sibling_user", provided=provided)) == ["PK302"]
    declared = {"provided": provided, "rebind": {"helper": "helper"}}
    plan = here.plan("acme.log:sibling_user", **declared)
    assert (codes(plan), plan.edits, plan.imports) == ([], (), ())
    assert plan.rebindings == {"helper": "entry acme.log:helper"}
    generated = here.generate("acme.log:sibling_user", before="def helper(x): return ('ours', x)\n", **declared)
    assert generated.sibling_user(1) == ("ours", 1)


def test_a_manifest_import_of_the_very_same_thing_is_no_rebinding(world) -> None:
    here = world({"acme/m.py": "from json import dumps\ndef f(x): return dumps(x)\n"})
    assert codes(here.plan("acme.m:f", provided={"dumps": "from json import dumps"})) == []
    assert codes(here.plan("acme.m:f", provided={"dumps": "from pickle import dumps"})) == ["PK302"]
    assert codes(here.plan("acme.m:f", provided={"dumps": "part parts/dumps.py"})) == ["PK302"]


SAME = {
    "acme/__init__.py": "from .log import helper as exported\n",
    "acme/log.py": "state = 0\ndef set():\n    global state\n    state = 1\ndef helper(): ...\nclass helpers: ...\n",
    "acme/m.py": """
        import acme
        from acme import log, exported as helper
        from acme.log import state

        class Box: pass

        limit = 1
        limit = 2

        def f(x): return Box(helper(x), log, state, limit, acme)
    """,
}


@pytest.mark.parametrize(
    ("name", "statement", "expected"),
    [
        ("Box", "from acme.m import Box", []),
        ("helper", "from acme import exported as helper", []),
        ("helper", "from acme.log import helper", []),
        ("helper", "from acme.m import helper", []),
        ("helper", "from acme.log import helpers as helper", ["PK302"]),
        ("log", "from acme import log", []),
        ("log", "import acme.log as log", []),
        ("log", "import acme.m as log", ["PK302"]),
        ("acme", "import acme.log", []),
        ("limit", "from acme.m import limit", ["PK302"]),
        ("Box", "from acme.gone import Box", ["PK302"]),
    ],
)
def test_a_manifest_import_of_the_same_object_by_another_way(world, name, statement, expected) -> None:
    here = world(SAME)
    assert codes(here.plan("acme.m:f", provided={name: statement})) == expected
    if not expected:
        generated = here.generate("acme.m:f", provided={name: statement}, before=f"{statement}\n")
        assert getattr(generated, name) is getattr(here.module("acme.m"), name)


def test_hiding_a_builtin_is_a_rebinding_too(world) -> None:
    here = world({"acme/m.py": "def f(x): return len(x)\n"})
    assert codes(here.plan("acme.m:f", provided={"len": "part parts/len.py"})) == ["PK302"]


def test_names_that_only_deltas_use_come_from_the_manifest(world) -> None:
    here = world(DEFINED)
    change = {"return helper(x)": "return extra(helper(x))"}
    plan = here.plan("acme.log:sibling_user", change=change, provided={"extra": "from own import extra"})
    assert (codes(plan), [need.statement() for need in plan.imports]) == ([], ["from acme.log import helper"])


def test_recursion_means_the_copy_and_says_so(world) -> None:
    here = world(DEFINED)
    plan = here.plan("acme.log:loop")
    assert (notes(plan), plan.rebindings) == (["PK634"], {"loop": "the generated copy itself"})
    generated = here.generate("acme.log:loop", change={"[] if": "['end'] if"})
    assert generated.loop(2) == [2, 1, "end"]


def test_a_renamed_copy_calls_upstream_by_upstreams_name(world) -> None:
    here = world(DEFINED)
    generated = here.generate("acme.log:loop", name="again", change={"def loop": "def again", "[] if": "['end'] if"})
    assert generated.again(2) == [2, 1]


def test_rebind_to_expressions(world) -> None:
    here = world(DEFINED)
    rebind = {"helper": "lambda x: (LIMIT, x)", "Box": "logger.name"}
    generated = here.generate("acme.log:work", rebind=rebind)
    module = here.module("acme.log")
    assert generated.work(1) == ((module.LIMIT, 1), module.LIMIT, "acme.log")
    assert here.plan("acme.log:work", rebind=rebind).rebindings == {
        "helper": "(lambda x: (LIMIT, x))",
        "Box": "logger.name",
    }


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"rebind": {"nothing": "1"}}, ["PK315"]),
        ({"rebind": {"helper": "not an expression"}}, ["PK316"]),
        ({"rebind": {"helper": "unknown_thing"}}, ["PK301"]),
        ({"late": frozenset({"helpers"})}, ["PK315"]),
        ({"late": frozenset({"x"})}, ["PK315"]),
    ],
)
def test_declarations_that_mean_nothing(world, given, found) -> None:
    assert codes(world(DEFINED).plan("acme.log:work", **given)) == found


# ---- globals that functions write (rule 3) ------------------------------------------------------------------------

GLOBALS = {
    "acme/state.py": """
        count = 0
        last = None
        items = {}
        table = None
        several = 1
        several = several + 1

        def bump(by=1):
            '''Doc.'''
            try:
                if by < 0: raise ValueError(by)
            finally:
                global count
                count += by
            return count

        def reset(): global count, last; count = 0; last = "reset"

        def branch(flag):
            if flag:
                global last
            for last in (1, 2): pass
            with manager() as last: pass
            (last, other), *_ = (("pair", 2), 3)
            def inner():
                global count
                count = 40
                return f"{count} {last}"
            return inner()

        def one_line(): global gone; gone = 1; del gone

        class manager:
            def __enter__(self): return "entered"
            def __exit__(self, *exc): return False

        def read(default=several): return count, several, default

        def create():
            global fresh
            fresh = items

        def walrus():
            global table
            return (table := 1)

        def importer():
            global table
            import json as table

        def catcher():
            global table
            try: pass
            except ValueError as table: pass

        def definer():
            global table
            def table(): pass

        def pattern(v):
            global table
            match v:
                case [table]: pass

        def debug():
            global count
            return f"{count=} {count}"
    """,
}


def test_globals_are_read_and_written_in_the_upstream_module(world) -> None:
    here = world(GLOBALS)
    module = here.module("acme.state")
    bump = here.generate("acme.state:bump").bump
    assert (bump(), bump(2), module.count) == (1, 3, 3)
    with pytest.raises(ValueError):
        bump(-1)
    assert module.count == 2
    reset = here.generate("acme.state:reset").reset
    reset()
    assert (module.count, module.last) == (0, "reset")
    assert here.generate("acme.state:branch").branch(True) == "40 pair"
    assert (module.count, module.last) == (40, "pair")
    read = here.generate("acme.state:read").read
    assert read() == (40, 2, 2)
    module.count = 41
    assert read()[0] == 41


def test_globals_that_only_functions_bind(world) -> None:
    here = world(GLOBALS)
    generated = here.generate("acme.state:create")
    generated.create()
    module = here.module("acme.state")
    assert module.fresh is module.items
    assert not hasattr(generated, "fresh")
    here.generate("acme.state:one_line").one_line()
    assert not hasattr(module, "gone")


def test_the_alias_of_the_module_is_told_by_its_name_and_avoids_names_in_use(world) -> None:
    here = world({**GLOBALS, "acme/a_b.py": "x = 1\nx = 2\ndef f(): return x\n", "acme/a/__init__.py": ""})
    assert "import acme.state as _acme_state\n" in here.source("acme.state:read")
    assert "import acme.a_b as _acme_a_b\n" in here.source("acme.a_b:f")
    assert "import acme.a_b as _acme_a_b_\n" in here.source(
        "acme.a_b:f", change={"x\n": "x + (lambda _acme_a_b: 1)(2)\n"}
    )
    other = world({"acme/a_b.py": "x = 1\nx = 2\ndef f(): return x\n", "acme/a/b.py": "", "acme/a/__init__.py": ""})
    assert other.generate("acme.a_b:f").f() == 2
    assert "as _acme_a_b\n" not in other.source("acme.a_b:f")


@pytest.mark.parametrize("name", ["walrus", "importer", "catcher", "definer", "pattern"])
def test_bindings_that_no_attribute_can_express_are_refused(world, name) -> None:
    assert codes(world(GLOBALS).plan(f"acme.state:{name}")) == ["PK305"]


def test_an_fstring_that_prints_its_source_is_refused(world) -> None:
    assert codes(world(GLOBALS).plan("acme.state:debug")) == ["PK316"]


def test_a_delta_that_writes_an_upstream_global_writes_upstreams(world) -> None:
    here = world({"acme/m.py": "flag = 1\ndef f():\n    return flag\n"})
    change = {"    return flag": "    global flag\n    flag = 2\n    return flag"}
    assert here.generate("acme.m:f", change=change).f() == 2
    assert here.module("acme.m").flag == 2


# ---- builtins, unknown names, module attributes (rule 4) -----------------------------------------------------------

ATTRIBUTES = {
    "acme/attrs.py": """
        import sys
        def print(*args): return ("own print", args)

        def builtin():
            return print(max(1, 2))

        def attributes():
            return __name__, __file__, sys.modules[__name__], __package__, globals() is sys.modules[__name__].__dict__

        def unknown():
            return unheard_of + helpr()

        def helper(): pass

        def evaluates(text):
            return eval(text)
    """,
}


def test_a_builtin_that_the_module_binds_is_the_modules(world) -> None:
    here = world(ATTRIBUTES)
    assert here.generate("acme.attrs:builtin").builtin() == ("own print", (2,))


def test_module_attributes_are_upstreams(world) -> None:
    here = world(ATTRIBUTES)
    generated = here.generate("acme.attrs:attributes")
    module = here.module("acme.attrs")
    assert generated.attributes() == ("acme.attrs", module.__file__, module, "acme", True)
    assert notes(here.plan("acme.attrs:attributes")) == ["PK630"]


def test_names_that_nothing_binds_are_reported_with_near_ones(world) -> None:
    plan = world(ATTRIBUTES).plan("acme.attrs:unknown")
    assert codes(plan) == ["PK301"]
    assert {f.message.split("`")[1]: f.details for f in plan.findings}["helpr"] == ("near: helper",)


def test_evaluated_text_is_noted(world) -> None:
    assert notes(world(ATTRIBUTES).plan("acme.attrs:evaluates")) == ["PK635"]


@pytest.mark.parametrize(
    ("decorator", "noted"),
    [
        ("register('x')", True),
        ("lib.custom_op('a::b')", True),
        ("app.get('/x')", True),
        ("REGISTRY.register_module", True),
        ("wraps(g)", False),
        ("cached.get", False),
    ],
)
def test_registering_decorators_are_noted(world, decorator, noted) -> None:
    here = world(
        {"acme/m.py": f"register = lib = app = REGISTRY = wraps = g = cached = None\n@{decorator}\ndef f(): pass\n"}
    )
    assert notes(here.plan("acme.m:f")) == (["PK631"] if noted else [])


# ---- what a method takes from its class (rules 5 to 7) ------------------------------------------------------------

CLASSES = {
    "acme/cls.py": """
        from functools import wraps
        def traced(f):
            @wraps(f)
            def inner(*a, **k): return ("traced", f(*a, **k))
            return inner

        class Base:
            def m(self, *a): return ("Base", *a)
            @classmethod
            def make(cls): return ("made", cls.__name__)

        class A(Base):
            N = 3
            KIND = "kind"
            def _deco(f):
                @wraps(f)
                def inner(*a, **k): return ("deco", f(*a, **k))
                return inner
            class State: value = 5
            class Inner(Base):
                def m(me): return ("Inner", super().m(), __class__.__name__)
            def __init__(self): self.__hidden = 1; self.__kw = {}
            def m(this, n=N, *, kind: "KIND" = KIND):
                return ("A", n, kind, super().m(1), [super(A, this).m(i) for i in range(2)], f"{super().m()!r}", __class__)
            def nested(self):
                def late(): return self.m2()
                def own(me): return super().m(2)
                return own(self), (lambda s: super().m(3))(self)
            @classmethod
            def make(cls): return super().make()
            @staticmethod
            def static(): return super().m()
            def generator(self): return list(super().m(i) for i in range(1))
            @_deco
            def decorated(self, s=State, t: N = 1) -> State: return s.value
            def private(self, __p=2, *, __q=4):
                def __local(__p): return __p
                global __module_private
                __module_private = __local(__p)
                self.__other(**{"_A__q": __q})
                try: self.__missing
                except AttributeError as __e: got = str(__e).split("'")[-2]
                import json as __json
                from os import sep as __sep
                for self.__hidden, __i in [(9, 1)]: pass
                class Nested:
                    __x = 1
                    def g(self): return self.__x
                match {"k": 1, "r": 2}:
                    case {"k": __k, **__r}: pass
                f = lambda __z: __z
                return self.__hidden, self._A__hidden, got, __json.dumps(__q), Nested().g(), __k, __r, f"{self.__hidden}{__i}", f(0)
            def __other(self, *, __q): self.__kw = __q
            @traced
            def wrapped(self): return super().m()
            @property
            def size(self): return self.N
            @size.setter
            def size(self, value): self.N = value + len(super().m())
            async def waits(self): return super().m()
            def passes(self): return super
            def hides(self): return [super().m() for self in [1]]

        class Twice:
            V = 1
            def f(self, v=V): return v
            V = 2
            W = 5
        class Late:
            def f(self, v=Z): return v
            Z = 7
    """.replace("class Late:", "Z = 'module'\n        class Late:"),
}


@pytest.mark.parametrize("name", ["m", "nested", "private", "decorated", "wrapped"])
@pytest.mark.parametrize("placement", ["module", "class"])
def test_a_method_outside_its_class_does_what_it_did(world, name, placement) -> None:
    here = world(CLASSES)
    cls = here.module("acme.cls").A
    expected = getattr(cls(), name)()
    written = vars(here.module("acme.cls")).pop("_A__module_private", None)
    if placement == "module":
        got = getattr(here.generate(f"acme.cls:A.{name}"), name)(cls())
    else:
        before = "from acme.cls import A as Up\n"
        generated = here.generate(f"acme.cls:A.{name}", generated_class="Sub", bases="Up", before=before)
        got = getattr(generated.Sub(), name)()
    assert got == expected
    assert vars(here.module("acme.cls")).get("_A__module_private") == written


def test_super_is_written_with_the_class_and_the_real_first_argument(world) -> None:
    here = world(CLASSES)
    texts = sorted({e.text for e in here.plan("acme.cls:A.m").edits if e.reason == "super"})
    assert texts == ["A", "super(A, this)"]
    inner = here.plan("acme.cls:A.Inner.m")
    assert sorted({e.text for e in inner.edits}) == ["A.Inner", "super(A.Inner, me)"]
    assert here.generate("acme.cls:A.Inner.m").m(here.module("acme.cls").A.Inner()) == ("Inner", ("Base",), "Inner")
    assert notes(inner) == ["PK633"]


def test_class_methods_properties_and_coroutines(world) -> None:
    here = world(CLASSES)
    cls = here.module("acme.cls").A
    before = "from acme.cls import A as Up\n"
    sub = here.generate("acme.cls:A.make", generated_class="Sub", bases="Up", before=before).Sub
    assert sub.make() == ("made", "Sub")
    sub = here.generate("acme.cls:A.size", generated_class="Sub", bases="Up", before=before).Sub
    obj = sub()
    obj.size = 4
    assert (obj.size, isinstance(sub.__dict__["size"], property)) == (5, True)
    coroutine = here.generate("acme.cls:A.waits").waits(cls())
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    assert stopped.value.value == ("Base",)
    assert here.generate("acme.cls:A.generator").generator(cls()) == [("Base", 0)]


@pytest.mark.parametrize("name", ["static", "passes", "hides"])
def test_super_that_cannot_be_written_out_is_refused(world, name) -> None:
    assert codes(world(CLASSES).plan(f"acme.cls:A.{name}")) == ["PK306"]


def test_the_class_is_reached_through_its_module_where_its_name_means_something_else(world) -> None:
    here = world(CLASSES)
    before = "import acme.cls\n"
    generated = here.generate(
        "acme.cls:A.generator", generated_class="A", bases="acme.cls.A", before=before, provided={"A": "class A"}
    )
    assert generated.A().generator() == [("Base", 0)]
    plan = here.plan("acme.cls:A.generator", change={"return list": "A = 1; return list"})
    assert "super(_acme_cls.A, self)" in [e.text for e in plan.edits]


def test_a_whole_class_keeps_its_own_super_and_private_names(world) -> None:
    here = world(CLASSES)
    for name in ("A.Inner", "Base"):
        plan = here.plan(f"acme.cls:{name}")
        assert (codes(plan), plan.edits) == ([], ())
    generated = here.generate("acme.cls:A.Inner")
    assert generated.Inner().m() == ("Inner", ("Base",), "Inner")


def test_defaults_and_decorators_read_the_class(world) -> None:
    here = world(CLASSES)
    plan = here.plan("acme.cls:A.decorated")
    assert sorted({e.text for e in plan.edits}) == ["A.N", "A.State", "A._deco"]
    assert notes(plan) == ["PK632"]
    module = here.module("acme.cls")
    signature = inspect.signature(here.generate("acme.cls:A.decorated").decorated)
    assert signature == inspect.signature(module.A.decorated)
    assert here.generate("acme.cls:Late.f").f(None) == "module"


@pytest.mark.parametrize(
    ("source", "symbol"),
    [
        (CLASSES["acme/cls.py"], "Twice.f"),
        ("import enum\nclass E(enum.Enum):\n    A = 1\n    def f(self, a=A): return a\n", "E.f"),
        (
            "from dataclasses import dataclass, field\n@dataclass\nclass D:\n    a: int = field(default=1)\n    def f(self, a=a): return a\n",
            "D.f",
        ),
    ],
)
def test_class_names_that_the_class_does_not_keep_are_refused(world, source, symbol) -> None:
    assert codes(world({"acme/m.py": source}).plan(f"acme.m:{symbol}")) == ["PK307"]


def test_private_names_follow_the_upstream_class(world) -> None:
    here = world(CLASSES)
    assert not here.plan("acme.cls:A.__other", generated_class="_A").edits
    assert {e.text for e in here.plan("acme.cls:A.__other", generated_class="Sub").edits} == {
        "_A__other",
        "_A__q",
        "_A__kw",
    }
    module_level = world({"acme/m.py": "def f(x): return x.__secret\n"})
    assert codes(module_level.plan("acme.m:f")) == []
    assert codes(module_level.plan("acme.m:f", generated_class="G")) == ["PK307"]


def test_names_that_the_generated_class_hides_from_headers(world) -> None:
    here = world(
        {"acme/m.py": "def size(x): return x\nclass A:\n    @size\n    def f(self, s=size): return s(1), size(2)\n"}
    )
    source = here.source("acme.m:A.f", generated_class="G", class_names=frozenset({"size"}))
    assert "@_acme_m.size\n" in source
    generated = here.generate(
        "acme.m:A.f", generated_class="G", class_names=frozenset({"size"}), before="import acme.m\n"
    )
    assert generated.G().f() == (1, 2)


OVERLOADS = {
    "acme/over.py": """
        from typing import overload
        class A:
            @overload
            def f(self, x: int) -> int: ...
            @overload
            def f(self, x: str) -> str: ...
            def f(self, x): return x * 2
        @overload
        def g(x: int) -> int: ...
        @overload
        def g(x: str) -> str: ...
        def g(x): return (x, A)
        def user(): return g(1)
    """,
}


def test_overloads_travel_with_their_implementation(world) -> None:
    here = world(OVERLOADS)
    generated = here.generate("acme.over:A.f", generated_class="G")
    assert generated.G().f("a") == "aa"
    if sys.version_info >= (3, 11):
        assert len(typing.get_overloads(generated.G.f)) == 2
    assert here.generate("acme.over:g").g(1) == (1, here.module("acme.over").A)
    assert [need.statement() for need in here.plan("acme.over:user").imports] == ["from acme.over import g"]


# ---- relative imports in bodies (rule 8) --------------------------------------------------------------------------

RELATIVE = {
    "acme/top.py": "name = 'top'\n",
    "acme/pack/__init__.py": "def here():\n    from . import leaf\n    from .leaf import name\n    return leaf.name, name\n",
    "acme/pack/leaf.py": """
        name = 'leaf'
        def f():
            from . import other
            from .other import name as n1, name
            from ..top import (
                name as n2,
            )
            from \\
                .. \\
                import top
            from.other import name as n3; from .. import top as t2
            def inner():
                from ..pack.other import name
                return name
            return other.name, n1, name, n2, top.name, n3, t2.name, inner()
        def too_far():
            from ...beyond import x
    """,
    "acme/pack/other.py": "name = 'other'\n",
}


def test_relative_imports_in_bodies_become_absolute_and_stay_there(world) -> None:
    here = world(RELATIVE)
    generated = here.generate("acme.pack.leaf:f")
    assert generated.f() == here.module("acme.pack.leaf").f()
    assert not {"other", "top"} & vars(generated).keys()
    assert here.generate("acme.pack:here").here() == ("leaf", "leaf")
    edits = [e.text.strip() for e in here.plan("acme.pack.leaf:f").edits]
    assert edits == ["acme.pack", "acme.pack.other", "acme.top", "acme", "acme.pack.other", "acme", "acme.pack.other"]


def test_relative_imports_that_are_not_upstreams_are_refused(world) -> None:
    here = world(RELATIVE)
    assert codes(here.plan("acme.pack.leaf:too_far")) == ["PK314"]
    change = {"    def inner": "    from .new import thing\n    def inner"}
    assert codes(here.plan("acme.pack.leaf:f", change=change)) == ["PK314"]


# ---- late binding (rule 9) ----------------------------------------------------------------------------------------

LATE = {
    "acme/late.py": """
        from json import dumps
        VALUE = 1
        def helper(): return "helper"
        def f(default=VALUE):
            return helper(), dumps([default]), VALUE, len("x")
    """,
}


@pytest.mark.parametrize(
    ("late", "expected"), [(False, "helper"), (True, "patched"), (frozenset({"helper"}), "patched")]
)
def test_a_later_patch_takes_effect_where_late_binding_is_asked_for(world, late, expected, monkeypatch) -> None:
    here = world(LATE)
    generated = here.generate("acme.late:f", late=late)
    monkeypatch.setattr(here.module("acme.late"), "helper", lambda: "patched")
    assert generated.f() == (expected, "[1]", 1, 1)


def test_late_binding_leaves_headers_and_builtins_alone(world, monkeypatch) -> None:
    here = world(LATE)
    source = here.source("acme.late:f", late=True)
    assert "def f(default=VALUE):" in source
    assert "return _acme_late.helper(), _acme_late.dumps([default]), _acme_late.VALUE, len(" in source


# ---- names that deltas bind (rule 10) -----------------------------------------------------------------------------

BOUND = {
    "acme/bound.py": """
        model = "global"
        def helper(x): return x
        def f(batch):
            size = len(batch)
            def inner():
                return model
            return inner(), helper(size)

        class C:
            kind = model
            def m(self): return model
    """,
}


@pytest.mark.parametrize(
    ("change", "bad"),
    [
        ({"    size = len": "    model = 1\n    size = len"}, True),
        ({"    size = len": "    for helper in (): pass\n    size = len"}, True),
        ({"    size = len": "    import sys as model\n    size = len"}, True),
        ({"    size = len": "    len = max\n    size = len"}, True),
        ({"(batch):": "(batch, helper=None):"}, True),
        ({"    size = len": "    [model := 1 for _ in ()]\n    size = len"}, True),
        ({"        return model": "        model = 2\n        return model"}, True),
        ({"    size = len": "    other = 1\n    size = len"}, False),
        ({"    size = len": "    [model for model in ()]\n    size = len"}, False),
        ({"    size = len": "    def g():\n        model = 1\n    size = len"}, False),
        ({"    size = len": "    global model\n    model = 1\n    size = len"}, False),
    ],
)
def test_a_delta_must_not_bind_what_upstream_reads_from_outside(world, change, bad) -> None:
    plan = world(BOUND).plan("acme.bound:f", change=change)
    assert codes(plan) == (["PK303"] if bad else [])


def test_a_member_that_a_class_body_reads_as_global_is_caught_only_there(world) -> None:
    here = world(BOUND)
    assert codes(here.plan("acme.bound:C", change={"    kind": "    model = 1\n    kind"})) == ["PK303"]
    assert codes(here.plan("acme.bound:C", change={"    kind": "    helper = 1\n    kind"})) == []


# ---- constants and delegates --------------------------------------------------------------------------------------


def test_constants_keep_their_expression(world) -> None:
    here = world(
        {
            "acme/m.py": "import math\nBASE = 2\nTABLE = {BASE: math.tau, 'f': lambda: BASE}\nclass C:\n    A = 1\n    B = A + BASE\n"
        }
    )
    generated = here.generate("acme.m:TABLE")
    assert (generated.TABLE[2], generated.TABLE["f"]()) == (6.283185307179586, 2)
    assert here.generate("acme.m:C.B").B == 3


def test_the_body_of_a_delegate_is_ours(world) -> None:
    here = world(CLASSES)
    body = {"this, n=N": "self, n=N"}
    text = here.render(here.symbol("acme.cls:A.m"), body)
    head = text[: text.index("return")]
    change = {**body, text.removeprefix(head): "return ('ours', helper, n, super().m(n, kind=kind)[1], self.__x)\n"}
    before = "from acme.cls import A as Up\nhelper = 'helper'\n"
    given = {"kind": "delegate", "generated_class": "Sub", "provided": {"helper": "part", "wraps": "part"}}
    plan = here.plan("acme.cls:A.m", change=change, **given)
    assert {e.text for e in plan.edits} == {"A.N", "A.KIND"}
    sub = here.generate("acme.cls:A.m", change=change, bases="Up", before=before, **given).Sub
    obj = sub()
    obj._Sub__x = 8
    assert obj.m() == ("ours", "helper", 3, 3, 8)


def test_a_function_local_class_is_refused(world) -> None:
    from dataclasses import replace

    from afd_patchkit.names.resolve import NameContext, resolve_names
    from afd_patchkit.source.text import Text

    here = world(CLASSES)
    symbol = replace(here.symbol("acme.cls:A.m"), in_function=True)
    context = NameContext(symbol, "module", None, "m", "g", "copy", False, {}, {}, here.target, here.target)
    assert codes(resolve_names(Text(here.render(symbol, {}).encode()), context)) == ["PK306"]
    assert codes(resolve_names(Text(b"def f(:\n"), context)) == ["PK316"]
