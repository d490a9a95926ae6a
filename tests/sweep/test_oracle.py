"""The oracle must accept what is upstream's function and notice whatever is not."""

from __future__ import annotations

import ast
import copy
import dis
import importlib.util
import textwrap
from pathlib import Path
from types import CodeType

import pytest

from tools.oracles.sweep.code import constant, difference, find_code
from tools.oracles.sweep.judge import UpstreamFile, context_names, future_imports, in_context, judge
from tools.oracles.sweep.rewrite import Rebinding
from tools.oracles.sweep.scopes import Scopes, bindings

UPSTREAM = '''\
from __future__ import annotations

import contextlib
import os.path
from functools import partial as bind

from . import sibling
from .tools import wrap, twice

LIMIT = 3
counter = 0


@wrap(level=1)
@twice
def plain(a, b: int = 2, *rest, c=LIMIT, **more) -> list[int]:
    """Documented."""
    # kept
    total = 0
    for item in rest:
        if item > 1 and a < b:
            total += item * 10
    with contextlib.suppress(ValueError, KeyError):
        total -= len(os.path.join("x", f"{a!r:>4}"))
    try:
        return [x + 1.0 for x in rest] + [total, bind, b"raw", None, -0.0]
    except (OSError, RuntimeError):
        return [c, more, {"k", "l"}]


async def steady(source):
    async for part in source:
        yield await part


def outer():
    state = 1

    def inner():
        nonlocal state
        state += 1
        return state

    return inner


def bump(by):
    global counter
    try:
        counter += by
    finally:
        return counter


def late():
    from . import sibling as near
    from .tools import twice
    return near, twice, sibling


class Base:
    size = 4

    def __init__(self, n=size):
        super().__init__()
        self.__n = n

    def kind(self):
        return __class__

    @property
    def value(self):
        return self.__n

    @value.setter
    def value(self, new):
        self.__n = new

    def simple(self, x, *, flag=True):
        return x if flag else not x
'''
MODULE = "acme.core"
HEAD = (
    "from __future__ import annotations\n\nimport contextlib\nimport os.path\nfrom functools import partial as bind\n\n"
    "from acme.core import LIMIT\nfrom acme.tools import wrap, twice\n\n\n"
)


@pytest.fixture(scope="module")
def upstream() -> UpstreamFile:
    return UpstreamFile(MODULE, UPSTREAM)


def group(upstream: UpstreamFile, qualname: str):
    return [f for f in upstream.functions if f.qualname == qualname]


def text_of(upstream: UpstreamFile, qualname: str) -> str:
    parts = ["\n".join(upstream.lines[f.first_line - 1 : f.node.end_lineno]) + "\n" for f in group(upstream, qualname)]
    return textwrap.dedent("\n".join(parts))


def check(
    upstream: UpstreamFile, qualname: str, text: str, *facts: Rebinding, head: str = HEAD, container: str | None = None
):
    return judge(upstream, group(upstream, qualname), head + text, facts, container=container)


@pytest.mark.parametrize("qualname", ["plain", "steady", "outer", "Base.simple"])
def test_a_verbatim_copy_is_verbatim(upstream, qualname):
    verdict = check(upstream, qualname, text_of(upstream, qualname))
    assert (verdict.status, verdict.detail) == ("verbatim", "")


def test_a_member_of_a_class_is_verbatim(upstream):
    text = "class Ours:\n" + textwrap.indent(text_of(upstream, "Base.simple"), "    ")
    assert check(upstream, "Base.simple", text, container="Ours").status == "verbatim"


MUTATIONS = [
    ("plain", "item * 10", "item * 11", "line"),
    ("plain", "item * 10", "item + 10", "line"),
    ("plain", "total = 0\n", "total = 0 \n", "line"),
    ("plain", "@twice\n", "", "decorators"),
    ("plain", "@wrap(level=1)\n@twice\n", "@twice\n@wrap(level=1)\n", "decorators"),
    ("plain", "level=1", "level=True", "decorators"),
    ("plain", "= 2", "= 3", "parameters"),
    ("plain", "c=LIMIT", "c=None", "parameters"),
    ("plain", "b: int", "b: float", "parameters"),
    ("plain", "b: int", "b", "parameters"),
    ("plain", "*rest, c", "*rest, d", "parameters"),
    ("plain", "list[int]", "list[str]", "return annotation"),
    ("plain", " -> list[int]", "", "return annotation"),
    ("plain", '    """Documented."""\n', "", "lines"),
    ("plain", "    # kept\n", "", "lines"),
    ("plain", "# kept", "# lost", "line"),
    ("steady", "async def", "def", "does not compile"),
    ("outer", "        nonlocal state\n", "", "lines"),
    ("Base.simple", "*, flag", "flag", "parameters"),
]


