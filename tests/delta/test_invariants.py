"""Properties of any deltas on any function: of the standard library, and of our own with unusual layouts."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import subprocess
import sys
import sysconfig
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from afd_patchkit.assemble.verify import check_entry
from afd_patchkit.delta.apply import Applied, apply_deltas
from afd_patchkit.findings.errors import DeltaError, PatchkitError
from afd_patchkit.findings.finding import Position
from afd_patchkit.model import CallChange, ClauseChange, Code, Delta, Range
from afd_patchkit.patterns.search import below, is_elif
from afd_patchkit.patterns.select import Window, compile_pattern, find_all, find_ranges, inside, symbol_windows
from afd_patchkit.source.locate import Symbol, definitions, find_symbol
from afd_patchkit.source.text import SourceFile, Text, load_source
from afd_patchkit.source.tokens import unsafe_boundaries
from tests.delta.deltas import ENTRY, MARKER, disagreements, undo
from tests.delta.tree_oracle import Change, Oracle, dump

MODULES = [
    "textwrap",
    "shutil",
    "heapq",
    "json/decoder",
    "asyncio/base_events",
    "dataclasses",
    "pathlib",
    "tempfile",
    "ast",
    "zipfile",
]

ODD = r'''
def semicolons(x): a = x; b = a + 1; return a, b  # three


def one_liners(x):
    """Doc."""; y = 0
    if x: y = 1; z = 2
    elif y: y = 3
    else: y = 4
    for i in x: print(i); continue
    else: z = 5
    while x: break
    try: y = 6
    except ValueError: y = 7
    except (TypeError, KeyError) as e: raise
    finally: z = 8;
    with x as p, y as q: p(q)
    class C: k = 1; j = 2
    return y; z


def continuations(x):
    a = x + \
  1; b = \
        2
    if a and \
       b: c = 3; \
        d = 4
    assert a, \
        "text \
  more"
    return (a,
  b)  # left of its statement


def strings(x):
    s = """one
  two {x}
# ### PATCH START: looks like one
    """
    t = f"""é {x!r:>{len(s)}}
      {s.upper(
      )} """ 'plain' f'{x[0]}'
    u = rb'\x' + b"""
