"""How a delegate reaches what it stands before: captured when its module is imported, or behind it in the order of classes.

The original is the object that lies in the module or class, before any descriptor has bound it. Once a delegate is installed, that
object is the delegate; a module that is imported again takes the original from the globals of the delegate that it finds.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from afd_patchkit.names.bindings import module_bindings
from afd_patchkit.names.model import ImportNeed
from afd_patchkit.names.ways import is_hidden, module_alias
from afd_patchkit.runtime.loaded import CAPTURE
from afd_patchkit.source.forward import mangled, receiver
from afd_patchkit.source.locate import ACCESSORS, FunctionNode, Symbol, dotted
from afd_patchkit.source.syntax import FUNCTION
from afd_patchkit.source.text import SourceFile
from afd_patchkit.upstream.base import Upstream

Role = Literal["function", "method", "class", "static", "new", "getter", "setter", "deleter", "cached", "dispatch"]
"""What the original is to its callers; `dispatch` is a method with `singledispatchmethod`."""

_ACCESSORS: dict[str, Role] = dict(zip(ACCESSORS, ACCESSORS, strict=True))  # type: ignore[arg-type]
_ATTRIBUTES = {
    "functools.singledispatch": ("register", "dispatch", "registry"),
    "functools.singledispatchmethod": ("register", "dispatcher"),
    "functools.lru_cache": ("cache_info", "cache_clear", "cache_parameters"),
    "functools.cache": ("cache_info", "cache_clear", "cache_parameters"),
}
_IMPLIED: dict[str, Role] = {"__new__": "new", "__init_subclass__": "class", "__class_getitem__": "class"}
_MANAGERS = frozenset({"contextlib.contextmanager", "contextlib.asynccontextmanager"})


def captured(package: str) -> str:
    """The text of the capturing function for a generated package."""
    return f'''def {CAPTURE}(owner, name, kept):
    """What `owner` has as `name`; where a delegate of this package stands there already, what that one has kept."""
    found = vars(owner)[name]
    parts = [found]
    for part in parts:
        if inspect.isfunction(part):
            if kept in part.__globals__ and part.__globals__["__name__"].startswith("{package}."):
                return part.__globals__[kept]
            parts += [part.__wrapped__] if "__wrapped__" in vars(part) else []
        elif isinstance(part, (staticmethod, classmethod)):
            parts.append(part.__func__)
        elif isinstance(part, property):
            parts += [part.fget, part.fset, part.fdel]
        elif isinstance(part, functools.cached_property):
            parts.append(part.func)
    return found
'''


def meaning(file: SourceFile, decorator: ast.expr) -> str:
    """The dotted name of a decorator, by the import that brings it; as it is written where none does."""
    written = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
    head, _, rest = written.partition(".")
    binding = module_bindings(file).get(head)
    if binding is None or binding.module is None:
        return written.removeprefix("builtins.")
    root = binding.module
    if binding.attribute is not None:
        root = f"{binding.module}.{binding.attribute}"
    elif binding.sites and binding.sites[-1].asname is None:
        root = binding.module.partition(".")[0]
    return f"{root}.{rest}".rstrip(".").removeprefix("builtins.")


def role_of(symbol: Symbol) -> Role:
    """What a function is to its callers."""
    node = symbol.node
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    for decorator in node.decorator_list:
        found = _role(symbol, meaning(symbol.file, decorator))
        if found is not None:
            return found
    if not symbol.classes:
        return "function"
    return _IMPLIED.get(symbol.name, "method")


def _role(symbol: Symbol, name: str) -> Role | None:
    last = name.rpartition(".")[2]
    if last in _ACCESSORS and name.count("."):
        return _ACCESSORS[last]
    if name in ("staticmethod", "abc.abstractstaticmethod"):
        return "static"
    if name in ("classmethod", "abc.abstractclassmethod"):
        return "class"
    if name == "functools.cached_property":
        return "cached"
    if name == "functools.singledispatchmethod":
        return "dispatch"
    if "property" in last.lower():
        return "getter"
    return None


def by_position(symbol: Symbol, role: Role) -> int:
    """How many arguments the original wants by position: what it dispatches on, the value of a setter."""
    decorators: list[ast.expr] = getattr(symbol.node, "decorator_list", [])
    dispatches = any(meaning(symbol.file, d) == "functools.singledispatch" for d in decorators)
    return int(dispatches or role in ("setter", "dispatch"))


def attributes(symbol: Symbol) -> tuple[str, ...]:
    """Attributes of a decorated function that its callers use: where it is replaced, its delegate must have them, too."""
    decorators: list[ast.expr] = getattr(symbol.node, "decorator_list", [])
    found = [name for d in decorators for name in _ATTRIBUTES.get(meaning(symbol.file, d), ())]
    return tuple(dict.fromkeys(found))


def class_path(symbol: Symbol) -> list[str]:
    """The names that lead from upstream's module to the class of a member."""
    names = [cls.name for cls in symbol.classes]
    return [mangled(name, names[i - 1] if i else None) for i, name in enumerate(names)]