@pytest.mark.parametrize(("qualname", "old", "new", "word"), MUTATIONS)
def test_a_changed_copy_is_wrong(upstream, qualname, old, new, word):
    text = text_of(upstream, qualname)
    assert text.count(old) == 1
    verdict = check(upstream, qualname, text.replace(old, new))
    assert verdict.status == "wrong"
    assert word in verdict.detail


CODE = [
    ("a + 1", "a - 1", "instructions"),
    ("a + 1", "a + True", "constant"),
    ("a + 1", "a + 1.0", "constant"),
    ("a + 0.0", "a + -0.0", "constant"),
    ("'x'", "b'x'", "constant"),
    ("a.b", "a.c", "co_names"),
    ("a < b < 3", "a < b <= 3", "instructions"),
    ("f'{a!r}'", "f'{a!s}'", "instructions"),
    ("f'{a:>4}'", "f'{a:<4}'", "constant"),
    ("a in {1, 2}", "a in (1, 2)", "constant"),
    ("lambda x: x + 1", "lambda x: x + 2", "constant"),
    ("lambda x: x", "lambda y: y", "co_varnames"),
    ("[i for i in a]", "[i for i in a if i]", ""),
    ("(i async for i in a)", "(i for i in a)", ""),
    ("a[1:2]", "a[1:3]", "constant"),
    ("a and b", "a or b", "instructions"),
    ("g(a, k=1)", "g(a, j=1)", "constant"),
]


@pytest.mark.parametrize(("one", "other", "word"), CODE)
def test_code_objects_that_differ(one, other, word):
    def code(expression: str) -> CodeType:
        found = find_code(compile(f"async def f(a, b):\n    return {expression}\n", "x", "exec"), ["f"], 1)
        assert found
        return found

    assert difference(code(one), code(one)) is None
    found = difference(code(one), code(other))
    assert found is not None
    assert word in found


BLOCKS = [
    ("try:\n  g()\nexcept OSError:\n  h()\n", "try:\n  g()\nexcept ValueError:\n  h()\n"),
    ("try:\n  g()\nexcept OSError:\n  h()\n", "try:\n  g()\n  h()\nexcept OSError:\n  pass\n"),
    ("try:\n  g()\nfinally:\n  h()\n", "try:\n  g()\nexcept BaseException:\n  h()\n"),
    ("with g():\n  h()\n", "g()\nh()\n"),
    ("class K:\n  x = 1\n", "class K:\n  x = 2\n"),
    ("for i in a:\n  break\nelse:\n  g()\n", "for i in a:\n  break\ng()\n"),
    ("global z\nz = 1\n", "z = 1\n"),
    ("def n():\n  return a\n", "def n():\n  return 0\n"),
]


@pytest.mark.parametrize(("one", "other"), BLOCKS)
def test_blocks_that_differ(one, other):
    def code(body: str) -> CodeType:
        found = find_code(compile("def f(a):\n" + textwrap.indent(body, "  "), "x", "exec"), ["f"], 1)
        assert found
        return found

    assert difference(code(one), code(one)) is None
    assert difference(code(one), code(other)) is not None


def test_places_do_not_count():
    source = "def f(a):\n    class K:\n        x = 1\n        def m(self): return [i for i in a]\n    return K\n"
    one = find_code(compile(source, "one", "exec"), ["f"], None)
    other = find_code(compile("\n\n\n" + source, "other", "exec"), ["f"], None)
    assert one
    assert other
    assert difference(one, other) is None


