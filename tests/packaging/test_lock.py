"""The lock names one version of everything that is installed, and the hashes of its files."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.repository import REPOSITORY

_ENTRY = re.compile(r"^([\w.-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\\n|\n))+)", re.MULTILINE)


def _entries() -> dict[str, str]:
    """Package → version, of the entries with hashes."""
    text = (REPOSITORY / "requirements.lock").read_text()
    rest = _ENTRY.sub("", text)
    assert [line for line in rest.splitlines() if not line.startswith("#")] == [], "an entry has no hash"
    return {canonicalize_name(name): version for name, version, _ in _ENTRY.findall(text)}


def test_every_requirement_is_locked_with_hashes() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(text for each in project["optional-dependencies"].values() for text in each)]
    requirements = [each for each in map(Requirement, texts) if each.name != "slackwater"]
    locked = _entries()
    assert len(locked) > len(requirements) > 20
    for each in requirements:
        assert locked[canonicalize_name(each.name)] in each.specifier, each


def test_setup_and_image_verify_the_hashes() -> None:
    makefile, dockerfile = ((REPOSITORY / name).read_text() for name in ("Makefile", "Dockerfile"))
    assert "pip install --quiet --require-hashes -r requirements.lock" in makefile
    assert "--no-build-isolation -e ." in makefile
    assert "--constraint requirements.lock" in dockerfile and "--build-constraint requirements.lock" in dockerfile
    assert re.search(r"sed -n '\S+uv==", dockerfile)
