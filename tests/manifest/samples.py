"""Small manifests, and places in them marked with ¶."""

from __future__ import annotations

import textwrap

from afd_patchkit.findings.errors import ManifestError
from afd_patchkit.findings.finding import Finding
from afd_patchkit.manifest.load import parse_manifest

MARK = "¶"

HEAD = """\
schema: 1
module: m.py
summary: s
pin: acme
"""

EXAMPLE = """\
schema: 1
module: acme_backport/runner.py          # below the generated package root
summary: Step loop with the AFD seams added.
pin: acme                                # default pin of the entries
imports:                                 # names that the deltas need
  - from acme_backport.halves import run_halves
entries:
  - symbol: acme.engine:Engine.step      # extracted as a function, or as a member of a class entry
    name: step_with_overlap              # name in the generated module (default: the symbol's last part)
    kind: copy
    reason: pinned acme runs one batch per step.
    functionality: run two halves when the descriptor asks for them.
    forwarded: not-needed                # or a link: where this went upstream
    remove_when:
      - defines: acme.engine:Overlap     # judged against every target, on every run
    deltas:
      - name: AFD overlap dispatch
        call:
          match: |
            self.dispatch(...)
          callee: self.dispatch_overlap
          set: {rank: "self.rank"}
      - name: AFD overlap only when allowed
        expr: |
          batch.size > 1
        with: |
          __upstream__ and batch.allow_overlap
      - name: AFD two halves
        replace: |
          out = self.model(...)
        with: |
          if desc.halves == 1:
              __upstream__
          else:
              out = run_halves(self.model, desc)
"""


def entry(body: str) -> str:
    """A manifest with one entry, a copy unless `body` says otherwise."""
    text = textwrap.dedent(body).strip("\n")
    fields = {line.split(":")[0].lstrip(MARK) for line in text.split("\n") if line[:1].strip()}
    rows = [] if fields & {"symbol", "part"} else ["symbol: acme.engine:Engine.step"]
    rows += [] if "reason" in fields else ["reason: r"]
    return HEAD + "entries:\n  - " + "\n".join([*rows, *text.split("\n")]).replace("\n", "\n    ") + "\n"


def delta(body: str, name: str = "d") -> str:
    """A manifest with one entry with one delta."""
    text = f"name: {name}\n" + textwrap.dedent(body).strip("\n")
    return entry("deltas:\n  - " + text.replace("\n", "\n    "))


def marked(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without marks, and the line and column of each mark."""
    places = []
    while (at := text.find(MARK)) >= 0:
        places.append((text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)))
        text = text[:at] + text[at + 1 :]
    return text, places


def problems(text: str | bytes, file: str = "m.yaml") -> list[Finding]:
    """What the loader says about a manifest."""
    try:
        parse_manifest(text if isinstance(text, bytes) else text.encode(), file)
    except ManifestError as error:
        return list(error.findings)
    return []