def test_a_class_in_a_function_that_differs_is_noticed():
    source = "def f(a):\n    class K:\n        x = 1\n        def m(self): return a\n    return K\n"
    one = find_code(compile(source, "x", "exec"), ["f"], None)
    for old, new in [("x = 1", "x = 2"), ("return a", "return -a"), ("x = 1", "y = 1")]:
        other = find_code(compile("\n" + source.replace(old, new), "x", "exec"), ["f"], None)
        assert one
        assert other
        assert difference(one, other) is not None


def test_lost_future_import_is_wrong(upstream):
    head = HEAD.replace("from __future__ import annotations\n", "")
    assert "co_flags" in check(upstream, "Base.simple", text_of(upstream, "Base.simple"), head=head).detail


def test_text_before_or_after_is_wrong(upstream):
    text = text_of(upstream, "Base.simple")
    assert "is not the entry" in check(upstream, "Base.simple", text + "\ndef more(): pass\n").detail
    assert "at module level" in check(upstream, "Base.simple", text + "\nprint(1)\n").detail
    assert "definitions" in check(upstream, "Base.simple", "").detail


# ---- what names mean -----------------------------------------------------------------------------------------------

HEADS = [
    ("from acme.tools import wrap, twice", "from acme.core import wrap, twice", True),
    ("from acme.tools import wrap, twice", "from acme.other import wrap, twice", False),
    ("from acme.tools import wrap, twice", "from acme.tools import wrap as twice, twice as wrap", False),
    ("import contextlib\n", "from acme.core import contextlib\n", True),
    ("import contextlib\n", "", False),
    ("import os.path\n", "import os\n", True),
    ("import os.path\n", "import posixpath as os\n", False),
    ("from functools import partial as bind", "from acme.core import bind", True),
    ("from functools import partial as bind", "from functools import partialmethod as bind", False),
    ("from acme.core import LIMIT", "from acme.core import LIMIT, len", False),
]


@pytest.mark.parametrize(("old", "new", "right"), HEADS)
def test_global_names_lead_to_upstreams_objects(upstream, old, new, right):
    assert old in HEAD
    verdict = check(upstream, "plain", text_of(upstream, "plain"), head=HEAD.replace(old, new))
    assert (verdict.status == "verbatim") is right, verdict.detail


REBOUND = [
    (
        "bump",
        "import acme.core as _core\ndef bump(by):\n    pass\n    try:\n        _core.counter += by\n    finally:\n        return _core.counter\n",
        [Rebinding("name", "counter", "_core.counter")],
    ),
    (
        "late",
        """\
from acme.core import sibling
def late():
    from acme import sibling as near
    from acme.tools import twice
    return near, twice, sibling
""",
        [Rebinding("import", ".", "acme"), Rebinding("import", ".tools", "acme.tools")],
    ),
    (
        "Base.__init__",
        "from acme.core import Base\ndef __init__(self, n=Base.size):\n    super(Base, self).__init__()\n    self._Base__n = n\n",
        [
            Rebinding("class-scope", "size", "Base.size"),
            Rebinding("super", "super", "Base"),
            Rebinding("mangled", "__n", "_Base__n"),
        ],
    ),
    (
        "Base.kind",
        "from acme import core\ndef kind(self):\n    return core.Base\n",
        [Rebinding("class", "__class__", "core.Base")],
    ),
    (
        "Base.value",
        "@property\ndef value(self):\n    return self._Base__n\n@value.setter\ndef value(self, new):\n    self._Base__n = new\n",
        [Rebinding("mangled", "__n", "_Base__n")],
    ),
]


@pytest.mark.parametrize(("qualname", "text", "facts"), REBOUND)
def test_declared_rebindings(upstream, qualname, text, facts):
    verdict = check(upstream, qualname, text, *facts)
    assert (verdict.status, verdict.detail) == ("rebound", "")
    # as a member of a generated class, mangling and all
    imports = "".join(line for line in text.splitlines(keepends=True) if line.startswith(("import", "from")))
    inside = "class Ours:\n" + textwrap.indent(text.removeprefix(imports), "    ")
    assert check(upstream, qualname, imports + inside, *facts, container="Ours").status == "rebound"


