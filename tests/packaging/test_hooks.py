"""Build hooks that any project can name: real builds of invented projects."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.engine.sample import MANIFEST, Sample
from tests.invented import write_tree
from tools import environments

SETTINGS = """
[project]
name = "courier"
version = "1.0"
license = "MIT"
license-files = ["LICENSE", "{generated}/{folder}/licenses/*/*"]

[tool.afd-patchkit]
generated = "{generated}"
package = "{package}"

[build-system]
"""
HATCH = """
requires = ["hatchling>=1.27", "afd-patchkit"]
build-backend = "hatchling.build"

[tool.hatch.build.hooks.afd-patchkit]
[tool.hatch.build.targets.wheel]
"""
SETUPTOOLS = """
requires = ["setuptools>=77", "afd-patchkit"]
build-backend = "setuptools.build_meta"

[tool.setuptools.cmdclass]
build = "afd_patchkit.building.setuptools.build"
[tool.setuptools{more}
"""
LAYOUTS = {
    # beside one's own package; inside it; nothing else in the distribution
    "beside": ("generated", "generated_acme", {HATCH: 'packages = ["src/courier"]\n', SETUPTOOLS: '.packages.find]\nwhere = ["src"]\n'}),
    "inside": ("src", "courier._patched", {HATCH: 'packages = ["src/courier"]\n', SETUPTOOLS: '.packages.find]\nwhere = ["src"]\nnamespaces = false\n'}),
    "alone": ("generated", "generated_acme", {HATCH: "bypass-selection = true\n", SETUPTOOLS: ']\npackages = []\n'}),
}  # fmt: skip
OWN = "import importlib\nVALUE = 1\n"


def write_project(sample: Sample, layout: str, backend: str) -> str:
    """The project of a layout, not generated yet; returns its package."""
    generated, package, more = LAYOUTS[layout]
    folder = package.replace(".", "/")
    tail = (
        SETUPTOOLS.replace("[tool.setuptools{more}\n", f"[tool.setuptools{more[backend]}")
        if backend is SETUPTOOLS
        else backend + more[backend]
    )
    sample.write(
        "pyproject.toml", SETTINGS.format(generated=generated, package=package, folder=folder) + tail.lstrip("\n")
    )
    sample.write(".gitignore", f"/{generated}/{folder}/\n")
    sample.write("LICENSE", "Ours.\n")
    if layout != "alone":
        sample.write("src/courier/__init__.py", OWN)
    write_tree(sample.source, {"LICENSE": b"Acme's.\n"})
    sample.manifest(
        MANIFEST.replace("from acme_host import allowed", "from acme.engine import Engine").replace(
            "allowed(batch)", "len(batch)"
        )
    )
    subprocess.run(["git", "init", "-q", "."], cwd=sample.root, check=True)
    return package


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return Sample(tmp_path / "project")


@pytest.fixture
def build(root: Path):
    """Build in this environment; what hatchling finds by its entry point is found without an installed afd-patchkit, too."""

    def run(folder: Path, *what: str, check: bool = True) -> str:
        command = [sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check", *what, str(folder)]
        env = os.environ | {"PYTHONPATH": str(root)}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is check, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


BACKENDS = [pytest.param(HATCH, id="hatch"), pytest.param(SETUPTOOLS, id="setuptools")]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_wheel_holds_the_modules_also_by_way_of_the_source_distribution(sample, build, tmp_path, layout, backend):
    package = write_project(sample, layout, backend)
    said = build(sample.root, "--sdist", "--wheel", check=False)
    assert "run `afd-patchkit regen`" in said
    assert not list(sample.root.glob("dist/*"))
    assert sample.regen().exit_code == 0
    build(sample.root)  # the wheel is built of the source distribution
    build(sample.root, "--wheel", "--outdir", str(tmp_path / "direct"))
    (wheel,), (sdist,) = sample.root.glob("dist/*.whl"), sample.root.glob("dist/*.tar.gz")
    below = package.replace(".", "/")
    generated = [
        f"{below}/{name}" for name in ("__init__.py", "acme_set/__init__.py", "acme_set/runner.py", "py.typed")
    ]
    generated += [f"{below}/licenses/SHA256SUMS", f"{below}/licenses/acme-1.0/LICENSE"]
    own = [] if layout == "alone" else ["courier/__init__.py"]
    for path in (wheel, *(tmp_path / "direct").glob("*.whl")):
        archive = zipfile.ZipFile(path)
        assert sorted(n for n in archive.namelist() if ".dist-info/" not in n) == sorted([*generated, *own])
        metadata = archive.read("courier-1.0.dist-info/METADATA").decode()
        assert f"License-File: {LAYOUTS[layout][0]}/{below}/licenses/acme-1.0/LICENSE\n" in metadata
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"manifests/pins.yaml", f"{LAYOUTS[layout][0]}/patchkit.lock", "pyproject.toml"} <= names


SPOILT = {
    "edited": lambda sample: sample.generated().write_text("X = 1\n"),
    "gone": lambda sample: sample.generated().unlink(),
    "init gone": lambda sample: sample.generated().with_name("__init__.py").unlink(),
    "foreign": lambda sample: sample.generated("old").write_text(""),
    "licence gone": lambda sample: (sample.root / "generated/generated_acme/licenses/acme-1.0/LICENSE").unlink(),
    "stale": lambda sample: sample.edit("manifests/acme_set/runner.yaml", "asks before", "asks well before"),
    "no lock": lambda sample: sample.lock.unlink(),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("spoilt", SPOILT)
def test_what_is_not_as_the_lock_says_is_not_shipped(sample, build, spoilt, backend):
    write_project(sample, "beside", backend)
    assert sample.regen().exit_code == 0
    SPOILT[spoilt](sample)
    for what in ("--wheel", "--sdist"):
        assert "run `afd-patchkit regen`, then build again" in build(sample.root, what, check=False)
    assert not list(sample.root.glob("dist/*"))


@pytest.mark.upstream
@pytest.mark.parametrize("backend", [HATCH, SETUPTOOLS], ids=["hatch", "setuptools"])
def test_in_fresh_environments(sample, root, tmp_path, backend):
    """Backend and afd-patchkit installed as a build installs them; the wheel in an environment of its own; an editable install."""
    package = write_project(sample, "inside", backend)
    assert sample.regen().exit_code == 0
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    wheels = tmp_path / "wheels"
    subprocess.run([*pip, "wheel", "--no-deps", "-w", wheels, root], check=True)
    env = os.environ | {"PIP_FIND_LINKS": str(wheels)}
    subprocess.run([sys.executable, "-m", "build", str(sample.root)], env=env, check=True, capture_output=True)
    (wheel,) = sample.root.glob("dist/*.whl")
    code = f"import importlib; print(importlib.import_module('{package}').__file__, __import__('courier').VALUE)"
    for number, what in enumerate(([wheel], ["-e", sample.root])):
        folder = tmp_path / f"environment{number}"
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = environments.python_of(folder)
        subprocess.run([python, *pip[1:], "install", "--no-deps", *what], env=env, check=True, capture_output=True)
        found = subprocess.run([python, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert str(sample.root if number else folder) in found
    shutil.rmtree(sample.root / "dist")
