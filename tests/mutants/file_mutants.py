"""Deliberate faults in what is done to files after the commit."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_DUE = "slackwater/plugins/after_commit/due_files.py"
_REACH = "slackwater/plugins/after_commit/reach.py"
_WORK = "slackwater/plugins/after_commit/file_work.py"
_SHOWN = "tests/slackwater/plugins/after_commit/test_file_work.py"

FILE_MUTANTS = (
    Mutant(
        "doctor judges a source by the rules of a new one",
        "slackwater/plugins/doctor/access.py",
        (("        source, names = self._as_recorded(), 0\n", "        source, names = self._source, 0\n"),),
        shown_by="tests/slackwater/plugins/doctor/test_doctor.py::test_a_source_is_judged_by_the_rules_that_its_root_has_recorded",
    ),
    Mutant(
        "init reads the programs beside the files",
        "slackwater/planning/samples/found_format.py",
        (("    if suffix in _NO_DATA:\n", "    if False:\n"),),
        shown_by="tests/slackwater/cli/test_init.py::test_programs_beside_the_files_are_left_out",
    ),
    Mutant(
        "a name that is not text is a store that cannot be reached",
        "actors/objects/object_store.py",
        (("        if not path.isascii() and not _is_text(path):\n", "        if False:\n"),),
        shown_by="tests/slackwater/tables/test_static_table.py::test_a_name_that_is_not_text_is_named",
    ),
    Mutant(
        "a weak etag names one content",
        "slackwater/reading/tables/same_content.py",
        (('return f"etag {etag}" if is_strong(etag) else None', 'return f"etag {etag}"'),),
        shown_by="tests/slackwater/reading/test_same_content.py",
    ),
    Mutant(
        "an event about a name that cannot be read ends the run",
        "actors/objects/object_store.py",
        (("            except (AccessDeniedError, UnreadableFile):\n", "            except AccessDeniedError:\n"),),
        shown_by="tests/actors/objects/test_find.py::"
        "test_a_name_that_cannot_be_read_is_found_as_a_listing_shows_it[../a.csv]",
    ),
    Mutant(
        "an event with a key that no bucket has is looked at",
        "actors/notifications/bucket_event.py",
        (("    if size > _MOST_KEY_BYTES:\n", "    if size < 0:\n"),),
        shown_by="tests/actors/notifications/test_bucket_event.py::test_what_no_bucket_writes_is_poison_and_says_why",
    ),
    Mutant(
        "a file is deleted before its time",
        _REACH,
        (("moment.now - timedelta(seconds=keep_s)", "moment.now"),),
        shown_by=f"{_SHOWN}::test_a_file_is_deleted_when_its_epoch_is_old_enough",
    ),
    Mutant(
        "a file with quarantined records is deleted",
        _DUE,
        (('pc.equal(pc.coalesce(rows["rows_bad"], 0), 0)', 'pc.is_valid(rows["path"])'),),
        shown_by=f"{_SHOWN}::test_only_files_whose_rows_are_complete_are_touched",
    ),
    Mutant(
        "a quarantined file is deleted",
        _DUE,
        (('_DONE = Clue("status", equals="done")', '_DONE = Clue("status", is_set=True)'),),
        shown_by=f"{_SHOWN}::test_only_files_whose_rows_are_complete_are_touched",
    ),
    Mutant(
        "a file that is being read again is deleted",
        _DUE,
        (('pc.invert(pc.is_in(rows["key"], value_set=queued))', 'pc.is_valid(rows["path"])'),),
        shown_by=f"{_SHOWN}::test_only_files_whose_rows_are_complete_are_touched",
    ),
    Mutant(
        "files do not wait for the tables that follow a view",
        _REACH,
        (("limits[reason] = epoch or 0", "limits[reason] = kept"),),
        shown_by=f"{_SHOWN}::test_files_wait_for_the_tables_that_follow_views_of_their_source",
    ),
    Mutant(
        "files do not wait for the gate",
        _REACH,
        (("published_epoch(moment.state, moment.catalog)}", "moment.state.head.epoch}"),),
        shown_by=f"{_SHOWN}::test_files_wait_for_the_gate",
    ),
    Mutant(
        "files go that a failed view needs",
        _REACH,
        (("(view.error is not None or _is_built(name, head))", "_is_built(name, head)"),),
        shown_by=f"{_SHOWN}::test_files_stay_while_a_view_needs_them",
    ),
    Mutant(
        "a branch deletes the files of its root",
        _REACH,
        (("if root_above(moment.root) is not None:", "if root_above(moment.root) is None and not source:"),),
        shown_by=f"{_SHOWN}::test_a_branch_touches_no_file",
    ),
    Mutant(
        "what was done is recorded before it is done",
        _WORK,
        (
            (
                "                outcomes = self._outcomes(look, batch)\n                is_refused",
                '                self._note(look.name, progress, batch, [FileResult("done")] * len(batch))\n'
                "                outcomes = self._outcomes(look, batch)\n                is_refused",
            ),
        ),
        shown_by=_SHOWN,
    ),
)