@pytest.mark.parametrize(("qualname", "text", "facts"), REBOUND)
def test_every_fact_must_be_declared_and_nothing_else(upstream, qualname, text, facts):
    for fact in facts:
        assert check(upstream, qualname, text, *(f for f in facts if f is not fact)).status == "wrong"
    more = Rebinding("name", "absent", "absent")
    assert check(upstream, qualname, "from acme.core import absent\n" + text, *facts, more).status == "wrong"


WRONG_FACTS = [
    ("bump", "_core.counter", "_core.other", Rebinding("name", "counter", "_core.other"), "counter"),
    (
        "bump",
        "import acme.core as",
        "import acme.other as",
        Rebinding("name", "counter", "_core.counter"),
        "acme.other.counter",
    ),
    ("Base.kind", "core.Base", "core.LIMIT", Rebinding("class", "__class__", "core.LIMIT"), "acme.core.LIMIT"),
    ("Base.value", "_Base__n", "_Other__n", Rebinding("mangled", "__n", "_Other__n"), "it is _Base__n"),
]


@pytest.mark.parametrize(("qualname", "old", "new", "fact", "word"), WRONG_FACTS)
def test_a_declared_rebinding_must_mean_the_same(upstream, qualname, old, new, fact, word):
    text = next(text for name, text, _ in REBOUND if name == qualname)
    verdict = check(upstream, qualname, text.replace(old, new), fact)
    assert verdict.status == "wrong"
    assert word in verdict.detail


def test_a_wrong_relative_import_is_noticed(upstream):
    _, text, facts = REBOUND[1]
    wrong = [Rebinding("import", ".", "acme.core"), facts[1]]
    assert (
        "it is acme"
        in check(
            upstream, "late", text.replace("from acme import sibling as", "from acme.core import sibling as"), *wrong
        ).detail
    )


NOT_CARRIED = [
    ("bump", "writes counter"),
    ("Base.__init__", "super() means another class"),
    ("Base.kind", "__class__ means another class"),
    ("Base.value", "__n is private to Base"),
]


@pytest.mark.parametrize(("qualname", "word"), NOT_CARRIED)
def test_verbatim_text_that_means_something_else_is_wrong(upstream, qualname, word):
    verdict = check(upstream, qualname, text_of(upstream, qualname))
    assert verdict.status == "wrong"
    assert word in verdict.detail


def test_super_in_another_class_is_wrong(upstream):
    text = "class Base:\n" + textwrap.indent(text_of(upstream, "Base.kind"), "    ")
    assert "another class" in check(upstream, "Base.kind", text, container="Base").detail


def test_an_explicit_super_needs_no_cell():
    file = UpstreamFile("acme.m", "class K:\n    def f(self): return super(K, self).f()\n")
    text = "from acme.m import K\ndef f(self): return super(K, self).f()\n"
    assert judge(file, group(file, "K.f"), text).status == "verbatim"
    inside = "from acme.m import K\nclass O:\n    def f(self): return super(K, self).f()\n"
    assert judge(file, group(file, "K.f"), inside, container="O").status == "verbatim"
    assert judge(file, group(file, "K.f"), text.replace("super(K,", "super(int,")).status == "wrong"


def test_a_class_scope_default_is_wrong_unless_rebound():
    file = UpstreamFile("acme.m", "size = 1\nclass K:\n    size = 4\n    def f(self, n=size): return n\n")
    text = "from acme.m import size\ndef f(self, n=size): return n\n"
    assert "class body" in judge(file, group(file, "K.f"), text).detail


def test_a_global_that_functions_assign_may_not_be_imported_by_value(upstream):
    file = UpstreamFile("acme.m", "n = 0\ndef up():\n    global n\n    n += 1\ndef get(): return n\n")
    text = "from acme.m import n\ndef get(): return n\n"
    assert "by value" in judge(file, group(file, "get"), text).detail


def test_the_right_one_of_several_definitions():
    file = UpstreamFile("acme.m", "if A:\n    def f(): return 1\nelse:\n    def f(): return 2\n")
    first, second = group(file, "f")
    assert judge(file, [second], "def f(): return 2\n").status == "verbatim"
    assert judge(file, [first], "def f(): return 2\n").status == "wrong"


