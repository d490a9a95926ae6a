"""Everything that references are judged in: the trees, our own modules, and what they are copied from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from afd_patchkit.references.class_body import abstract
from afd_patchkit.references.classes import Classes
from afd_patchkit.references.collect import Reference, collect
from afd_patchkit.references.contract import Contract, contract
from afd_patchkit.references.infer import Inference
from afd_patchkit.references.texts import Catalogue, OwnText, Piece
from afd_patchkit.references.things import (
    UNKNOWN,
    Class,
    Function,
    FunctionNode,
    Instance,
    Missing,
    Module,
    Several,
    Thing,
    Value,
)
from afd_patchkit.references.trees import Trees
from afd_patchkit.source.locate import first_line
from afd_patchkit.source.syntax import nodes
from afd_patchkit.upstream.base import Upstream

Excuse = Literal["set", "extended", "upstream"]
"""Code of ours sets it; a class of ours extends the one that lacks it; upstream's own is made to be extended."""


@dataclass(frozen=True)
class Leaning:
    """One reference of one entry.

    Attributes:
        piece: the entry; None for a module-level import.
        ours: whether we wrote it (else upstream did, and it leads to something of ours).
        reference: the reference.
        text: the module that it stands in.
    """

    piece: Piece
    ours: bool
    reference: Reference
    text: OwnText


class World:
    """What the references of one module of ours are judged in.

    What is read of the trees follows from the module alone, so the lock can name it; what is computed of a file is kept
    with the file.

    Args:
        module: dotted name of the module.
        texts: all modules of ours, by dotted name.
        upstream_of: gives the target of an import package; None for packages that no pin provides.
        package: our own import package.
        catalogue: what the manifests make.
        gone: modules of ours that are not generated for this target.
    """

    def __init__(
        self,
        module: str,
        texts: Mapping[str, OwnText],
        upstream_of: Callable[[str], Upstream | None],
        package: str,
        catalogue: Catalogue,
        gone: frozenset[str] = frozenset(),
    ) -> None:
        self.text, self.texts, self.catalogue = texts[module], texts, catalogue
        own = {name: text.file for name, text in texts.items() if text.parses}

        def looked_up() -> Classes:
            trees = Trees(upstream_of, own, package, catalogue.modules - gone)
            return Classes(trees, partial(self._meant_for, trees))

        self.classes, self._elsewhere = looked_up(), looked_up()
        self.trees = self.classes.trees
        receivers: dict[int, Class] = {}
        for piece in self.text.pieces if module in own else ():
            owner = piece.symbol.rpartition(".")[0]
            cls = None if piece.group or ":" not in owner else self._class(self.trees, owner)
            if cls is not None:
                receivers.update((id(node), cls) for node in _definitions(self.text, piece))
        self.inference = Inference(self.classes, receivers)
        self._contracts: dict[Thing, Contract] = {}

    @staticmethod
    def _class(trees: Trees, reference: str) -> Class | None:
        """An upstream class, on the target."""
        module, _, qualname = reference.partition(":")
        thing = trees.chain(module, qualname)
        return thing if isinstance(thing, Class) else None

    def _meant_for(self, trees: Trees, cls: Class) -> Sequence[Class]:
        """The classes that the members of a class of ours were copied from."""
        found = [self._class(trees, reference) for reference in self.catalogue.classes.get(cls.reference, ())]
        return tuple(dict.fromkeys(c for c in found if c is not None))

    # ---- references -------------------------------------------------------------------------------------------

    def leanings(self) -> Iterator[Leaning]:
        """What the entries of the module refer to."""
        text = self.text
        if not text.parses or not text.pieces:
            return
        rebound = frozenset(name for piece in text.pieces for name in piece.rebound)

        def wanted(node: ast.AST) -> bool:
            if text.writes(node) or (isinstance(node, ast.Name) and node.id in rebound):
                return True
            func = node.func if isinstance(node, ast.Call) else None
            return (
                isinstance(func, (ast.Name, ast.Attribute))
                and (func.id if isinstance(func, ast.Name) else func.attr) in self.catalogue.names
            )

        for reference in collect(text.file, self.inference, wanted):
            piece = text.piece_at(text.file.offset(reference.line, reference.column))
            if piece is None:
                continue
            named = reference.node.id if isinstance(reference.node, ast.Name) else None
            if named in piece.rebound and isinstance(reference.thing, Class):
                # upstream's text fills it, or reads it, as it knows its own
                yield Leaning(piece, True, replace(reference, use="all", shape=None, call=None), text)
            if text.writes(reference.node) or (reference.call is not None and text.writes(reference.call)):
                yield Leaning(piece, True, self._through_home(reference, piece), text)
            elif reference.shape is not None and self._is_ours(reference.thing):
                yield Leaning(piece, False, reference, text)

    def _is_ours(self, thing: Thing) -> bool:
        return isinstance(thing, (Function, Class)) and self.trees.is_ours(thing.module)

    def _through_home(self, reference: Reference, piece: Piece) -> Reference:
        """A free name of a copy means what upstream's module means by it, wherever the generated import gets it."""
        home = piece.symbol.partition(":")[0]
        node = reference.node
        if not isinstance(node, ast.Name) or not home or piece.kind == "backport" or ":" not in reference.key:
            return reference
        if any(bound == node.id for _, _, bound in self.text.imports) or self.trees.is_ours(
            reference.key.partition(":")[0]
        ):
            return reference
        if not self.trees.has(home):
            return reference
        thing = self.trees.name(home, node.id)
        if isinstance(thing, Missing):
            return reference
        return reference.to(f"{home}:{node.id}", reference.thing if thing == UNKNOWN else thing)

    def imports(self) -> Iterator[tuple[str, str | None, str, Thing]]:
        """What the imports of the module's manifest and parts lead to: module, attribute, bound name, thing."""
        for name, attribute, bound in self.text.imports:
            yield (
                name,
                attribute,
                bound,
                self.trees.module(name) if attribute is None else self.trees.name(name, attribute),
            )

    # ---- meaning ----------------------------------------------------------------------------------------------

    def follows_upstream(self, thing: Thing) -> bool:
        """Whether a thing changes with upstream: it is upstream's, or an entry made from upstream's text."""
        if isinstance(thing, Several):
            return any(self.follows_upstream(t) for t in thing.things)
        if not isinstance(thing, (Class, Function, Value)):
            return False
        return not self.trees.is_ours(thing.module) or self.is_entry(thing.reference)

    def is_entry(self, key: str) -> bool:
        """Whether `module:Qual.name` is an entry made from upstream's text, or a member of one."""
        module, _, qualname = key.partition(":")
        parts = qualname.split(".")
        return any(f"{module}:{'.'.join(parts[:n])}" in self.catalogue.copied for n in range(1, len(parts) + 1))

    def contract(self, thing: Thing) -> Contract | None:
        """The contract of a thing that has one."""
        if not isinstance(thing, (Module, Class, Function, Value, Several)):
            return None
        found = self._contracts.get(thing)
        if found is None:
            found = self._contracts[thing] = contract(thing, self.classes)
        return found

    def excused(self, reference: Reference) -> Excuse | None:
        """What may give something missing all the same: None for nothing."""
        receiver = reference.receiver
        if not isinstance(receiver, Instance) or not isinstance(reference.node, ast.Attribute):
            return None
        name = reference.node.attr
        if reference.by_annotation and self._to_be_extended(receiver.of):
            return "upstream"
        if any(name in _stored(text.whole) for text in self.texts.values()):
            return "set"
        others = self._elsewhere  # what all modules of ours extend is read here, and is no file of this one
        extended = any(
            receiver.of in others.view(cls).order[1:] and name in others.names(cls)
            for file in self.trees.own.values()
            for node in file.tree.body
            if isinstance(node, ast.ClassDef) and isinstance(cls := others.trees.name(file.module, node.name), Class)
        )
        return "extended" if extended else None

    def _to_be_extended(self, cls: Class) -> bool:
        """Whether a class says that others give it its body: abstract, a protocol, empty, or full of `NotImplementedError`."""
        view = self.classes.view(cls)
        if view.structural or b"NotImplementedError" in cls.file.data[slice(*_bytes(cls))]:
            return True
        facts = self.classes.facts(cls)
        return (not facts.sites and not facts.attributes) or bool(abstract(facts))


