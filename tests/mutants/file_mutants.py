"""Deliberate faults in what is done to files after the commit."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_DUE = "slackwater/after_commit/due_files.py"
_WORK = "slackwater/after_commit/file_work.py"
_CHANGES = "actors/objects/object_changes.py"
_SHOWN = "tests/slackwater/after_commit/test_file_work.py"
_SHOWN_OBJECTS = "tests/actors/objects/test_object_changes.py"

FILE_MUTANTS = (
    Mutant(
        "a file is deleted before its time",
        _DUE,
        (("now - timedelta(seconds=keep_s)", "now"),),
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
        _DUE,
        (("if view in published:", "if not published:"),),
        shown_by=f"{_SHOWN}::test_files_wait_for_the_tables_that_follow_views_of_their_source",
    ),
    Mutant(
        "files do not wait for the gate",
        _DUE,
        (("published_epoch(state, catalog)}", "state.head.epoch}"),),
        shown_by=f"{_SHOWN}::test_files_wait_for_the_gate",
    ),
    Mutant(
        "files go that a failed view needs",
        _DUE,
        (("view.error is not None or is_built", "is_built"),),
        shown_by=f"{_SHOWN}::test_files_stay_while_a_view_needs_them",
    ),
    Mutant(
        "a branch deletes the files of its root",
        _DUE,
        (("if root_above(root) is not None:", "if root_above(root) is None and not source:"),),
        shown_by=f"{_SHOWN}::test_a_branch_touches_no_file",
    ),
    Mutant(
        "what was done is recorded before it is done",
        _WORK,
        (
            (
                "                outcomes = self._outcomes(name, batch)\n                is_refused",
                '                self._note(name, progress, batch, [FileResult("done")] * len(batch))\n'
                "                outcomes = self._outcomes(name, batch)\n                is_refused",
            ),
        ),
        shown_by=_SHOWN,
    ),
    Mutant(
        "another version of an object is deleted",
        _CHANGES,
        (("if found.version != file.version:", "if found.path != file.path:"),),
        shown_by=f"{_SHOWN_OBJECTS}::test_another_version_stays",
    ),
    Mutant(
        "a move overwrites another object",
        _CHANGES,
        (("if (there := _size(other, target, file.path)) is None:", "if (there := 0) == 0:"),),
        shown_by=f"{_SHOWN_OBJECTS}::test_a_move_overwrites_no_other_object",
    ),
)