def test_guarded_imports_lead_to_the_same(upstream):
    file = UpstreamFile("acme.m", "try:\n    import fast as f\nexcept ImportError:\n    f = None\ndef g(): return f\n")
    same = "try:\n    import fast as f\nexcept ImportError:\n    f = None\ndef g(): return f\n"
    assert judge(file, group(file, "g"), same).status == "verbatim"
    assert judge(file, group(file, "g"), "from acme.m import f\ndef g(): return f\n").status == "verbatim"
    assert judge(file, group(file, "g"), "import slow as f\ndef g(): return f\n").status == "wrong"


def test_a_builtin_that_only_type_checkers_see_otherwise():
    file = UpstreamFile(
        "acme.m", "if TYPE_CHECKING:\n    def next(it): ...\n    from a import iter\ndef f(x): return next(x)\n"
    )
    assert judge(file, group(file, "f"), "def f(x): return next(x)\n").status == "verbatim"
    shadowed = UpstreamFile("acme.m", "def next(it): ...\ndef f(x): return next(x)\n")
    assert "not bound" in judge(shadowed, group(shadowed, "f"), "def f(x): return next(x)\n").detail


# ---- the oracle's own machinery against the compiler ---------------------------------------------------------------


def _library(name: str) -> UpstreamFile:
    spec = importlib.util.find_spec(name)
    assert spec
    assert spec.origin
    return UpstreamFile(name, Path(spec.origin).read_text(encoding="utf-8"))


LIBRARY = ["contextlib", "dataclasses", "enum", "typing", "asyncio.tasks", "functools", "unittest.mock"]


@pytest.mark.parametrize("name", LIBRARY)
def test_a_function_compiles_in_its_classes_as_in_its_file(name):
    file = _library(name)
    for function in file.functions:
        names = context_names(file.tree, file.names)
        code = in_context(future_imports(file.tree), names, function.classes, function.node)
        whole = find_code(file.code, function.qualname.split("."), function.first_line)
        assert code
        assert whole
        assert difference(code, whole) is None, function.qualname


@pytest.mark.parametrize("name", LIBRARY)
def test_global_names_are_the_compilers(name):
    """Free names by syntax, as the compiler has them, for all functions of a library module."""
    file = _library(name)
    for function in file.functions:
        node = copy.deepcopy(function.node)
        node.decorator_list, node.returns = [], None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        node.args.defaults = [ast.Constant(0) for _ in node.args.defaults]
        node.args.kw_defaults = [d and ast.Constant(0) for d in node.args.kw_defaults]
        tree = ast.fix_missing_locations(ast.Module([*future_imports(file.tree), node], []))
        code = find_code(compile(tree, "x", "exec", dont_inherit=True), [node.name], None)
        assert code
        wanted = {
            i.argval
            for c in _all(code)
            for i in dis.get_instructions(c)
            if i.opname in {"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL"}
        }
        # names of a class body that the class itself does not bind, local annotations and dead code are not in that list
        assert wanted <= Scopes(node).globals | {"__debug__"}, function.qualname
        seen = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        assert Scopes(node).globals <= seen


def _all(code: CodeType) -> list[CodeType]:
    return [code, *(inner for c in code.co_consts if isinstance(c, CodeType) for inner in _all(c))]


def test_constants_have_types():
    values = [1, 1.0, True, "1", b"1", (1,), (True,), frozenset({1}), 0.0, -0.0, None, ..., 1j]
    assert len({repr(constant(v)) for v in values}) == len(values)
    assert constant(float("nan")) == constant(float("nan"))


def test_bindings_of_a_module():
    body = ast.parse(
        "import a.b\nimport c.d as e\nfrom .f import g as h\nfrom .. import i\nx = y = 1\nfor z in (): pass\n"
        "try:\n    import j\nexcept E as k:\n    j = None\nwith w as v: pass\ndef q(): r = 1\nclass s: t = 1\n(u := 2)\n"
    ).body
    found = bindings(body, "acme.sub")
    assert found == {
        "a": {"a"}, "e": {"c.d"}, "h": {"acme.sub.f.g"}, "i": {"acme.i"}, "x": {"="}, "y": {"="}, "z": {"="},
        "j": {"j", "="}, "k": {"="}, "v": {"="}, "q": {"="}, "s": {"="}, "u": {"="},
    }  # fmt: skip
