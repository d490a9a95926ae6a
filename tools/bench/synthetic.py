"""A project with any number of entries on an invented upstream, fifty functions to a file and to a manifest."""

from __future__ import annotations

from pathlib import Path

PER_FILE = 50

FUNCTION = '''
def step_{n}(batch, limit=LIMIT):
    """Run step {n}."""
    out = []
    for index, item in enumerate(batch):
        if item is None or index > limit:
            logger.debug("skipped %d", index)
            continue
        value = scale(item, {n})
        if value < 0:
            value = -value
        out.append(value)
    return out or None
'''

ENTRY = """  - symbol: acme.part_{file}:step_{n}
    reason: synthetic.
    deltas:
      - name: keep {n}
        expr: |
          value < 0
        with: |
          __upstream__ and not limit
      - name: last {n}
        before: |
          return out or None
        insert: |
          out.sort()
"""


def make_project(folder: Path, count: int) -> tuple[Path, Path]:
    """Write the project and its upstream; returns both folders."""
    root, source = folder / "project", folder / "source"
    (root / "manifests" / "set").mkdir(parents=True)
    (source / "acme").mkdir(parents=True)
    (root / "pyproject.toml").write_text('[tool.afd-patchkit]\npackage = "generated_acme"\n')
    (root / "manifests" / "pins.yaml").write_text(
        'schema: 1\npins:\n  acme:\n    distribution: acme\n    version: "1.0"\n'
    )
    (source / "acme" / "__init__.py").write_text("")
    (source / "acme" / "tools.py").write_text("def scale(value, by):\n    return value * by\n")
    for file in range((count + PER_FILE - 1) // PER_FILE):
        numbers = range(file * PER_FILE, min(count, (file + 1) * PER_FILE))
        head = "import logging\n\nfrom .tools import scale\n\nlogger = logging.getLogger(__name__)\nLIMIT = 3\n\n"
        text = head + "\n".join(FUNCTION.format(n=n) for n in numbers)
        (source / "acme" / f"part_{file}.py").write_text(text)
        manifest = f"schema: 1\nmodule: set/part_{file}.py\nsummary: Part {file}.\npin: acme\nentries:\n"
        entries = "".join(ENTRY.format(n=n, file=file) for n in numbers)
        (root / "manifests" / "set" / f"part_{file}.yaml").write_text(manifest + entries)
    return root, source
