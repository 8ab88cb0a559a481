"""One list of dependencies, one lock, one environment: nothing drifts."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution, version

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT

# Not packages of the project but tools of the environment itself.
UNLOCKED = {"pip", "setuptools", "wheel"}


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def declared() -> list[Requirement]:
    lists = [project()["dependencies"], *project()["optional-dependencies"].values()]
    return [Requirement(line) for names in lists for line in names]


def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text("utf-8").split("\n")
    pins = dict(line.split("==") for line in lines if line.strip())
    return {canonicalize_name(name): pin for name, pin in pins.items()}


def test_every_dependency_is_locked_within_its_range():
    pins = locked()
    for requirement in declared():
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is not in requirements.lock: make lock"
        assert requirement.specifier.contains(pins[name], prereleases=True), requirement


def test_the_lock_holds_nothing_else():
    """What the declared packages need, as their metadata says, is exactly what is locked."""
    queue = [(canonicalize_name(r.name), extra) for r in declared() for extra in ("", *r.extras)]
    seen = set(queue)
    while queue:
        name, extra = queue.pop()
        for line in distribution(name).requires or []:
            other = Requirement(line)
            if other.marker is None or other.marker.evaluate({"extra": extra}):
                new = {(canonicalize_name(other.name), extra) for extra in ("", *other.extras)}
                queue += new - seen
                seen |= new
    needed = {name for name, _ in seen}
    assert needed - UNLOCKED == set(locked()) - UNLOCKED


def test_the_environment_is_the_locked_one():
    for name, pin in locked().items():
        try:
            found = version(name)
        except PackageNotFoundError:
            found = None
        assert found is not None, f"{name} is not installed: make setup"
        assert found.split("+")[0] == pin, f"{name} {found} is installed, {pin} is locked"


def test_conda_users_get_the_same_list():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    (pip,) = [item["pip"] for item in environment["dependencies"] if isinstance(item, dict)]
    assert pip == ["-r requirements.lock", "-e ."]
    assert "python=3.11" in environment["dependencies"]
    assert project()["requires-python"] == ">=3.11,<3.12"


def test_torch_is_the_same_everywhere():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert f"TORCH := torch=={locked()['torch']}" in makefile
