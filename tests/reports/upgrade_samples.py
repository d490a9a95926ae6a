"""Upgrades made up for the tests of the renderers; no upstream text in them."""

from __future__ import annotations

from dataclasses import replace

from afd_patchkit.findings.finding import Finding, Position, Severity
from afd_patchkit.upgrade.result import AliasChange, DeltaResult, EntryResult, Proposal, Status, UpgradeResult

CODE = "PK501"  # any code will do
ATTACK = "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>&amp;"

BASE = '''\
    def step(self, batch):
        """Run one step."""
        desc = self.dispatch(batch)
        # a batch may be large
        if len(batch) > 1:
            logger.info("large %d", len(batch))
        first = self.prepare(batch)
        second = self.check(first)
        third = self.weigh(second)
        fourth = self.sort(third)
        fifth = self.store(fourth)
        sixth = self.mark(fifth)
        seventh = self.close(sixth)
        out = self.model(batch)
        return desc, out
'''
NEW = BASE.replace("self.dispatch(batch)", "self.dispatch(batch, ranks=self.ranks)").replace(
    "        return desc, out\n", "        self.synchronize()\n        return desc, out\n"
)


def ours(text: str) -> str:
    """The generated text for an upstream text."""
    return text.replace(
        "        if len(batch) > 1:\n",
        "        # ### PATCH START: ask first\n        if len(batch) > 1 and allowed(batch):\n        # ### PATCH END: ask first\n",
    ).replace(
        "        out = self.model(batch)\n",
        "        # ### PATCH START: halves\n        if len(batch) < 4:\n            out = self.model(batch)\n"
        "        else:\n            out = join(self.model(half) for half in halves(batch))\n        # ### PATCH END: halves\n",
    )


def reason(message: str = "a statement next to the delta changed upstream", **fields: object) -> Finding:
    values: dict[str, object] = {
        "code": CODE,
        "message": message,
        "severity": Severity.ERROR,
        "manifest": Position("manifests/acme_set/runner.yaml", 31, 18),
        "upstream": Position("acme/engine.py", 120, 5),
        "help": "Read the change, then mend the delta or accept it.",
        "details": ("was: desc = self.dispatch(batch)", "now: desc = self.dispatch(batch, ranks=self.ranks)"),
    }
    return Finding(**{**values, **fields})  # type: ignore[arg-type]


def entry(status: Status = "review", name: str = "Runner.step", **fields: object) -> EntryResult:
    values: dict[str, object] = {
        "ref": f"acme_set/runner.py::{name}",
        "kind": "copy",
        "symbol": f"acme.engine:{name}",
        "new_symbol": f"acme.engine:{name}",
        "axis": "target",
        "status": status,
        "base": BASE,
        "new": BASE if status == "unchanged" else NEW,
        "ours_old": ours(BASE),
        "ours_new": ours(BASE if status == "unchanged" else NEW),
        "new_digest": "ab" * 8,
    }
    return EntryResult(**{**values, **fields})  # type: ignore[arg-type]


ASK = DeltaResult("ask first", "clean", old_lines=(5, 5), new_lines=(5, 5))
HALVES = DeltaResult("halves", "review", (reason(),), old_lines=(14, 14), new_lines=(15, 16))
GONE = DeltaResult(
    "own rank",
    "conflict",
    (reason("the anchor of `before` matches nothing any more"),),
    old_lines=(9, 9),
    proposal=Proposal(
        Position("manifests/acme_set/runner.yaml", 44, 11),
        "before",
        "third = self.weigh(second)\n",
        "third = self.weigh(second, scale=1)\n",
        0.91,
        Position("acme/engine.py", 128, 9),
    ),
)

