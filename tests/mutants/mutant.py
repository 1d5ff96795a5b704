"""A deliberate fault, as a small replacement in the source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Args:
        name: what is wrong.
        file: relative to the repository.
        replacements: old text → new text; each old text stands in the file exactly once.
        among: the stories that can show a rare fault: an expression over `scenario`.
        start: the first seed that is tried.  A story that showed the fault once saves the search for a rare one;
            when stories change, the search goes on from there.
        shown_by: the test, or the module of tests, that fails with a fault that stories show too seldom; empty for the
            others.
    """

    name: str
    file: str
    replacements: tuple[tuple[str, str], ...]
    among: str = "True"
    start: int = 0
    shown_by: str = ""

    def applied(self, source: str) -> str:
        """The file with the fault in it."""
        for old, new in self.replacements:
            assert source.count(old) == 1, f"{self.name}: {self.file} has {source.count(old)} times\n{old}"
            source = source.replace(old, new)
        return source
