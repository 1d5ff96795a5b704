"""Dockerfiles of the project and of its pages copy files that the build receives, as a user who may use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repository import REPOSITORY

_IN_PAGE = re.compile(r"```dockerfile\n(.*?)```", re.DOTALL)


def _dockerfiles() -> dict[str, str]:
    found = {"Dockerfile": (REPOSITORY / "Dockerfile").read_text(encoding="utf-8")}
    for page in sorted((REPOSITORY / "docs").rglob("*.md")):
        for number, text in enumerate(_IN_PAGE.findall(page.read_text(encoding="utf-8"))):
            found[f"{page.relative_to(REPOSITORY)} {number}"] = text
    return found


def _steps(text: str) -> Iterator[tuple[str, str]]:
    """The instructions with their arguments, without comments."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in lines.replace("\\\n", " ").splitlines():
        name, _, arguments = line.strip().partition(" ")
        if name:
            yield name.upper(), arguments.strip()


def _is_admitted(source: str) -> bool:
    """Whether .dockerignore, which excludes everything first, lets a path into the build."""
    first, *rules = [line.strip() for line in (REPOSITORY / ".dockerignore").read_text().splitlines() if line.strip()]
    assert first == "*"
    admitted = [rule[1:] for rule in rules if rule.startswith("!")]
    return any(source == rule or source.startswith(f"{rule}/") for rule in admitted)


def test_the_documentation_has_the_image_of_a_cluster() -> None:
    assert "docs/guide/cluster.md 0" in _dockerfiles()


@pytest.mark.parametrize("name", _dockerfiles())
def test_what_an_image_copies_is_in_the_build(name: str) -> None:
    copied = []
    for step, arguments in _steps(_dockerfiles()[name]):
        if step == "COPY" and "--from" not in arguments:
            copied += [word for word in arguments.split()[:-1] if not word.startswith("--")]
    assert copied
    for source in copied:
        assert source == "." or (_is_admitted(source) and (REPOSITORY / source).exists()), source


@pytest.mark.parametrize("name", _dockerfiles())
def test_a_package_is_built_by_the_owner_of_its_sources(name: str) -> None:
    user, owner = "0", ""
    for step, arguments in _steps(_dockerfiles()[name]):
        if step == "FROM":
            user, owner = "0", ""
        elif step == "USER":
            user = {"root": "0"}.get(arguments, arguments)
        elif step == "COPY" and ("pyproject.toml" in arguments or arguments.split()[-2] == "."):
            owner = (re.findall(r"--chown=(\w+)", arguments) or ["0"])[0]
        elif step == "RUN" and owner and re.search(r"pip install [^&]*(/tmp/slackwater|\"\.\[)", arguments):
            # setuptools writes into the directory of the sources.
            assert user in ("0", owner), arguments


def test_the_files_of_an_image_are_enough_to_build_the_package() -> None:
    for needed in ("pyproject.toml", "README.md", "LICENSE", "requirements.lock", "examples/flights_job.py"):
        assert _is_admitted(needed), needed
    for package in ("state", "actors", "spark_bridge", "slackwater"):
        assert _is_admitted(f"{package}/__init__.py"), package
    assert not _is_admitted(str(Path("tests") / "repository.py")) and not _is_admitted("examples/s3.py")
