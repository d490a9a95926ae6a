"""Reports made up for the tests of the renderers."""

from __future__ import annotations

from afd_patchkit.findings.finding import Finding, Position, Severity, codes, page
from afd_patchkit.findings.report import ModuleCounts, ModuleReport, PinReport, Report

# Any three codes will do; the tests must not care which exist.
ERROR, WARNING, NOTE = "PK090", "PK090", "PK090"


def pattern_error(**fields: object) -> Finding:
    values: dict[str, object] = {
        "code": ERROR,
        "message": "the pattern of `match` matches 2 statements; it must match exactly 1",
        "severity": Severity.ERROR,
        "entry": "acme_backport/runner.py::step",
        "delta": "AFD overlap dispatch",
        "manifest": Position("manifests/acme/runner.yaml", 31, 18),
        "upstream": Position("acme/engine.py", 120, 5),
        "help": "Narrow it with `within`, `next_to` or `nth`.",
        "details": ("120: self.dispatch(batch)", "131: self.dispatch(rest)"),
    }
    return Finding(**{**values, **fields})  # type: ignore[arg-type]


def edited_file() -> Finding:
    return Finding(
        WARNING,
        "the generated file was edited by hand",
        Severity.WARNING,
        generated=Position("generated/afd_backports/acme_backport/slicer.py", 7),
        help="Move the change into the manifest, then run `afd-patchkit regen`.",
    )


def evidence_note() -> Finding:
    return Finding(NOTE, "the wheel of acme 1.0 names commit ffd46bfab, its tag 568afb3a13", Severity.NOTE)


MODULES = (
    ModuleReport("acme_backport/runner.py", "written", ModuleCounts(12, 31, 2010, 1950, 2401, 9)),
    ModuleReport("acme_backport/slicer.py", "differs", ModuleCounts(2, 3, 100, 100, 130, 1), retired=("old_slice",)),
    ModuleReport("acme_backport/owned.py", "unchanged", ModuleCounts(1, 0, 0, 0, 12, 0)),
)
PINS = (
    PinReport("acme", "1.0", "wheel", "acme-1.0-py3-none-any.whl", "ab" * 32, 9, 1_234_567, 14),
    PinReport("acme-next", "1.3", "cache", "acme-1.3-py3-none-any.whl", None, 2, 0, 0),
)


def full() -> Report:
    return Report(
        findings=(evidence_note(), edited_file(), pattern_error()),
        modules=MODULES,
        pins=PINS,
        written=("generated/afd_backports/acme_backport/runner.py",),
        removed=("generated/afd_backports/acme_backport/gone.py",),
        seconds=3.42,
    )


REPORTS = {
    "empty": Report(),
    "full": full(),
    "no place": Report(findings=(Finding(ERROR, "something\nin two lines", Severity.ERROR),)),
    "upstream only": Report(findings=(pattern_error(manifest=None, entry=None, delta=None, help=None, details=()),)),
    "memory": Report(findings=(pattern_error(manifest=Position("<memory>", 3, 1)),)),
    "odd text": Report(
        findings=(
            pattern_error(
                message="50% of `a|b`: @decorator, <tag>\x1b[31m \u202e \udc80 日本語 ::error::x",
                manifest=Position("mani fests/ünï,co:de%.yaml", 1, 2),
                delta="a ``tick` | pipe",
                details=("```", "line\r\nnext"),
            ),
        )
    ),
    "twins": Report(findings=(pattern_error(), pattern_error(manifest=Position("manifests/acme/runner.yaml", 90, 1)))),
}
assert set(codes()) >= {ERROR, WARNING, NOTE}
assert page(ERROR).exit_code == 2