@dataclass
class Recorded:
    """What the lock keeps of an entry's references: key to its uses and contract."""

    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, reference: Reference, made: Contract) -> None:
        """Take one more use of what `reference` leads to; it stands in the lock with its contract, once."""
        known = self.found.setdefault(reference.key, {"uses": [], "contract": dict(made.data)})
        if reference.used not in known["uses"]:
            known["uses"] = sorted([*known["uses"], reference.used])


def _definitions(text: OwnText, piece: Piece) -> Iterator[FunctionNode]:
    for node in text.file.tree.body:
        at = text.file.offset(first_line(node))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and text.piece_at(at) is piece:
            yield node


def _stored(text: OwnText) -> frozenset[str]:
    """Attributes that our own code sets, on whatever object."""
    kept: frozenset[str] | None = text.file.__dict__.get("_stored")
    if kept is None:
        every = list(nodes(text.file.tree)) if text.parses else []
        read_before = {id(node.target) for node in every if isinstance(node, ast.AugAssign)}
        found = {
            node.attr
            for node in every
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and id(node) not in read_before
            and text.writes(node)
        }
        kept = text.file.__dict__["_stored"] = frozenset(found)
    return kept


def _bytes(cls: Class) -> tuple[int, int]:
    span = cls.file.node_span(cls.node)
    return span.start, span.end
