"""Deliberate faults in published tables: values, nullability, partitions, lost logs, failures."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_CONTRACT = "tests/slackwater/plugins/publish/test_contract.py::test_a_table_equals_its_view_after_every_change"
_CHANGES = "tests/slackwater/plugins/publish/test_table_changes.py::"
_ROWS = "tests/state/equality/test_exact_rows.py"

PUBLICATION_MUTANTS = (
    Mutant(
        "a request for a token has another time limit",
        "slackwater/plugins/publish/timed_catalogs.py",
        (('"timeout": _timeouts(), **options', '"timeout": 5, **options'),),
        shown_by="tests/slackwater/plugins/publish/test_iceberg_catalogs.py::"
        "test_a_catalog_that_accepts_a_connection_and_never_answers_is_named[token]",
    ),
    Mutant(
        "a torn report ends the thread that reads reports",
        "slackwater/plugins/publish/publications.py",
        (('            if not line.endswith(b"\\n"):\n', "            if not line:\n"),),
        shown_by="tests/slackwater/plugins/publish/test_publications.py::"
        "test_a_report_that_a_death_has_cut_off_ends_the_life_of_the_process_only",
    ),
    Mutant(
        "publish returns without a reason for a failed view",
        "slackwater/plugins/publish/publisher.py",
        (("        if failure is not None:\n", "        if failure == 0:\n"),),
        shown_by="tests/slackwater/cli/test_published_views.py::"
        "test_publish_of_a_failed_view_exits_with_3_and_names_the_reason",
    ),
    Mutant(
        "the table of a view in backfill is reported as current",
        "slackwater/plugins/publish/publication_states.py",
        (("elif report.is_building:", "elif report.is_building and not self.publications:"),),
        shown_by="tests/simulation/test_after_commit_stories.py::"
        "test_a_run_that_stops_while_a_published_view_is_in_backfill_exits_with_3",
    ),
    Mutant(
        "the table of a failed view is reported as current",
        "slackwater/plugins/publish/publication_loop.py",
        (("        if failure is not None:\n", "        if failure == 0:\n"),),
        shown_by="tests/slackwater/plugins/publish/test_publication_loop.py::"
        "test_the_table_of_a_failed_view_is_reported_as_failed_until_the_view_works",
    ),
    Mutant(
        "the rows of Iceberg's manifests are not compared with the summary",
        "slackwater/plugins/publish/iceberg_table.py",
        (("    if rows != total:\n", "    if rows < 0:\n"),),
        shown_by=f"{_CHANGES}test_iceberg_metadata_that_is_read_in_part_loses_no_row[manifest]",
    ),
    Mutant(
        "a new snapshot of Iceberg is not compared with its summary",
        "slackwater/plugins/publish/iceberg_table.py",
        (("                _require_all_rows(table, staged, sum(counts))\n", "                del counts\n"),),
        shown_by=f"{_CHANGES}test_iceberg_metadata_that_is_read_in_part_loses_no_row[append]",
    ),
    Mutant(
        "a request to a REST catalog waits for ever",
        "slackwater/plugins/publish/timed_catalogs.py",
        (("session.request, timeout=_timeouts()", "session.request, timeout=10"),),
        shown_by="tests/slackwater/plugins/publish/test_iceberg_catalogs.py::"
        "test_a_catalog_that_accepts_a_connection_and_never_answers_is_named[uri]",
    ),
    Mutant(
        "a request for a Delta table is tried for minutes",
        "slackwater/plugins/publish/delta_table.py",
        (("else {**_RETRIES, **(options or {})}", "else options"),),
        shown_by="tests/slackwater/plugins/publish/test_iceberg_catalogs.py::"
        "test_a_store_that_accepts_a_connection_and_never_answers_a_delta_table_is_named",
    ),
    Mutant(
        "the manifests of a commit whose answer was lost are deleted",
        "state/removal/tables.py",
        (("    update._clean_all_uncommitted = lambda: None\n", "    del update\n"),),
        shown_by="tests/slackwater/plugins/publish/test_iceberg_catalogs.py::"
        "test_a_commit_whose_answer_was_lost_keeps_its_files",
    ),
    Mutant(
        "a table is trusted after an inexact merge whose process has died",
        "slackwater/plugins/publish/delta_table.py",
        (
            ("        if published is not None and _is_inexact(last):\n", "        if published is None:\n"),
            ("            published = replace(published, epoch=0)\n", "            pass\n"),
        ),
        shown_by=f"{_CHANGES}test_a_process_that_dies_after_an_inexact_merge_leaves_a_table_that_is_written_again",
    ),
    Mutant(
        "a root continues the table of another root with the same URL",
        "slackwater/plugins/publish/publication.py",
        ((' and published.identity in ("", self.identity)\n', "\n"),),
        shown_by="tests/slackwater/plugins/publish/test_root_identity.py::"
        "test_a_root_of_the_same_url_with_another_identity_is_refused_with_both_identities[parquet]",
    ),
    Mutant(
        "an adopted table of another root is continued by changes",
        "slackwater/plugins/publish/publisher.py",
        (("            since = None\n        else:", "            since = head.published.epoch\n        else:"),),
        shown_by="tests/slackwater/plugins/publish/test_root_identity.py::"
        "test_a_root_that_replaces_another_one_adopts_its_table[parquet]",
    ),
    Mutant(
        "a table that was created with rows is taken for an empty one",
        "slackwater/plugins/publish/delta_table.py",
        (
            (
                "        if operation == _CREATION and not self._table.file_uris():\n",
                "        if operation == _CREATION:\n",
            ),
        ),
        shown_by=f"{_CHANGES}test_rows_that_came_with_the_creation_of_a_table_stay",
    ),
    Mutant(
        "a retracted whole row removes rows with the other sign of a zero",
        "slackwater/plugins/publish/delta_table.py",
        (("        if not is_key and pa.types.is_floating(", "        if False and pa.types.is_floating("),),
        shown_by=f"{_CHANGES}test_one_of_rows_that_differ_in_the_sign_of_a_zero_leaves_alone[delta]",
    ),
    Mutant(
        "a commit without information is passed over",
        "slackwater/plugins/publish/delta_table.py",
        (
            (
                '            if commit.get("operation") not in _MAINTENANCE:\n',
                '            if "engineInfo" in commit:\n',
            ),
        ),
        shown_by=f"{_CHANGES}test_a_commit_without_information_is_one_of_another_program",
    ),
    Mutant(
        "the commits that a restore has taken back count",
        "slackwater/plugins/publish/delta_table.py",
        (("                version = min(int(restored), version - 1)\n", "                version -= 1\n"),),
        shown_by=f"{_CHANGES}test_a_restored_table_continues_from_the_restored_epoch",
    ),
    Mutant(
        "a column that was dropped and added again is taken for the old one",
        "slackwater/plugins/publish/iceberg_table.py",
        (("        if _has_other_columns(self._table, snapshot):\n", "        if False:\n"),),
        shown_by=f"{_CHANGES}test_a_column_that_was_dropped_and_added_again_is_a_change_of_another_program",
    ),
    Mutant(
        "a removed group has the columns of the view, which may have no nulls",
        "slackwater/plugins/publish/delta_table.py",
        (("        schema = with_nulls(change.rows.schema)\n", "        schema = change.rows.schema\n"),),
        shown_by=f"{_CONTRACT}[delta-groups]",
    ),
    Mutant(
        "an epoch without rows is a merge, which makes no commit",
        "slackwater/plugins/publish/delta_table.py",
        (
            (
                "if change.removed.num_rows or (change.key and change.rows.num_rows):",
                "if change.removed.num_rows or change.key:",
            ),
        ),
        shown_by=f"{_CONTRACT}[delta-groups]",
    ),
    Mutant(
        "a null list is written as an empty one",
        "state/equality/exact_rows.py",
        (
            (
                "    return make(offsets, values, type=kind, mask=mask)\n",
                "    return make(offsets, values, type=kind)\n",
            ),
        ),
        shown_by=_ROWS,
    ),
    Mutant(
        "the values below a null list are among the entries",
        "state/equality/exact_rows.py",
        (
            (
                "    lengths = pc.if_else(valid, pc.subtract(ends[1:], ends[:-1]), 0)\n",
                "    lengths = pc.subtract(ends[1:], ends[:-1])\n",
            ),
        ),
        shown_by=_ROWS,
    ),
    Mutant(
        "a column of a Delta table stays without nulls",
        "slackwater/plugins/publish/delta_table.py",
        (('schema_mode="overwrite" if is_stricter else None', "schema_mode=None"),),
        shown_by=f"{_CHANGES}test_a_column_that_may_be_null_now_is_so_in_the_table[delta]",
    ),
    Mutant(
        "a column of an Iceberg table stays without nulls",
        "slackwater/plugins/publish/iceberg_table.py",
        (("            if stricter:\n", "            if not stricter:\n"),),
        shown_by=f"{_CHANGES}test_a_column_that_may_be_null_now_is_so_in_the_table[iceberg]",
    ),
    Mutant(
        "an empty text is the value of a partition",
        "slackwater/plugins/publish/partitions.py",
        (('if value in ("", _NULL):', "if value == _NULL:"),),
        shown_by=f"{_CHANGES}test_a_text_that_does_not_come_back_is_refused_before_it_is_seen",
    ),
    Mutant(
        "a table whose log has lost the epoch is changed as if nothing were lost",
        "slackwater/plugins/publish/publisher.py",
        (("kept if kept > wanted.epoch else 0)", "kept)"),),
        shown_by=f"{_CHANGES}test_a_table_whose_log_has_lost_the_epoch_is_written_as_a_whole",
    ),
    Mutant(
        "the counts of a merge are not compared",
        "slackwater/plugins/publish/delta_table.py",
        (("or deletes != int(commit[_DELETED])", "or deletes < 0"),),
        shown_by=f"{_CHANGES}test_a_table_that_has_lost_rows_unseen_is_written_as_a_whole",
    ),
    Mutant(
        "a refused commit is taken for a commit of another process",
        "slackwater/plugins/publish/delta_table.py",
        (("            if self._is_overtaken():\n", "            if True:\n"),),
        shown_by=f"{_CHANGES}test_a_table_that_refuses_a_commit_is_no_failure_of_the_store",
    ),
    Mutant(
        "a failure that cannot pass is called one that may",
        "slackwater/plugins/publish/publication_loop.py",
        (("is_failed = not isinstance(error, _PASSING)", "is_failed = False"),),
        shown_by="tests/slackwater/plugins/publish/test_publication_loop.py::"
        "test_a_failed_turn_is_tried_again_with_growing_pauses_and_goes_on_by_itself",
    ),
    Mutant(
        "a failure that may pass is not tried again at the end of a run",
        "slackwater/plugins/publish/publication_loop.py",
        (("        while self._report.error is not None and not", "        while False and not"),),
        shown_by="tests/slackwater/plugins/publish/test_publication_loop.py::"
        "test_a_failure_that_may_pass_is_tried_again_at_the_end_of_a_run",
    ),
    Mutant(
        "a run exits with 0 though a table is behind",
        "slackwater/status/run_status.py",
        (('return self.state not in ("current", "held")', 'return self.state == "failed"'),),
        shown_by="tests/simulation/test_after_commit_stories.py::test_a_run_exits_with_3_exactly_if_a_table_is_behind_or_fails",
    ),
    Mutant(
        "a complete table is named as incomplete when its process is ended",
        "slackwater/plugins/publish/publication_states.py",
        (("(self._end_reason if may_lack else None)", "self._end_reason"),),
        shown_by="tests/simulation/test_after_commit_stories.py::test_a_run_exits_with_3_exactly_if_a_table_is_behind_or_fails",
    ),
    Mutant(
        "epochs that the process that publishes has not looked at do not count",
        "slackwater/plugins/publish/publication_states.py",
        (("        behind = report.later + len(since)\n", "        behind = report.later\n"),),
        shown_by="tests/slackwater/plugins/publish/test_publication_states.py::"
        "test_a_process_that_is_ended_in_time_makes_only_tables_incomplete_that_lack_an_epoch",
    ),
    Mutant(
        "a table that was not read since the start is complete",
        "slackwater/plugins/publish/publication_states.py",
        (("(behind > 0 or report.looked < self.epoch)", "behind > 0"),),
        shown_by="tests/slackwater/plugins/publish/test_publication_states.py",
    ),
)
