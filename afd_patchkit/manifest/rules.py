"""Which keys go together, as tables: the loader and the JSON Schema both read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from afd_patchkit import model
from afd_patchkit.findings.finding import Finding, finding
from afd_patchkit.manifest.nodes import Mapping as YamlMapping
from afd_patchkit.manifest.values import Table
from afd_patchkit.operations import OPERATIONS, Alternative


@dataclass(frozen=True, slots=True)
class Rule:
    """The alternatives of one mapping.

    Attributes:
        noun: what the mapping is, for messages.
        code: the finding's code.
        alternatives: by the key that stands for them, or by the value of `selector`.
        always: keys that go with every alternative.
        selector: the key whose value chooses; without it the alternative is the key itself.
        default: the value of `selector` when it is absent.
    """

    noun: str
    code: str
    alternatives: Mapping[str, Alternative]
    always: frozenset[str] = field(default_factory=frozenset)
    selector: str | None = None
    default: str | None = None


_PLACED = Alternative(at_most=("before", "after"))
_SYMBOLS = {"symbol": ("symbols", "alias")}
_SEVERAL = (
    *combinations(("symbol", "symbols", "alias"), 2),
    *(("symbols", key) for key in ("name", "branch")),
    ("alias", "branch"),
)

RULES: Mapping[type[model.Model], Rule] = {
    model.Delta: Rule(
        "delta",
        "PK011",
        {name: operation.keys for name, operation in OPERATIONS.items()},
        always=frozenset({"name", "reason", "frozen"}),
    ),
    model.CallChange: Rule(
        "call change",
        "PK011",
        {"match": Alternative(some_of=("callee", "set", "drop", "append", "rename", "targets"))},
    ),
    model.ElementsChange: Rule(
        "change of elements",
        "PK011",
        {"add": _PLACED, "replace": Alternative(), "remove": Alternative()},
        always=frozenset({"of"}),
    ),
    model.ClauseChange: Rule(
        "clause change",
        "PK011",
        {key: Alternative() for key in ("add", "first", "replace", "remove")},
        always=frozenset({"of"}),
    ),
    model.ParameterChange: Rule(
        "parameter change",
        "PK011",
        {
            "add": Alternative(at_most=("before", "after"), may=("kind",)),
            "replace": Alternative(),
            "remove": Alternative(),
        },
    ),
    model.DecoratorChange: Rule(
        "decorator change", "PK011", {"add": _PLACED, "replace": Alternative(), "remove": Alternative()}
    ),
    model.MemberChange: Rule(
        "member change", "PK011", {"add": _PLACED, "replace": Alternative(), "remove": Alternative()}
    ),
    model.Take: Rule(
        "take",
        "PK011",
        {"symbol": Alternative(may=("from", "to"), requires=(("to", "from"),))},
        always=frozenset({"pin", "rename", "deltas"}),
    ),
    model.Probe: Rule(
        "probe", "PK017", {key: Alternative() for key in ("defines", "missing", "contains", "absent", "any", "all")}
    ),
    model.Entry: Rule(
        "entry",
        "PK013",
        {
            "copy": Alternative(
                needs=("symbol",),
                may=("symbols", "alias", "branch", "accessor", "elsewhere", "late", "deltas"),
                clashes=_SEVERAL,
                instead=_SYMBOLS,
                help="Name the upstream symbol that is copied.",
            ),
            "backport": Alternative(
                needs=("symbol",),
                may=("symbols", "alias", "branch", "accessor", "elsewhere", "late", "deltas"),
                clashes=_SEVERAL,
                instead=_SYMBOLS,
                help="Name the donor's symbol that is copied.",
            ),
            "delegate": Alternative(
                needs=("symbol", "body", "via"),
                may=("symbols", "alias", "branch", "accessor", "late", "deltas"),
                clashes=_SEVERAL,
                instead=_SYMBOLS,
                help="A delegate has upstream's signature (`symbol`), a `body` of its own, and says with `via: super` or "
                "`via: original` how the body reaches upstream's function.",
            ),
            "owned": Alternative(needs=("part",), help="Put the code into a .py file and name it: `part: parts/x.py`."),
        },
        always=frozenset(
            {"kind", "name", "pin", "reason", "functionality", "forwarded", "remove_when", "removal", "depends_on"}
            | {"share", "watch"}
        ),
        selector="kind",
        default="copy",
    ),
}


@dataclass(frozen=True, slots=True)
class Breach:
    """One broken rule: what, at which key (the mapping itself when empty), and what to do."""

    message: str
    key: str = ""
    help: str | None = None


def problems(cls: type[model.Model], table: Table) -> Iterator[Finding]:
    """The broken key rules of a mapping that is to be a `cls`."""
    rule = RULES.get(cls)
    if rule is None:
        return
    known = cls.key_names()
    keys = {key: place for key, place in table.node.keys.items() if key in known}
    operation = next((table.node.get(key) for key in keys if key in rule.alternatives), None)
    inner = frozenset(operation.keys) if isinstance(operation, YamlMapping) else None
    chosen = table.node.text(rule.selector) if rule.selector else None
    for breach in breaches(rule, keys, chosen, inner):
        yield finding(rule.code, breach.message, manifest=keys.get(breach.key), help=breach.help)


def breaches(
    rule: Rule, keys: Mapping[str, object], chosen: str | None, inner: frozenset[str] | None
) -> Iterator[Breach]:
    """Check the keys of one mapping.

    Args:
        rule: the rule of its model.
        keys: the known keys it has.
        chosen: the text of its `selector`, if the rule has one.
        inner: the keys of the operation's own mapping, if it is one (for `with_if`).
    """
    if rule.selector:
        name = chosen or rule.default or ""
        alternative = rule.alternatives.get(name)
        if alternative is not None:
            yield from _companions(rule, f"{_a(name)} {name} {rule.noun}", name, alternative, keys, inner)
        return
    given = [key for key in keys if key in rule.alternatives]
    names = _listed(rule.alternatives)
    if not given and len(rule.alternatives) > 1:
        yield Breach(f"this {rule.noun} does nothing", help=f"Give exactly one of {names}.")
    elif len(given) > 1:
        message = f"this {rule.noun} does several things: {_listed(given, 'and')}"
        yield Breach(message, given[1], f"Give exactly one of {names}; make another {rule.noun} of the rest.")
    elif given:  # a lone alternative that is absent is a missing key, which is reported as such
        yield from _companions(rule, f"`{given[0]}`", given[0], rule.alternatives[given[0]], keys, inner)


def _companions(
    rule: Rule, who: str, name: str, alternative: Alternative, keys: Mapping[str, object], inner: frozenset[str] | None
) -> Iterator[Breach]:
    at = "" if rule.selector else name
    for key in alternative.needs:
        if key not in keys and not any(other in keys for other in alternative.instead.get(key, ())):
            yield Breach(f"{who} needs `{key}`", at, alternative.help)
    if alternative.one_of:
        given = [key for key in keys if key in alternative.one_of]
        if len(given) != 1:
            what = f"has {_listed(given, 'and')}" if given else f"has none of {_listed(alternative.one_of, 'and')}"
            help_ = f"Give exactly one of {_listed(alternative.one_of)}."
            yield Breach(f"{who} {what}", given[1] if given else at, help_)
    if alternative.some_of and not any(key in keys for key in alternative.some_of):
        yield Breach(f"{who} changes nothing", at, f"Give at least one of {_listed(alternative.some_of)}.")
    for pair in (*alternative.clashes, *combinations(alternative.at_most, 2)):
        first, second = ([key for key in keys if key in pair] + ["", ""])[:2]
        if second:
            yield Breach(f"`{first}` and `{second}` do not go together", second, "Give one of them.")
    for key, other in alternative.requires:
        if key in keys and other not in keys:
            yield Breach(f"`{key}` needs `{other}`", key)
    wants_with = alternative.with_if is not None and inner is not None and alternative.with_if in inner
    if wants_with and "with" not in keys:
        message = f"`{alternative.with_if}` of {who} needs `with` beside {who}"
        yield Breach(message, at, "Give what takes its place in `with`.")
    allowed = alternative.companions | rule.always | {name, rule.selector}
    for key in keys:
        if key not in allowed:
            goes = sorted(alternative.companions)
            help_ = f"{who[0].upper()}{who[1:]} takes {_listed(goes, 'and')}." if goes else f"Nothing goes with {who}."
            yield Breach(f"`{key}` does not go with {who}", key, help_)
        elif key == "with" and alternative.with_if is not None and inner is not None and not wants_with:
            message = f"`with` goes with {who} only when that has `{alternative.with_if}`"
            yield Breach(message, key, "Put the new code behind `add`, or leave `with` out.")


def _a(word: str) -> str:
    return "an" if word[:1] in "aeiou" else "a"


def _listed(names: Mapping[str, object] | list[str] | tuple[str, ...], last: str = "or") -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