def home_of(symbol: Symbol, target: Upstream) -> ImportNeed:
    """The import that gives upstream's module itself."""
    module = symbol.file.module
    return ImportNeed(module, alias=module_alias(module, target), hidden=is_hidden(module, target))


def named(symbol: Symbol, name: str, target: Upstream) -> tuple[str, tuple[ImportNeed, ...]]:
    """What tells a cached property at module level its name, as a class body would; and what that needs. Empty for all else.

    Args:
        symbol: upstream's definition.
        name: the generated one.
        target: the upstream that it runs on.
    """
    if not symbol.classes or not isinstance(symbol.node, FUNCTION) or role_of(symbol) != "cached":
        return "", ()
    home = home_of(symbol, target)
    owner = ".".join([home.bound, *class_path(symbol)])
    return f'{name}.__set_name__({owner}, "{mangled(symbol.name, symbol.classes[-1].name)}")\n', (home,)


def stays(symbol: Symbol, decorator: ast.expr, *, yields: bool) -> bool:
    """Whether a delegate keeps a decorator: it says how the delegate is called, and the original does not say it for it.

    Args:
        symbol: the original.
        decorator: one of its decorators.
        yields: the delegate's body yields.
    """
    name = meaning(symbol.file, decorator)
    if name in _MANAGERS:
        return yields
    return name != "functools.singledispatchmethod" and _role(symbol, name) is not None


def implied(symbol: Symbol) -> str:
    """The decorator that a class body implies for a method of this name; empty for all others."""
    role = _IMPLIED.get(symbol.name) if symbol.classes else None
    decorators: list[ast.expr] = getattr(symbol.node, "decorator_list", [])
    if role is None or any(_role(symbol, meaning(symbol.file, d)) for d in decorators):
        return ""
    return "@staticmethod" if role == "new" else "@classmethod"


@dataclass(frozen=True)
class Original:
    """How a body reaches its original.

    Attributes:
        role: what the original is.
        plain: an expression for the original as something to call.
        called: the same where it is called at once; what stands before its arguments.
        first: what goes before the written arguments; empty without.
        ending: how the call goes on: of a property nothing is called.
        name: the name that it is kept under; empty when it is reached by `super`.
    """

    role: Role
    plain: str
    called: str
    first: str = ""
    ending: Literal["call", "value"] = "call"
    name: str = ""


def original(symbol: Symbol, via: str, group: str | None, name: str) -> Original:
    """How the body of a delegate reaches its original.

    Args:
        symbol: the original.
        via: `super` or `original`.
        group: the generated class that the delegate is a member of.
        name: the global that keeps the original.
    """
    node = symbol.node
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    role, me = role_of(symbol), receiver(node) or "()"
    if via == "super":
        return _behind(symbol, role, me, group or "")
    if role in ("function", "static", "new"):
        return Original(role, name, name, name=name)
    if role == "method":
        return Original(role, f"{name}.__get__({me})", name, me, name=name)
    if role == "class":
        bound = f"{name}.__get__(None, {me})"
        return Original(role, bound, bound, name=name)
    if role == "dispatch":
        bound = f"{name}.__get__({me}, type({me}))"
        return Original(role, bound, bound, name=name)
    return _accessor(role, me, node, name, f"{name}.__get__({me}, type({me}))", name)


def _behind(symbol: Symbol, role: Role, me: str, group: str) -> Original:
    attribute = mangled(symbol.name, symbol.classes[-1].name if symbol.classes else None)
    node = symbol.node
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    if role in ("function", "static"):
        reached = f"super({group}, {group}).{attribute}"
    elif role in ("method", "class", "new", "dispatch"):
        reached = f"super({group}, {me}).{attribute}"
    else:
        return _accessor(role, me, node, f"super({group}, type({me})).{attribute}", f"super({group}, {me}).{attribute}")
    return Original(role, reached, reached)


def _accessor(role: Role, me: str, node: FunctionNode, descriptor: str, value: str, name: str = "") -> Original:
    """A property: reading, setting or deleting it is what calling the original means."""
    if role == "cached":  # reading the original's own would keep its value in place of the delegate's
        return Original(role, f"{descriptor}.func.__get__({me})", f"{descriptor}.func", me, name=name)
    if role == "getter":
        return Original(role, f"(lambda: {value})", value, ending="value", name=name)
    word = "__set__" if role == "setter" else "__delete__"
    plain = f"(lambda *given: {descriptor}.{word}({me}, *given))"
    return Original(role, plain, f"{descriptor}.{word}", me, name=name)