"""
    return "ünï😀", s, (t, u)  # ö


def feeds(x):
    a = 1

    b = 2
    if x:
        c = 3
    return a, b


def comments(x):
    # about a
    a = 1  # one

    # block
    # of two

    b = [  # open
        a,  # first
        # between
        x,
        # last
    ]
    if x:  # head
        # in
        pass
        # out
    # about else
    else:
        # only
        b = ()
# commented_out()
    return b
    # after all


async def asynchronous(x, *args, key=lambda a, b=1: (a, b), **kwargs) -> "dict[str, int]":
    async with x as y, y.z():
        async for i in y:
            yield await i
        else:
            await x
    result = [j async for j in y if await j]
    match result:
        case [1, *_] | {"a": _} if x: pass
        case str(value=v): return
        case _:
            del v, y[0]

    @x.deco(1)
    @x.other
    async def inner(a, /, b=(yield), *, c: int = 2):
        nonlocal result
        result = a if b else c
        return (n := a) + n

    global GLOBAL
    GLOBAL = inner
    print(*args, sep="", **kwargs)
    x.call(i for i in y)
    x.call(
        1,
        key=2,  # two
    )
    await x.call(a)(b)[c:d, ...].e(-1 ** 2, not 1 < x <= 3 or x and y)
'''


FEEDS = ODD.replace("    a = 1\n\n    b = 2\n    if x:\n        c", "    a = 1\n\f\n    b = 2\n\f    if x:\n    \tc")
assert FEEDS.count("\f") == 2


@functools.cache
def corpus() -> list[Symbol]:
    """Functions to change."""
    symbols: list[Symbol] = []
    library = Path(sysconfig.get_paths()["stdlib"])
    files = [load_source(FEEDS.encode(), pin="acme", path="acme/odd.py")]
    tabs = ODD.replace("def feeds", "def x_feeds").replace("    ", "\t").encode()
    files.append(load_source(tabs.replace(b"\n", b"\r\n"), pin="acme", path="acme/tabs.py"))
    for name in MODULES:
        path = library / f"{name}.py"
        if path.is_file():
            files.append(load_source(path.read_bytes(), pin="std", path=f"{name}.py"))
    for file in files:
        symbols += _functions(file)
    return symbols


def _functions(file: SourceFile) -> list[Symbol]:
    found: list[Symbol] = []
    for definition in definitions(file):
        node = definition.node
        if (
            isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            and node.end_lineno
            and node.end_lineno - node.lineno < 60
        ):
            try:
                found.append(find_symbol(file, ".".join([*(c.name for c in definition.classes), definition.name])))
            except PatchkitError:
                continue
    return [symbol for symbol in found if len(symbol.nodes) == 1]


def code(text: str) -> Code:
    """A text of a manifest."""
    return Code(text, Position("m.yaml", 1, 1))


@dataclass(frozen=True)
class Made:
    """A delta for the engine and the same change for the oracle; `word` stands in its code and nowhere else.

    `inner` are the deltas nested in it.
    """

    delta: Delta
    change: Change
    word: str
    inner: tuple[Made, ...] = ()

    def all(self) -> list[Made]:
        return [self, *(m for one in self.inner for m in one.all())]


STATEMENTS = [
    "{w}()",
    "{w} = 1",
    "if {w}:\n    pass\nelse:\n    {w}()  # ours",
    "{w} = '''a\n  b\n'''\n\n# a comment\n{w}(\n    1,\n)",
]
WRAPS = [
    "if {w}:\n    __upstream__",
    "try:\n    __upstream__\nfinally:\n    {w}()",
    "with {w}:\n  while {w}:\n      __upstream__\n",
    "__upstream__\n{w}()",
    "{w}()\n__upstream__",
    "if {w}:\n    __upstream__\nelse:\n    {w}()\n    __upstream__",
]
EXPRESSIONS = [
    "{w}(__upstream__)",
    "__upstream__ or {w}",
    "{w} if __upstream__ else {w}",
    "not __upstream__ == {w}",
    "{w}",
    "lambda: {w}",
    "(__upstream__, {w})",
    "-__upstream__ ** {w}",
]


def nodes_of(symbol: Symbol) -> tuple[list[ast.stmt], list[ast.expr]]:
    """The statements and expressions inside a function."""
    statements = [n for n in ast.walk(symbol.node) if isinstance(n, ast.stmt) and n is not symbol.node]
    expressions = [
        n
        for n in ast.walk(symbol.node)
        if isinstance(n, ast.expr) and isinstance(getattr(n, "ctx", ast.Load()), ast.Load)
    ]
    return statements, expressions


def anchor(symbol: Symbol, node: ast.AST, kind: str, window: Window | None = None) -> tuple[Code, int] | None:
    """A pattern of `node`, and which of its matches it is (in `window`); None when it has none."""
    try:
        pattern = compile_pattern(code(ast.unparse(node)), "statements" if kind == "statements" else "expression")
    except (PatchkitError, ValueError):
        return None
    found = find_all(pattern, symbol_windows(symbol) if window is None else [window], symbol.file)
    which = [n for n, match in enumerate(found, 1) if len(match.nodes) == 1 and match.nodes[0] is node]
    return (pattern.code, which[0]) if which else None


@st.composite
def made(draw: st.DrawFn, symbol: Symbol, number: int, window: Window | None = None) -> Made:
    """A random delta; in `window`, when it is nested in another one."""
    word = f"w{number}_"
    statements, expressions = nodes_of(symbol)
    if window is not None:
        held = [n for statement in window.body[window.start : window.stop] for n in ast.walk(statement)]
        statements = [n for n in statements if n in held]
        expressions = [n for n in expressions if n in held]
    operation = draw(
        st.sampled_from(
            [
                "before",
                "after",
                "before",
                "after",
                "start",
                "end",
                "replace",
                "wrap",
                "wrap",
                "remove",
                "expr",
                "expr",
                "set",
                "callee",
                "else",
                "first",
                "run",
                "run wrap",
                "run wrap",
                "run remove",
            ]
        )
    )

    def delta(**fields: object) -> Delta:
        return Delta.model_validate({"name": f"delta {number}", **fields})

    def filled(texts: list[str]) -> str:
        return draw(st.sampled_from(texts)).replace("{w}", word)

    if window is not None:
        assume(operation not in ("start", "end"))
    if operation in ("run", "run wrap", "run remove"):
        return draw(runs(symbol, number, operation, word, window))
    if operation in ("start", "end"):
        text = filled(STATEMENTS)
        return Made(delta(insert=code(text), at=operation), Change(operation, symbol.node, text), word)
    if operation in ("before", "after", "replace", "wrap", "remove", "else", "first"):
        if operation in ("else", "first"):
            kinds = (ast.If,) if operation == "first" else (ast.If, ast.For, ast.AsyncFor, ast.While)
            statements = [n for n in statements if isinstance(n, kinds) and (operation == "first" or not n.orelse)]
        assume(statements)
        node: ast.AST = draw(st.sampled_from(statements))
        where = anchor(symbol, node, "statements", window)
        assume(where)
        pattern, nth = where  # type: ignore[misc]
        if operation in ("before", "after"):
            text = filled(STATEMENTS)
            return Made(delta(insert=code(text), nth=nth, **{operation: pattern}), Change(operation, node, text), word)
        if operation == "remove":
            return Made(delta(remove=pattern, nth=nth), Change("remove", node), "")
        if operation == "else":
            change = ClauseChange.model_validate({"of": pattern, "add": code(f"else:\n    {word}()")})
            return Made(delta(clause=change, nth=nth), Change("else", node, f"{word}()"), word)
        if operation == "first":
            text = f"if {word}:\n    pass"
            change = ClauseChange.model_validate({"of": pattern, "first": code(text)})
            return Made(delta(clause=change, nth=nth), Change("first", node, text), word)
        text = filled(WRAPS if operation == "wrap" else STATEMENTS)
        if operation == "wrap" and window is None and draw(st.booleans()):
            return draw(nested(symbol, number, node, pattern, nth, text, word))
        return Made(delta(replace=pattern, nth=nth, **{"with": code(text)}), Change("replace", node, text), word)
    if operation in ("set", "callee"):
        expressions = [n for n in expressions if isinstance(n, ast.Call)]
    assume(expressions)
    node = draw(st.sampled_from(expressions))
    where = anchor(symbol, node, "expression", window)
    assume(where)
    pattern, nth = where  # type: ignore[misc]
    if operation == "expr":
        text = filled(EXPRESSIONS)
        return Made(delta(expr=pattern, nth=nth, **{"with": code(text)}), Change("expr", node, text), word)
    if operation == "set":
        change = CallChange.model_validate({"match": pattern, "set": {word: code("1")}})
        return Made(delta(call=change, nth=nth), Change("set", node, f"{word}=1"), word)
    assert isinstance(node, ast.Call)
    change = CallChange.model_validate({"match": pattern, "callee": code(f"{word}.x")})
    return Made(delta(call=change, nth=nth), Change("expr", node.func, f"{word}.x"), word)


def suites(symbol: Symbol) -> list[tuple[ast.AST, list[ast.stmt]]]:
    """The statement lists inside a function, those of an `elif` aside."""
    windows = [w for w in below(inside(symbol.node)) if w.body and not is_elif(w.owner, w.body, symbol.file)]
    return [(w.owner, w.body) for w in windows]  # type: ignore[misc]


@st.composite
def runs(draw: st.DrawFn, symbol: Symbol, number: int, operation: str, word: str, window: Window | None) -> Made:
    """A delta on a run of statements."""
    body = draw(st.sampled_from([b for _, b in suites(symbol) if len(b) > 1] or [[]]))
    assume(body)
    first = draw(st.integers(0, len(body) - 2))
    last = draw(st.integers(first + 1, len(body) - 1))
    ends = [anchor(symbol, body[n], "statements") for n in (first, last)]
    assume(all(ends))
    run = Range.model_validate({"from": ends[0][0], "to": ends[1][0]})  # type: ignore[index]
    for nth in range(1, 9):
        with contextlib.suppress(DeltaError):
            (match,) = find_ranges(
                run, symbol, nth=nth, entry=ENTRY, delta="d", windows=None if window is None else [window]
            )
            if match.nodes == tuple(body[first : last + 1]):
                break
    else:
        assume(False)
    change = Change("remove" if operation == "run remove" else "replace", body[first], "", body[last])
    fields: dict[str, object] = {"name": f"delta {number}", "nth": nth}
    if operation == "run remove":
        return Made(Delta.model_validate({**fields, "remove": run}), change, "")
    text = draw(st.sampled_from(WRAPS if operation == "run wrap" else STATEMENTS)).replace("{w}", word)
    change.code = text
    inner: tuple[Made, ...] = ()
    if operation == "run wrap" and window is None and draw(st.booleans()):
        inside_ = Window(match.siblings, match.index, match.end, match.owner)
        inner = (draw(made(symbol, number + 100, inside_)),)
        inner[0].change.parent = change
    nested_ = tuple(m.delta for m in inner)
    return Made(
        Delta.model_validate({**fields, "replace": run, "with": code(text), "deltas": nested_}), change, word, inner
    )


@st.composite
def nested(
    draw: st.DrawFn, symbol: Symbol, number: int, node: ast.AST, pattern: Code, nth: int, text: str, word: str
) -> Made:
    """A wrapping delta with one or two deltas inside."""
    owner, body = next((o, b) for o, b in suites(symbol) if any(s is node for s in b))
    index = next(i for i, s in enumerate(body) if s is node)
    window = Window(body, index, index + 1, owner)
    inner = tuple(draw(made(symbol, number + 100 * n, window)) for n in range(1, draw(st.integers(2, 3))))
    change = Change("replace", node, text)
    for one in inner:
        one.change.parent = change
    fields = {"name": f"delta {number}", "replace": pattern, "nth": nth, "deltas": tuple(m.delta for m in inner)}
    return Made(Delta.model_validate({**fields, "with": code(text)}), change, word, inner)


class Job(tuple):  # a function and some deltas, shown in few words
    def __repr__(self) -> str:
        symbol, deltas = self
        lines = [
            f"{'  in the one above: ' if m.change.parent else ''}{m.change.operation} {m.change.code!r} at {ast.unparse(m.change.node)[:60]!r}"
            + (f" to {ast.unparse(m.change.last)[:60]!r}" if m.change.last else "")
            for one in deltas
            for m in one.all()
        ]
        return "\n".join([symbol.reference, *lines])


@st.composite
def jobs(draw: st.DrawFn, most: int = 5) -> Job:
    odd = [symbol for symbol in corpus() if symbol.file.pin == "acme"]
    symbol = draw(st.sampled_from(odd) | st.sampled_from(corpus()))
    count = draw(st.integers(1, most))
    return Job((symbol, [draw(made(symbol, number)) for number in range(count)]))


# PATCHKIT_EXAMPLES=5000 looks for new examples; without it they are the same ones each time
EXAMPLES = os.environ.get("PATCHKIT_EXAMPLES")
SLOW = settings(max_examples=int(EXAMPLES or 200), derandomize=not EXAMPLES, suppress_health_check=list(HealthCheck))
# refusals that may be right for random deltas: they meet, the expression cannot stand there, `nonlocal` and `global` came too late
REFUSALS = {"PK210", "PK211", "PK213", "PK222"}


def attempt(symbol: Symbol, deltas: list[Made]):
    """The result, or the codes of the findings it is refused with."""
    try:
        return apply_deltas(symbol, [m.delta for m in deltas], entry=ENTRY, marker=MARKER)
    except DeltaError as error:
        findings = error.findings
    codes = {f.code for f in findings}
    assert codes <= REFUSALS, [f.message for f in findings]
    broken = [f.message for f in findings if f.code == "PK222"]
    assert all("nonlocal" in message or "global" in message for message in broken), broken
    assert all(f.delta and f.manifest and f.upstream and f.help for f in findings)
    return codes


def assert_smallest(applied: Applied) -> None:
    """Every fence begins and ends with a line that an edit touches (or that no comment can be parted from)."""
    lines = [
        line
        for line in applied.buffer.split_lines()
        if not any(run.label == "fence" and run.text.strip() for run in line)
    ]
    plain = Text("".join(run.text for line in lines for run in line).encode())
    glued = unsafe_boundaries(plain, 1, plain.line_count)
    for fence in applied.fences:
        if fence.last >= fence.first:
            assert any(run.edits for run in lines[fence.first - 1]) or fence.first + 1 in glued, fence
            assert any(run.edits for run in lines[fence.last - 1]) or fence.last in glued, fence


@pytest.mark.slow
@SLOW
@given(jobs())
def test_any_deltas_on_any_function(job):
    symbol, deltas = job
    applied = attempt(symbol, deltas)
    if isinstance(applied, set):
        return
    text = applied.buffer.text
    assert undo(applied) == symbol.data
    check_entry(symbol, applied.edits, (), applied.buffer, MARKER)
    assert disagreements(applied) == []
    everything = [m for one in deltas for m in one.all()]
    for one in everything:
        assert one.word in text, "an edit is lost"
    assert {fence.delta for fence in applied.fences} == {m.delta.name for m in everything}
    assert_smallest(applied)
    (found,) = ast.parse(text).body
    wanted = Oracle([m.change for m in everything]).result(symbol.node)
    assert dump(found) == dump(wanted), text


@pytest.mark.slow
@SLOW
@given(jobs(), st.randoms(use_true_random=False))
def test_order_matters_only_at_one_place(job, random):
    symbol, deltas = job
    everything = [m.change for one in deltas for m in one.all()]
    assume(
        len({id(c.node) for c in everything} | {id(c.last) for c in everything if c.last})
        == sum(1 + bool(c.last) for c in everything)
    )
    assume(not any(c.operation in ("start", "end") for c in everything))  # beside the first or last statement's
    first = attempt(symbol, deltas)
    shuffled = list(deltas)
    random.shuffle(shuffled)
    second = attempt(symbol, shuffled)
    assert isinstance(first, set) == isinstance(second, set)
    if not isinstance(first, set):
        strip = [line for line in first.buffer.text.split("\n") if f"# {MARKER} " not in line]
        assert strip == [line for line in second.buffer.text.split("\n") if f"# {MARKER} " not in line]


@pytest.mark.parametrize("indent", ["", "    ", "\t"])
def test_without_deltas_every_function_is_itself(indent):
    for symbol in corpus():
        applied = apply_deltas(symbol, (), entry=ENTRY, marker=MARKER, indent=symbol.indent)
        assert applied.buffer.text.encode() == symbol.data
        moved = apply_deltas(symbol, (), entry=ENTRY, marker=MARKER, indent=indent)
        assert undo(moved, indent) == symbol.data
        assert applied.fences == applied.edits == applied.findings == ()


def test_hash_seeds_change_nothing():
    script = textwrap.dedent("""
        import hashlib
        from tests.delta.test_invariants import corpus, attempt, made, Made
        from tests.delta.deltas import apply
        from tests.delta.test_operations_overlap import PIECES, UPSTREAM, text
        names = ["after b", "else", "after if", "first", "before b", "more of a", "callee of a", "head"]
        print(hashlib.sha256(apply(UPSTREAM, text(*names)).buffer.text.encode()).hexdigest())
    """)
    results = set()
    for seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
        results.add(
            subprocess.run(
                [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
            ).stdout
        )
    assert len(results) == 1
