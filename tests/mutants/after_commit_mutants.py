"""Deliberate faults in the conditions by which files are deleted or moved after the commit, and in moves."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_REACH = "slackwater/plugins/after_commit/reach.py"
_VIEWS = "slackwater/extensions/run_views.py"
_WORK = "slackwater/plugins/after_commit/file_work.py"
_DUE = "slackwater/plugins/after_commit/due_files.py"
_CLOCK = "slackwater/plugins/after_commit/clock_watch.py"
_CHANGES = "actors/objects/object_changes.py"
_ARCHIVE = "actors/objects/archive_directory.py"
_PART = "state/removal/part_file.py"
_CONDITIONS = "tests/slackwater/plugins/after_commit/test_conditions.py"
_MOVES = "tests/actors/objects/test_moves.py"

AFTER_COMMIT_MUTANTS = (
    Mutant(
        "a look that began while a branch was noted deletes its files",
        "slackwater/extensions/run_views.py",
        (("if needs.number != self._number or self._exclusions:", "if needs.number != self._number:"),),
        shown_by="tests/slackwater/plugins/after_commit/test_conditions.py::"
        "test_no_file_is_deleted_while_a_branch_is_noted_nor_by_a_look_that_began_before",
    ),
    Mutant(
        "a branch is noted while a look goes on",
        "slackwater/running/commanded_run.py",
        (
            (
                "        with self.declared.needs.excluding():\n            self.owner.change(",
                "        self.owner.change(",
            ),
        ),
        shown_by="tests/slackwater/running/test_command_loop.py",
    ),
    Mutant(
        "a suspended process deletes files although another process owns the root",
        "slackwater/plugins/after_commit/file_work.py",
        (("            self._confirm(look.name, _CONFIRMED_FOR_S)  # a copy", "            # a copy"),),
        shown_by="tests/slackwater/plugins/after_commit/test_file_work.py",
    ),
    Mutant(
        "files are deleted before the views of the run are analysed",
        _REACH,
        (("if not needs.is_analysed:", "if needs.number < 0:"),),
        shown_by=f"{_CONDITIONS}::test_no_file_is_deleted_before_the_views_of_the_run_are_analysed",
    ),
    Mutant(
        "a stored view of the same name counts as the declared one",
        _REACH,
        (("if stored.identity != needs.identities[name]:", "if not stored.identity:"),),
        shown_by=f"{_CONDITIONS}::test_a_view_with_another_definition_keeps_the_files_until_its_backfill_is_live",
    ),
    Mutant(
        "files of a view that is being rebuilt are deleted",
        _REACH,
        (("if stored.version_name in needs.rebuilt:", "if stored.name in needs.rebuilt:"),),
        shown_by=f"{_CONDITIONS}::test_a_stale_view_and_a_rebuilt_one_keep_the_files",
    ),
    Mutant(
        "a look goes on with the declaration of before",
        _VIEWS,
        (("if needs.number != self._number or", "if needs.number > self._number or"),),
        shown_by=f"{_CONDITIONS}::test_a_look_that_the_declaration_overtakes_deletes_nothing_more",
    ),
    Mutant(
        "a view is accepted while one of its files is being deleted",
        _VIEWS,
        (("*new_tables)\n            self._changed.wait_for(lambda: self._acting == 0)", "*new_tables)"),),
        shown_by=f"{_CONDITIONS}::test_a_view_that_is_accepted_during_a_look_keeps_the_files_that_the_look_has_chosen",
    ),
    Mutant(
        "a file counts as stored without a look at the stored rows",
        _WORK,
        (("stored.get((each.file.path, version_number(each.file.version)), 0) != each.rows", "each.rows < 0"),),
        shown_by=f"{_CONDITIONS}::test_with_stored_rows_a_new_view_keeps_only_files_whose_rows_are_not_stored",
    ),
    Mutant(
        "a publication that has not reported yet does not count",
        _REACH,
        (
            ("tables = {*moment.needs.published, *moment.published}", "tables = {*moment.published}"),
            ("limits[reason] = epoch or 0", "limits[reason] = kept if epoch is None else epoch"),
        ),
        shown_by=f"{_CONDITIONS}::test_a_declared_publication_that_has_not_started_keeps_the_files",
    ),
    Mutant(
        "the modification time of a file does not count",
        _DUE,
        (
            ("return self.waits_s(keep_s, now) == 0", "return True"),
            ("(self.file.last_modified - now).total_seconds() + keep_s)", "-keep_s)"),
        ),
        shown_by=f"{_CONDITIONS}::test_a_commit_under_a_clock_that_was_behind_is_not_old",
    ),
    Mutant(
        "a jump of the clock is not noticed",
        _CLOCK,
        (("if abs(shift_s) <= _JUMP_S:", "if abs(shift_s) >= 0:"),),
        shown_by=f"{_CONDITIONS}::test_after_a_jump_of_the_clock_files_wait_for_the_whole_time_again",
    ),
    Mutant(
        "the next run does not know that the clock has jumped",
        _WORK,
        (("self._clock_change = self._record.clock_change()", "self._clock_change = None"),),
        shown_by=f"{_CONDITIONS}::test_the_next_run_waits_too_after_a_jump_of_the_clock",
    ),
    Mutant(
        "files are deleted that a branch has not read",
        _WORK,
        (("if readers and reached.epoch > progress.done:", "if not readers and reached.epoch > progress.done:"),),
        shown_by=f"{_CONDITIONS}::test_a_branch_keeps_the_files_that_it_has_not_read",
    ),
    Mutant(
        "a deletion in S3 has no condition",
        _CHANGES,
        (('{"IfMatch": etag} if is_strong(etag) else {}', "{}"),),
        shown_by=f"{_MOVES}::test_a_version_that_the_store_replaces_before_the_deletion_stays",
    ),
    Mutant(
        "a copy is not synced before the original is deleted",
        _ARCHIVE,
        (("            os.fsync(file.descriptor)\n", ""),),
        shown_by=f"{_MOVES}::test_the_copy_and_every_new_directory_are_synced_before_the_original_is_deleted",
    ),
    Mutant(
        "a copy is not compared with the original",
        _ARCHIVE,
        ((" or _hash_of(file.descriptor) != copied.digest():", ":"),),
        shown_by=f"{_MOVES}::test_other_bytes_on_the_disk_than_were_written_are_noticed",
    ),
    Mutant(
        "a move follows a link in the archive",
        _ARCHIVE,
        (("| os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC\n_READ", "| os.O_DIRECTORY | os.O_CLOEXEC\n_READ"),),
        shown_by=f"{_MOVES}::test_a_link_in_the_archive_is_not_followed",
    ),
    Mutant(
        "a move replaces a file that appears meanwhile",
        _PART,
        (
            (
                "            os.link(\n"
                "                self._part,\n"
                "                name,\n"
                "                src_dir_fd=self._directory,\n"
                "                dst_dir_fd=self._directory,\n"
                "                follow_symlinks=False,\n"
                "            )\n",
                "            os.replace(self._part, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)\n",
            ),
        ),
        shown_by=f"{_MOVES}::test_a_file_that_appears_during_the_copy_stays",
    ),
    Mutant(
        "a file is moved onto itself",
        _CHANGES,
        (("if os.path.samestat(found, of_original):", "if found is None:"),),
        shown_by=f"{_MOVES}::test_a_file_is_not_moved_onto_itself",
    ),
    Mutant(
        "an object is moved onto itself by another name of its server",
        _CHANGES,
        (("            if is_same:\n", "            if is_same and created is None:\n"),),
        shown_by=f"{_MOVES}::test_an_object_is_not_moved_onto_itself_by_another_name_of_its_server",
    ),
)
