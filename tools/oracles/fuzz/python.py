"""Python text that is hard to read: deep, long, wide, or hardly text."""

from __future__ import annotations

from random import Random

from tools.oracles.fuzz.values import damaged, size

DEEP = {
    "parentheses": ("(", "1", ")"),
    "brackets": ("[", "1", "]"),
    "braces": ("{1:", "1", "}"),
    "calls": ("f(", "1", ")"),
    "subscripts": ("a[", "1", "]"),
    "unary": ("-", "1", ""),
    "not": ("not ", "1", ""),
    "lambda": ("lambda: ", "1", ""),
    "conditions": ("1 if 1 else ", "1", ""),
    "comprehensions": ("[x for x in ", "a", "]"),
    "strings": ("f'{", "1", "}'"),
    "await": ("(yield ", "1", ")"),
    "powers": ("1 ** ", "1", ""),
    "stars": ("f(*", "a", ")"),
}
"""An expression within an expression: what stands before, in the middle, behind."""
LONG = {
    "sum": ("1", " + 1"),
    "and": ("a", " and a"),
    "compared": ("1", " < 1"),
    "attributes": ("a", ".a"),
    "called": ("a", "(1)"),
    "chained": ("a", ".a(1)"),
    "subscripted": ("a", "[1]"),
    "strings": ("'a'", " 'a'"),
    "tuple": ("1", ", 1"),
    "shifted": ("1", " << 1"),
    "walrus": ("(a := 1)", " or (a := 1)"),
    "letters": ("a", "a"),
    "digits": ("1", "0"),
    "unicode": ("é", "é"),
}
"""An expression that goes on: how it begins, what follows again and again."""
STATEMENTS = {
    "elif": ("if a:\n    pass\n", "elif a:\n    pass\n"),
    "if": ("if a:\n    pass\n", "if a:\n    pass\n"),
    "assigned": ("a = 1\n", "a = 1\n"),
    "targets": ("a = ", "a = "),
    "except": ("try:\n    pass\nexcept A:\n    pass\n", "except A:\n    pass\n"),
    "case": ("match a:\n    case 1:\n        pass\n", "    case 1:\n        pass\n"),
    "comments": ("# a\n", "# a\n"),
    "blank": ("\n", "\n"),
    "imports": ("import a\n", "import a\n"),
    "stars": ("from a import *\n", "from a import *\n"),
    "functions": ("def f(): pass\n", "def f(): pass\n"),
    "decorators": ("@d\n", "@d\n"),
    "joined": ("a = 1; ", "a = 1; "),
    "continued": ("a = 1 + \\\n", "1 + \\\n"),
}
NESTED = (
    "if a:",
    "while a:",
    "for a in b:",
    "with a:",
    "try:",
    "def f():",
    "class C:",
    "async def f():",
    "match a:",
    "else:",
)
ODD = (
    "\0", "\ufeff", "\f", "\v", "\x1a", "\t", "\r", "\u2028", "\xa0", "# -*- coding: utf-16 -*-\n", "# coding: rot13\n", "# coding: \u00e9\n", "'''", '"""', "\\",
    "é = 1\n", "ﬁ = 1\n", "__upstream__", "print 1\n", "a: int = b: int\n", "global a\n", "nonlocal a\n", "return\n", "yield\n", "await a\n", "\ud800", "1_\n", "0777\n",
    "# acme START: x\n", "# acme END: x\n", "# type: ignore\n", "if 1:\n\tpass\n        pass\n", "*a\n", "f'{a!x}'\n", "b'é'\n", "'\\N{x}'\n", "del (a, b), [c]\n",
    "type X[T] = T\n", "class C[T]: pass\n", "def f[T](): pass\n", "except* A:\n", "match x:\n case {**a}: pass\n", "lambda *, a=(yield): a\n", "print(f'{a:{b}}')\n",
)  # fmt: skip


def expression(random: Random) -> str:
    """A deep or long expression."""
    count = size(random)
    if random.random() < 0.5:
        before, middle, behind = DEEP[random.choice(sorted(DEEP))]
        return before * count + middle + behind * count
    first, more = LONG[random.choice(sorted(LONG))]
    return first + more * count


def statements(random: Random) -> str:
    """Deep, long or odd statements."""
    kind = random.randrange(4)
    if kind == 0:
        first, more = STATEMENTS[random.choice(sorted(STATEMENTS))]
        return first + more * size(random) + random.choice(("pass\n", "", "1\n"))
    if kind == 1:
        depth = min(size(random), 1000)
        head = random.choice(NESTED)
        return "".join(" " * n + head + "\n" for n in range(depth)) + " " * depth + "pass\n"
    if kind == 2:
        return random.choice(ODD) * random.choice((1, 1, 2, 100))
    return f"{random.choice(('a = ', 'return ', 'del ', 'x: ', 'assert ', '', 'raise ', '@'))}{expression(random)}\n"


def hard(source: str, random: Random) -> bytes:
    """A module with something hard in it, at the place of a line or of an expression."""
    if random.random() < 0.1:
        return damaged(source.encode(), random)
    lines = source.splitlines(keepends=True)
    at = random.randrange(len(lines))
    line = lines[at]
    indent = line[: len(line) - len(line.lstrip())].strip("\n")
    if random.random() < 0.3 and "(" in line and line.rstrip().endswith(")"):
        head = line[: line.index("(") + 1]
        lines[at] = f"{head}{expression(random)})\n"
    else:
        piece = "".join(indent + part for part in statements(random).splitlines(keepends=True))
        lines.insert(at, piece)
    return "".join(lines).encode("utf-8", "surrogatepass")