REVIEW = entry(
    "review",
    upstream_changed="body +2/-1; a call gained an argument",
    must_do="read the change beside `halves`; mend or accept it",
    deltas=(ASK, HALVES),
    attributes=("batch.ranks", "batch.size"),
)
CONFLICT = entry(
    "conflict",
    "Runner.close",
    upstream_changed="body +1/-1; parameter added: scale",
    must_do="take the proposed anchor",
    deltas=(ASK, GONE),
    ours_new="<<<<<<< ours\n    x = 1\n=======\n    x = 2\n>>>>>>> upstream\n",
    other=ours(NEW).replace("synchronize", "wait"),
)
MISSING = entry(
    "missing",
    "Runner.old",
    new=None,
    ours_new=None,
    new_digest="",
    reasons=(reason("acme.engine:Runner.old is gone", details=()),),
    successors=(("acme.engine:Runner.newer", 0.93), ("acme.engine:Runner.other", 0.41)),
    deltas=(DeltaResult("ask first", "missing"),),
)
ABSORBED = entry(
    "absorbed", "Runner.wait", deltas=(DeltaResult("wait for it", "absorbed", (reason("upstream has this change"),)),)
)
MOVED = entry("moved", "Runner.place", new_symbol="acme.steps:place", reasons=(reason("it stands in acme.steps now"),))
CLEAN = entry("clean", "Runner.clean", upstream_changed="body +2/-1", deltas=(ASK,))
UNCHANGED = entry("unchanged", "total", deltas=(replace(ASK, status="unchanged"),))
RETIRE = entry(
    "retire",
    "Runner.halves",
    ours_new=None,
    reasons=(reason("acme.engine:Overlap is defined", severity=Severity.WARNING, details=()),),
)
ACCEPTED = entry("review", "Runner.seen", accepted=True, deltas=(replace(HALVES, accepted=True),))

ALL = UpgradeResult(
    pin="acme",
    distribution="acme",
    old="1.0",
    new="1.1",
    entries=(UNCHANGED, CLEAN, REVIEW, CONFLICT, MISSING, ABSORBED, MOVED, RETIRE, ACCEPTED),
    retired_modules=("acme_set/slicer.py",),
    stays=("acme_set/runner.py::total: an NPU-only entry",),
    deletions=("manifests/acme_set/runner.yaml:12: Runner.halves",),
    aliases=(AliasChange("acme.engine:total", (Position("acme/cli.py", 4, 1),), (Position("acme/old.py", 9, 1),)),),
    findings=(Finding(CODE, "the lock is stale", Severity.WARNING),),
    seconds=1.25,
)
QUIET = UpgradeResult("acme", "acme", "1.0", "1.0.1", entries=(UNCHANGED,), seconds=0.2)
EMPTY = UpgradeResult("acme", "acme", "1.0", "1.1")
WITHOUT_BASE = replace(
    ALL, base_available=False, entries=tuple(replace(e, base=None, ours_old=None) for e in ALL.entries)
)
ODD = UpgradeResult(
    "acme",
    "acme",
    "1.0",
    "1.1",
    entries=(
        entry(
            "review",
            f"odd{ATTACK}",
            upstream_changed=f"50% of `a|b` {ATTACK} \x1b[31m \u202e 日本語 @name",
            must_do=ATTACK,
            base=ATTACK + "\n\u2028\x0c'\n",
            new=ATTACK + "\r\n`````\n",
            ours_new="# ### PATCH START: " + ATTACK + "\n" + ATTACK + "\n# ### PATCH END: " + ATTACK,
            deltas=(DeltaResult(ATTACK, "review", (reason(ATTACK, details=("```", ATTACK)),)),),
        ),
    ),
    deletions=(ATTACK,),
    findings=(reason(ATTACK),),
)


def many(count: int) -> UpgradeResult:
    """An upgrade of `count` entries, of every status."""
    every = ALL.entries
    entries = []
    for number in range(count):
        item = every[number % len(every)]
        module = f"acme_set/module_{number // 40:02d}.py"
        name = f"{item.ref.partition('::')[2]}_{number}"
        base = item.base and item.base.replace("first", f"first_{number}")
        entries.append(
            replace(
                item, ref=f"{module}::{name}", symbol=f"acme.engine:{name}", new_symbol=f"acme.engine:{name}", base=base
            )
        )
    return replace(ALL, entries=tuple(entries))


LATER = replace(
    ALL,
    new="1.2",
    entries=(
        replace(UNCHANGED, status="clean"),
        CLEAN,
        replace(REVIEW, status="conflict"),
        CONFLICT,
        MISSING,
        ACCEPTED,
        replace(CLEAN, ref="acme_set/other.py::fresh", axis="donor"),
    ),
)
SAMPLES: dict[str, tuple[UpgradeResult, ...]] = {
    "all": (ALL,),
    "quiet": (QUIET,),
    "empty": (EMPTY,),
    "no base": (WITHOUT_BASE,),
    "odd": (ODD,),
    "several": (QUIET, ALL, LATER),
}
