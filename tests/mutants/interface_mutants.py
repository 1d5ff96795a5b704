"""Faults of the public names, of the values that `Pipeline.source` takes, and of the parts of a `Store`."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

INTERFACE_MUTANTS = (
    Mutant(
        "the rows of replaced files count in the status of a root",
        "slackwater/reading/watching/stored_status.py",
        (("if status not in REMOVED_STATUSES]", "if status]"),),
        shown_by="tests/slackwater/plugins/ui/test_root_documents.py",
    ),
    Mutant(
        "the error for a name of `sw.errors` does not name its place",
        "slackwater/__init__.py",
        (("if name in _import_module(each).__all__", "if name == each"),),
        shown_by="tests/test_exported_members.py",
    ),
    Mutant(
        "the hint for an argument of a value lacks the value",
        "slackwater/cli/target.py",
        (("get_close_matches(found[3], [*known, *nested], 1)", "get_close_matches(found[3], known, 1)"),),
        shown_by="tests/slackwater/cli/test_usage.py",
    ),
    Mutant(
        "a public name is hidden from type checkers",
        "slackwater/__init__.pyi",
        (("import Pipeline as Pipeline\n", "import Pipeline\n"),),
        shown_by="tests/test_exported_members.py",
    ),
    Mutant(
        "the limits of the removals of a source are the defaults",
        "slackwater/pipeline.py",
        (("limits = on_change if isinstance(on_change, Replace) else Replace()", "limits = Replace()"),),
        shown_by="tests/slackwater/test_sources.py",
    ),
    Mutant(
        "the condition of Debezium replaces the condition of the key",
        "slackwater/pipeline.py",
        (
            (
                "row_key is not None and row_key.deleted is None and isinstance",
                "row_key is not None and isinstance",
            ),
        ),
        shown_by="tests/actors/formats/test_debezium.py",
    ),
    Mutant(
        "the durations of an event time are checked when a file is read",
        "actors/sources/event_time.py",
        (("        _ = self.lateness_us, self.max_ahead_us\n", ""),),
        shown_by="tests/actors/reading/test_event_times.py",
    ),
    Mutant(
        "the ledger and the views of a frozen store are at the latest epoch",
        "slackwater/reading/store.py",
        (("frozen._handle = self._handle.frozen()", "frozen._handle = StoreHandle.open(self._root, self._clock)"),),
        shown_by="tests/slackwater/reading/test_store.py",
    ),
    Mutant(
        "a schema is checked when a source is declared with it",
        "slackwater/sources.py",
        (("        _ = self.arrow\n", ""),),
        shown_by="tests/slackwater/test_sources.py",
    ),
    Mutant(
        "each alert gets a companion of its own",
        "slackwater/extensions/by_class.py",
        (("grouped.setdefault(type(option), [])", "grouped.setdefault(object(), [])"),),
        shown_by="tests/slackwater/extensions/test_options.py",
    ),
    Mutant(
        "the alerts of a run end with its other companions",
        "slackwater/plugins/alerts/alert_watch.py",
        (("    ends_first = True  #", "    ends_first = False  #"),),
        shown_by="tests/slackwater/extensions/test_options.py",
    ),
    Mutant(
        "the work on files begins without the published tables",
        "slackwater/pipeline.py",
        (
            (
                "RunViews(self._views.values(), self._sources, published)",
                "RunViews(self._views.values(), self._sources)",
            ),
        ),
        shown_by="tests/slackwater/extensions/test_options.py",
    ),
    Mutant(
        "any value is an action on files",
        "slackwater/extensions/file_action.py",
        (("    if not isinstance(after, FileAction):\n", "    if after is None:\n"),),
        shown_by="tests/slackwater/plugins/after_commit/test_declaration.py",
    ),
)
