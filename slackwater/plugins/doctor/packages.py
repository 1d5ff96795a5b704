"""Check of the installed packages: versions, and name clashes of top-level modules."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from slackwater.plugins.doctor.finding import Finding

_OURS = "slackwater"
_SHOWN = ("ray", "raydp", "pyspark", "pylance", "pyarrow", "obstore")
_MODULES = ("state", "actors", "spark_bridge", "slackwater")
# The requirements of RayDP limit the version of Spark.
_DEPENDENTS = (_OURS, "raydp")


class PackagesCheck:
    """The versions of Python and of the required packages, and the owners of the top-level modules."""

    name = "packages"

    def findings(self) -> Iterator[Finding]:
        try:
            ours = distribution(_OURS)
        except PackageNotFoundError:
            yield Finding.warning(
                self.name,
                "slackwater runs from its source tree, which does not record the required versions",
                "install it: pip install .",
            )
            return
        yield _python(ours)
        unfit = [text for name in _DEPENDENTS for text in _unfit(name)]
        shown = ", ".join(f"{name} {version(name)}" for name in _SHOWN if _version(name))
        if unfit:
            found = f"{'; '.join(unfit)} (installed: {shown})"
            yield Finding.wrong(self.name, found, "install slackwater into a fresh virtual environment")
        else:
            yield Finding.ok(self.name, f"all versions are within their ranges: {shown}")
        yield from self._foreign_modules()

    def _foreign_modules(self) -> Iterator[Finding]:
        owners = packages_distributions()
        for module in _MODULES:
            others = sorted({*owners.get(module, ())} - {_OURS})
            if others:
                yield Finding.warning(
                    "modules",
                    f"the module {module} belongs to {', '.join(others)}, too: one package hides files of the other",
                    "install slackwater into a virtual environment without that package",
                )


def _python(ours: Distribution) -> Finding:
    wanted, running = ours.metadata["Requires-Python"] or "", platform.python_version()
    if SpecifierSet(wanted).contains(running, prereleases=True):
        return Finding.ok("python", running)
    return Finding.wrong(
        "python", f"{running}; slackwater needs {wanted}", "create the virtual environment with another Python"
    )


def _unfit(dependent: str) -> Iterator[str]:
    """The unmet requirements of a package."""
    try:
        requirements = distribution(dependent).requires or []
    except PackageNotFoundError:
        return
    for requirement in map(Requirement, requirements):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        found = _version(requirement.name)
        if found is None:
            yield f"{requirement.name} is missing, and {dependent} requires it"
        elif not requirement.specifier.contains(found, prereleases=True):
            yield f"{requirement.name} is {found}, and {dependent} requires {requirement.specifier}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
