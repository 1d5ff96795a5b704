"""Slackwater keeps SQL views up to date over the files that arrive in an object store.

    import slackwater as sw

    pipeline = sw.Pipeline("flights", root="s3://lake/flights")
    pipeline.source("flights", "s3://raw/flights/", format="parquet")
    pipeline.view("by_carrier", "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier")
    report = pipeline.run(until="caught_up")

    sw.open("s3://lake/flights").snapshot().view("by_carrier").to_arrow()

Data flow: a `Pipeline` declares sources and views → `run` or `start` hosts the actors on Ray and the views on Spark,
and returns a `RunReport` or a `Run` → every epoch is one commit at the root → `open` gives a `Store`, whose `Snapshot`
has the ledger and all views of one epoch.

Invariants:

* Reading (`open`) needs no Ray, no Spark and no Java.
* `__init__.pyi` lists the public names.  A name is imported at its first use: `import slackwater` alone loads none.
* Every expected error is a `SlackwaterError`; `state/errors.py` has the tree.

    pipeline.py    Pipeline: sources, views, run, start, explain, dry_run
    settings.py    Settings, and the settings of each part
    sources.py     the values that `Pipeline.source` takes
    formats.py     the built-in formats, and the interface of a custom format
    errors.py      the errors, by the name under which users import them
    expect.py      expectations over a view as a whole
    tables/        static tables, which come with a pipeline
    running/       Run: attempts, recovery, requests of the user, Spark
    extensions/    the interfaces between a pipeline and its optional features
    plugins/       optional features, which the core does not import: serve, publish, lineage, alerts, ...
    backfill/      the earlier rows that a backfill reads
    branching/     branch, merge, drop_branch: roots that share the files of an epoch
    places/        the places of a pipeline, and which of them may overlap
    planning/      DryRun, ViewExplanation and DefinitionChange: the work of a run, before it starts
    reading/       Store, Snapshot, View: reading a root; watching/, the state of a run, observed through its root
    confinement/   worker processes for SQL that others wrote
    verification/  verify: every view computed again and compared
    commands/      requests from other processes to the owner of a root
    status/        RunStatus, RunReport and Trace, as values; observability/, their metrics and spans
    cli/           the command `slackwater`; terminal/, its output
    testing/       S3 and SQS servers, and proxies with faults
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from lazy_loader import attach_stub

__version__ = "0.1.0"

_load, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> _Any:
    if name in __all__:
        return _load(name)
    modules = () if name.startswith("_") else ("errors", "settings", "formats", "expect")
    places = (f"slackwater.{each}" for each in modules)
    place = next((each for each in places if name in _import_module(each).__all__), None)
    hint = "" if place is None else f"; did you mean {place}.{name}?"
    raise AttributeError(f"module 'slackwater' has no attribute {name!r}{hint}", name=name)
