"""What manifests and pins can say: frozen pydantic models, one class per thing."""

from afd_patchkit.model.deltas import (
    Body,
    CallChange,
    ClauseChange,
    ClauseOf,
    DecoratorChange,
    Delta,
    ElementsChange,
    MemberChange,
    ParameterChange,
    Pattern,
    Range,
    Take,
    TakeBody,
    Within,
)
from afd_patchkit.model.manifest import ClassGroup, Entry, GroupEntry, InPattern, Install, Manifest, Probe
from afd_patchkit.model.pins import Git, Pin, Pins
from afd_patchkit.model.scalars import SYMBOL, WHERE, Code, Model, What

__all__ = [
    "SYMBOL",
    "WHERE",
    "Body",
    "CallChange",
    "ClassGroup",
    "ClauseChange",
    "ClauseOf",
    "Code",
    "DecoratorChange",
    "Delta",
    "ElementsChange",
    "Entry",
    "Git",
    "GroupEntry",
    "InPattern",
    "Install",
    "Manifest",
    "MemberChange",
    "Model",
    "ParameterChange",
    "Pattern",
    "Pin",
    "Pins",
    "Probe",
    "Range",
    "Take",
    "TakeBody",
    "What",
    "Within",
]
