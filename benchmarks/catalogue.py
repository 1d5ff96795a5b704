"""Catalogue of the benchmarks, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A benchmark.

    Args:
        name: of its module, its text and its result.
        limit_s: a run that takes longer is ended, and said to have failed.
        full: its arguments; what it takes by itself is for the long form.
        quick: its arguments in the quick form; None leaves it out of that.
    """

    name: str
    limit_s: float = 300.0
    full: tuple[str, ...] = ()
    quick: tuple[str, ...] | None = None

    def command(self, *, quick: bool) -> str:
        """The command that makes its numbers."""
        return " ".join(["python", "-m", f"benchmarks.{self.name}", *self.arguments(quick=quick)])

    def arguments(self, *, quick: bool) -> tuple[str, ...]:
        """Of the form that is asked for; a benchmark without a quick form has only the full one."""
        return self.quick if quick and self.quick is not None else self.full


def _words(line: str) -> tuple[str, ...]:
    return tuple(line.split())


CATALOGUE = (
    Entry(
        "realistic",
        1_800,
        _words("--epochs 20 --most-rows 600000 --restart 216"),
        _words("--pipeline demo --rows 5000 --epochs 12"),
    ),
    Entry("small_files", 400, quick=_words("--files 300")),
    Entry("freshness", 400, _words("--files 40 --warm 10")),
    Entry("waiting", 900, _words("--waits 5 --bursts 8")),
    Entry("growing_view", 400, _words("--files 150")),
    Entry("reading", quick=_words("--quick")),
    Entry("bulk_reading", 300),
    Entry("many_files", 300, _words("--files 20000")),
    Entry("stored_rows", 500, _words("--turns 1 --shapes 2")),
    Entry("parts", 120, quick=_words("--epochs 50")),
    Entry("long_life", 300, _words("--epochs 2500 --step-s 4"), _words("--epochs 150 --step-s 30")),
    Entry("large_ledger", 1_800, _words("--files 1000000,10000000,30000000")),
    Entry("large_run", 900, _words("--files 10000000")),
    Entry("relisting", 300, _words("--names 1000000"), quick=_words("--names 100000 --in-bucket 0")),
    Entry("point_lookup", 200, quick=_words("--groups 100000 --epochs 20")),
    Entry("view_costs", 300, _words("--epochs 15")),
    Entry("views_over_views", 900),
    Entry("joined_view", 900),
    Entry("large_epoch", 600, _words("--epochs 2")),
    Entry("windows", 900),
    Entry("single_values", 900),
    Entry("publishing", 300),
    Entry("serving", 300, quick=_words("--groups 100000 --seconds 1 --life-s 12")),
    Entry("branch", 600),
    Entry("keyed_source", 900),
    Entry("closing_windows", 300),
    Entry("leaving_rows", 300),
    Entry("tpch", 1_800),
    Entry("nexmark", 600),
    Entry("corrections", 900),
    Entry("backfill", 300, _words("--rows 2000000 --turns 1")),
    Entry("redefined_view", 300),
    Entry("beside_backfill", 300, _words("--rows 1600000 --files 40 --materialize")),
    Entry("rescaling", 300, _words("--files 20000")),
    Entry("notifications", 300, _words("--files 40 --events 4000 --rest 10")),
    Entry("discovery_cost", 30, quick=()),
    Entry("startup", 300, _words("--turns 2")),
    Entry("busy_start", 3_600, _words("--starts 5")),
    Entry("commands", 60, quick=_words("--times 1")),
    Entry("idle", 400, quick=_words("--settle 15 --seconds 30")),
    Entry("observing", 200, _words("--commits 400 --files 60")),
)


def chosen(names: Sequence[str], *, quick: bool) -> list[Entry]:
    """The entries of these names, in the order of the page; without names all that have such a form.

    Raises:
        ValueError: there is no benchmark of a name.
    """
    known = {entry.name: entry for entry in CATALOGUE}
    for name in names:
        if name not in known:
            raise ValueError(f"there is no benchmark {name!r}; there are: {', '.join(known)}")
    if names:
        return [entry for entry in CATALOGUE if entry.name in names]
    return [entry for entry in CATALOGUE if entry.quick is not None or not quick]
