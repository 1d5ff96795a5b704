"""Deliberate faults in the rules of views: rows that leave, rows that tie, and views over views."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_SUBTRACTION = "spark_bridge/operators/group/subtraction_plan.py"
_SUBTRACTED = "tests/spark_bridge/operators/group/test_subtraction.py"
_DIGITS, _IN_DIGITS = (
    "spark_bridge/operators/group/exact_sums.py",
    "tests/spark_bridge/operators/group/test_exact_sums.py",
)
_EXACT = f"{_SUBTRACTED}::test_a_view_of_counts_and_sums_is_sparks_answer_after_corrections[all]"
_FOLLOWED = "tests/spark_bridge/maintenance/test_derived_views.py"
_DEEP = f"{_FOLLOWED}::test_graph_is_sparks_answer_at_every_epoch[deep]"
_INTERNAL = "tests/spark_bridge/maintenance/test_internal_views.py"
_CUT = "tests/spark_bridge/query/test_inner_views.py"
_PAIRS = "spark_bridge/operators/join/joined_changes.py"
_SIDES = "spark_bridge/changes/sides.py"
_POSITIONS = "spark_bridge/changes/joined_positions.py"
_TIER, _KEPT = "spark_bridge/changes/memory_tier.py", "tests/spark_bridge/changes/test_memory_tier.py"
_EPOCH_TIMES = "tests/spark_bridge/engine/catalyst/test_epoch_timestamps.py"
_TABLE_QUERY = "tests/spark_bridge/engine/execution/test_table_query.py"
_PLANNED_ONCE = "tests/spark_bridge/engine/execution/test_planned_once.py"
_WINDOWS = "tests/spark_bridge/operators/window/test_windows.py::test_window_is_sparks_answer_at_every_epoch"
_LIMITS = "tests/spark_bridge/operators/limit/test_limits.py"
_VALUES = "tests/spark_bridge/operators/scalar_subquery/test_single_values.py"
_BESIDE_EVERY_EPOCH = f"{_VALUES}::test_rows_beside_values_are_sparks_answer_at_every_epoch"
_STAYING = f"{_VALUES}::test_rows_that_stay_are_read_only_in_epochs_in_which_the_value_changes"
_BESIDE, _FORM = (
    "spark_bridge/operators/scalar_subquery/scalar_subquery_operator.py",
    "spark_bridge/operators/scalar_subquery/scalar_subquery_form.py",
)
_DRIVER_PLAN = "spark_bridge/engine/execution/driver_plan.py"
_DRIVER_JAVA = "spark_bridge/engine/execution/driver_plan.java"
_LEAVES = "tests/spark_bridge/engine/execution/test_planned_leaves.py"
_IN_DRIVER = "tests/spark_bridge/engine/execution/test_driver_plan.py"
_SESSION_WINDOWS = "spark_bridge/operators/window/session_windows.py"
_SESSIONS = "tests/spark_bridge/operators/window/test_sessions.py"
_WHOLE = "tests/spark_bridge/operators/global_window/test_whole_queries.py"
_JOINS = "tests/spark_bridge/operators/join/test_joins.py"
_CORRECTED = "tests/spark_bridge/maintenance/test_corrections.py"
_LATER = "spark_bridge/datasets/later_commits.py"
_LATER_COMMITS = "tests/spark_bridge/datasets/test_later_commits.py"
_TIMERS, _TIMED_ROWS = (
    "tests/spark_bridge/operators/temporal_filter/test_timers.py",
    "spark_bridge/operators/temporal_filter/temporal_filter_rows.py",
)
_TIMED_CONDITIONS = "spark_bridge/operators/temporal_filter/temporal_conditions.py"
_TIMED = f"{_TIMERS}::test_rows_come_and_leave_as_spark_says_at_every_epoch"
_TIME_COMES = f"{_TIMERS}::test_an_epoch_begins_when_the_time_of_a_row_has_come"
_EVERY_EPOCH = f"{_JOINS}::test_join_is_sparks_answer_at_every_epoch"
_CLOSING_VIEWS = "tests/spark_bridge/operators/group/test_closing_views.py"
_SESSIONS_CLOSE = f"{_CLOSING_VIEWS}::test_groups_are_shown_when_their_window_closes_and_never_change"
_TOGETHER = "tests/spark_bridge/operators/group/test_session_merge.py"
_CLOSING = (
    "tests/spark_bridge/operators/group/test_closing_views.py::"
    "test_groups_are_shown_when_their_window_closes_and_never_change[tumbling]"
)
_EXPIRING = "tests/spark_bridge/operators/join/test_expiring_joins.py"
_EXPIRES = f"{_EXPIRING}::test_a_join_whose_rows_expire_is_sparks_answer_over_the_rows_in_time"
_AGES = (
    "tests/spark_bridge/maintenance/test_time_to_live.py::"
    "test_a_view_is_sparks_answer_over_the_rows_that_are_young_enough"
)
_VERIFIED = "tests/slackwater/verification/test_watermarks.py"
_KEYED = "tests/spark_bridge/maintenance/test_keyed_sources.py"
_SHARED = "tests/spark_bridge/maintenance/test_shared_views.py"
_SHARED_ROWS = "spark_bridge/maintenance/recorded_views.py"
_ADDED_LATER = f"{_JOINS}::test_views_over_joins_that_are_added_later_get_all_rows"
_REGROUPED = "tests/spark_bridge/maintenance/test_regrouped_views.py"
_PIECES = "tests/spark_bridge/maintenance/test_backfill_pieces.py"
_ADDED = "tests/spark_bridge/maintenance/test_added_measures.py"
_SAME_GROUPS, _CHANGE = (
    "spark_bridge/operators/group/aggregate_calls.py",
    "tests/slackwater/planning/test_definition_change.py",
)
_REBUILT = f"{_REGROUPED}::test_a_view_that_needs_more_than_the_stored_groups_is_rebuilt"
_TAKEN_OVER = f"{_REGROUPED}::test_a_view_over_the_same_groups_takes_them_over_in_one_epoch"

_LARGE, _LARGE_JOINS = (
    "spark_bridge/operators/join/large_sides.py",
    "tests/spark_bridge/operators/join/test_large_joins.py",
)
_IN_NO_TABLE = f"{_LARGE_JOINS}::test_many_new_rows_of_a_join_are_in_no_table"

VIEW_MUTANTS = (
    Mutant(
        "a session closes at its end",
        "spark_bridge/operators/group/closing_view.py",
        (('    _closes_at = "<"\n', '    _closes_at = "<="\n'),),
        shown_by=f"{_CLOSING_VIEWS}::test_a_session_that_ends_at_the_watermark_may_get_longer",
    ),
    Mutant(
        "a session of rows in time does not take those that it touches",
        "spark_bridge/operators/group/closing_view.py",
        (("pa.concat_tables([stored, new])", "pa.concat_tables([stored, new]).slice(stored.num_rows)"),),
        shown_by=f"{_SESSIONS_CLOSE}[sessions]",
    ),
    Mutant(
        "a row that happened before the watermark counts in sessions",
        "spark_bridge/operators/group/closing_view.py",
        (("        rows = self._without_late(rows)\n", "        self._without_late(rows)\n"),),
        shown_by=f"{_SESSIONS_CLOSE}[sessions]",
    ),
    Mutant(
        "the values of a closed window stay",
        "spark_bridge/operators/group/closing_view.py",
        (('self._tables.distinct.delete_where(f"{UNTIL_FIELD.name} <= {watermark}")', "pass"),),
        shown_by=f"{_SESSIONS_CLOSE}[hopping, distinct]",
    ),
    Mutant(
        "late rows stand where a column of a view says",
        "spark_bridge/engine/catalyst/carried_column.py",
        (("        if field.name not in known:\n", "        if not known:\n"),),
        shown_by=f"{_SESSIONS_CLOSE}[windows of a view]",
    ),
    Mutant(
        "sessions of different keys touch",
        "spark_bridge/operators/group/session_merge.py",
        (("(keys[1:] != keys[:-1]) | (start[1:] > latest[:-1])", "start[1:] > latest[:-1]"),),
        shown_by=f"{_TOGETHER}::test_sessions_that_touch_are_one_as_if_they_came_one_by_one",
    ),
    Mutant(
        "a session ends with the one that began last",
        "spark_bridge/operators/group/session_merge.py",
        (("np.maximum.accumulate(keys * len(ends) + number)", "(keys * len(ends) + number)"),),
        shown_by=f"{_TOGETHER}::test_sessions_that_touch_are_one_as_if_they_came_one_by_one",
    ),
    Mutant(
        "groups pass a filter that is never true",
        "spark_bridge/engine/execution/planned_once.py",
        ((' if simple_name(each) == "RDDScanExec"]', "]"),),
        shown_by=f"{_PLANNED_ONCE}::test_a_filter_that_is_never_true_passes_no_row",
    ),
    Mutant(
        "many new rows of both sides meet twice",
        _LARGE,
        (("left.staying(right.new_hashes), right.coming()", "left.after(right.new_hashes), right.coming()"),),
        shown_by=f"{_IN_NO_TABLE}[groups of pairs]",
    ),
    Mutant(
        "many new rows meet the other side as it was",
        _LARGE,
        (("yield 1, left.coming(), right.after(", "yield 1, left.coming(), right.before("),),
        shown_by=f"{_IN_NO_TABLE}[groups of pairs]",
    ),
    Mutant(
        "a row stays as it is when one of many new rows is its partner",
        _LARGE,
        (
            (
                "gone, new = left.changed_beside(right)",
                "gone, new = left.leaving(), left.coming()",
            ),
        ),
        shown_by=f"{_IN_NO_TABLE}[left]",
    ),
    Mutant(
        "many new rows without a key have no row in a full join",
        _LARGE,
        (("return LeafRows.together(self._parents.catalyst, [one, other])", "return one"),),
        shown_by=f"{_IN_NO_TABLE}[full]",
    ),
    Mutant(
        "many pairs that come are stored without the equals of those that leave",
        "spark_bridge/maintenance/weighted_rows.py",
        (("[*self._table.staged(left), *new]", "[*new]"),),
        shown_by=f"{_IN_NO_TABLE}[left]",
    ),
    Mutant(
        "a group of a join is computed again from all rows of the other side",
        "spark_bridge/operators/join/join_operator.py",
        (("            if hashes is not None:\n", "            if hashes is not None and not name:\n"),),
        shown_by=f"{_JOINS}::test_a_group_that_is_computed_again_has_its_rows_of_both_sides[right side]",
    ),
    Mutant(
        "rows of the other side without a partner are looked up by the values of the first",
        "spark_bridge/operators/join/join_operator.py",
        (('if join.kind != "inner" and (join.kind == "full" or side == RIGHT):', 'if join.kind == "full":'),),
        shown_by=f"{_JOINS}::test_a_group_of_rows_without_a_partner_is_computed_again[LEFT]",
    ),
    Mutant(
        "equal rows leave together",
        "spark_bridge/maintenance/weighted_rows.py",
        (("self._table.count_of(hashes) == gone.num_rows", "self._table.count_of(hashes) >= gone.num_rows"),),
        shown_by=f"{_JOINS}::test_equal_rows_come_and_leave_one_by_one",
    ),
    Mutant(
        "a row that leaves a join is read again",
        "spark_bridge/maintenance/weighted_rows.py",
        (("self._table.count_of(hashes) == gone.num_rows", "gone.num_rows == 0"),),
        shown_by=f"{_JOINS}::test_rows_that_leave_are_deleted_and_not_read",
    ),
    Mutant(
        "old rows of a file are those at their first places",
        "spark_bridge/changes/corrections.py",
        (("each - deleted.rank(each) for each in taken", "each for each in taken"),),
        shown_by=f"{_CORRECTED}::test_the_old_rows_of_a_file_are_read_without_a_scan",
    ),
    Mutant(
        "a fragment is scanned for the old rows of a file",
        "spark_bridge/changes/corrections.py",
        (("if fragments and stored is self._before else None", "if not source else None"),),
        shown_by=f"{_CORRECTED}::test_the_old_rows_of_a_file_are_read_without_a_scan",
    ),
    Mutant(
        "an epoch ends before its commits",
        _LATER,
        (("            yield\n            self.wait_for_all()\n", "            yield\n"),),
        shown_by=f"{_LATER_COMMITS}::test_an_epoch_ends_with_the_error_of_a_commit",
    ),
    Mutant(
        "a reader does not wait for a commit",
        _LATER,
        (("        if running is not None:\n", "        if running is None:\n"),),
        shown_by=f"{_LATER_COMMITS}::test_work_is_over_before_its_commit_and_readers_wait",
    ),
    Mutant(
        "a commit is left behind by work that fails",
        _LATER,
        (("            wait(running)\n", "            pass\n"),),
        shown_by=f"{_LATER_COMMITS}::test_work_that_fails_leaves_no_commit_behind",
    ),
    Mutant(
        "a view waits until the one below is written",
        "spark_bridge/materializer.py",
        (('_run_views(_ROWS, self._commits.of(times.timing("", work)))', '_run_views(_ROWS, times.timing("", work))'),),
        shown_by=f"{_LATER_COMMITS}::test_a_view_is_computed_while_the_one_below_is_written",
    ),
    Mutant(
        "rows that leave are counted once more",
        _SUBTRACTION,
        (("return [stored[0] - gone[0]]", "return [stored[0] + gone[0]]"),),
        shown_by=_EXACT,
    ),
    Mutant(
        "a group does not end with its last row",
        _SUBTRACTION,
        (("pc.greater(left.column(self._rows_column), 0)", "pc.greater(left.column(self._rows_column), -1)"),),
        shown_by=_EXACT,
    ),
    Mutant(
        "a sum of no values is zero",
        _SUBTRACTION,
        (("F.when(count == 0, initial[0])", "F.when(count < 0, initial[0])"),),
        shown_by=_EXACT,
    ),
    Mutant(
        "a sum that has overflowed is subtracted",
        _SUBTRACTION,
        (("*rest], (count > 0) & left.isNull()", "*rest], (count < 0) & left.isNull()"),),
        shown_by=f"{_SUBTRACTED}::test_a_group_whose_sum_had_overflowed_is_computed_again",
    ),
    Mutant(
        "an average of integers is subtracted as doubles",
        _SUBTRACTION,
        (('left = self._left(self._position(helpers[0]))[0].cast("double")', "left = stored[0] - gone[0]"),),
        shown_by=f"{_SUBTRACTED}::test_an_average_of_great_integers_does_not_round_what_is_left",
    ),
    Mutant(
        "a retracted moment has no bound of its error",
        _DIGITS,
        (("is_near = (counts == 1) | (error <= TOLERANCE * np.abs(values))", "is_near = counts > 0"),),
        shown_by=f"{_IN_DIGITS}::test_a_value_is_within_the_bound_or_its_group_is_lost[ill conditioned]",
    ),
    Mutant(
        "a retracted sum has no bound of its error",
        _DIGITS,
        (("is_near = 2 * of.error <= TOLERANCE * np.abs(values)", "is_near = of.is_known"),),
        shown_by=f"{_IN_DIGITS}::test_small_values_that_have_had_a_large_one_beside_them_are_lost",
    ),
    Mutant(
        "values beyond the digits do not lose their group",
        _DIGITS,
        (("return (absolute < 2.0 ** (61 + self.exponents[0])) & (counts < _MOST_VALUES)", "return counts > 0"),),
        shown_by=f"{_IN_DIGITS}::test_a_group_that_has_had_a_value_beyond_the_digits_is_lost",
    ),
    Mutant(
        "a difference of sums with an error is taken",
        _DIGITS,
        (("np.where(near & (of.error > 0), subtracted, values)", "subtracted"),),
        shown_by=f"{_IN_DIGITS}::test_a_sum_that_was_exact_stays_exact",
    ),
    Mutant(
        "an exact difference of sums is not taken",
        _DIGITS,
        (("np.where(near & (of.error > 0), subtracted, values)", "values"),),
        shown_by=f"{_IN_DIGITS}::test_a_sum_that_was_exact_stays_exact",
    ),
    Mutant(
        "a view that is older than retraction gets hidden sums",
        "spark_bridge/operators/group/aggregate_view.py",
        (("            self._lose_retraction()\n        lacks_counts", "            pass\n        lacks_counts"),),
        shown_by="tests/spark_bridge/operators/group/test_retraction.py::test_a_view_that_is_older_than_retraction_goes_on",
    ),
    Mutant(
        "groups without old rows are not merged",
        "spark_bridge/operators/group/aggregate_plan.py",
        (("stored.filter(is_left_alone)", "stored.filter(is_left_alone).slice(0, 0)"),),
        shown_by=_EXACT,
    ),
    Mutant(
        "the least value of a group stays when it leaves",
        _SUBTRACTION,
        (("gone[0] > stored[0]", "gone[0] >= stored[0]"),),
        shown_by=f"{_SUBTRACTED}::test_a_group_is_read_again_if_its_least_or_greatest_value_leaves",
    ),
    Mutant(
        "a value that leaves is passed by a smaller one",
        _SUBTRACTION,
        (("new <= stored[0]) if", "new >= stored[0]) if"),),
        shown_by=f"{_SUBTRACTED}::test_a_group_is_not_read_again_if_a_new_value_passes_the_one_that_leaves",
    ),
    Mutant(
        "rows that come leave",
        "spark_bridge/operators/group/grouped_rows.py",
        (("for weight in (-1, 1)", "for weight in (1, -1)"),),
        shown_by=_EXACT,
    ),
    Mutant(
        "the rows of a group whose key is null are not read",
        "spark_bridge/ingest/dataset_frame.py",
        (("if values.null_count else condition", "if False else condition"),),
        shown_by=f"{_SUBTRACTED}::test_only_the_rows_of_the_groups_that_are_computed_again_are_read[g]",
    ),
    Mutant(
        "a piece of stored history begins with its first fragment",
        "spark_bridge/ingest/dataset_frame.py",
        (("parts[0].first, sum(", "0, sum("),),
        shown_by="tests/spark_bridge/ingest/test_stored_span.py",
    ),
    Mutant(
        "the groups of many rows are not put together after the shuffle",
        "spark_bridge/operators/group/partial_aggregation.py",
        (("            plan = self._catalyst.trees.with_children(self._together, [plan])\n", ""),),
        shown_by="tests/spark_bridge/ingest/test_stored_span.py",
    ),
    Mutant(
        "the fragments that a correction took rows from are not read",
        "spark_bridge/changes/corrections.py",
        (("if after.get(number, _GONE) != deleted}", "if number < 0}"),),
        shown_by=_EXACT,
    ),
    Mutant(
        "the fragments that a correction brought are not read",
        "spark_bridge/changes/corrections.py",
        (("after.keys() - before.keys()", "after.keys() & before.keys()"),),
        shown_by=_EXACT,
    ),
    Mutant(
        "an aggregation has the values of a column in one branch of a union only",
        "spark_bridge/plans/columns.py",
        (("if known.get(name) == position}", "if True or known}"),),
        shown_by=f"{_SUBTRACTED}::test_a_grouping_is_followed_to_the_columns_of_the_rows[two columns]",
    ),
    Mutant(
        "a stale view gets the error of its parent",
        "spark_bridge/maintenance/recorded_views.py",
        (("in (ViewState.STALE, ViewState.DROPPING)", "is ViewState.DROPPING"),),
        shown_by=f"{_FOLLOWED}::test_a_view_that_stands_keeps_its_own_error_when_its_parent_fails",
    ),
    Mutant(
        "tied rows have the order in which they come",
        "spark_bridge/plans/total_order.py",
        (("order += self.ties(order, catalyst.trees.items(plan.child().output()))", "order += []"),),
        shown_by="tests/spark_bridge/plans/test_total_order.py",
    ),
    Mutant(
        "a view over a view runs beside its parent",
        "spark_bridge/maintenance/derived_views.py",
        (("return 1 + max(", "return 1 + 0 * max("),),
        shown_by=_DEEP,
    ),
    Mutant(
        "rows leave a view twice in an epoch with a correction",
        "spark_bridge/changes/change_set.py",
        (("_without(later.gone, self.keys)", "later.gone"),),
        shown_by=f"{_FOLLOWED}::test_graph_is_sparks_answer_at_every_epoch[one row]",
    ),
    Mutant(
        "the rows before and after a change are exchanged",
        "spark_bridge/operators/group/aggregate_view.py",
        (
            (
                "ChangeSet(keys.combine_chunks(), before, merged.result.select(before.schema.names))",
                "ChangeSet(keys.combine_chunks(), merged.result.select(before.schema.names), before)",
            ),
        ),
        shown_by=_DEEP,
    ),
    Mutant(
        "a row stays when its row of the parent leaves",
        "spark_bridge/maintenance/derived_rows.py",
        (("self._table.exchange(origins, new)", "self._table.exchange(origins.slice(0, 0), new)"),),
        shown_by=_DEEP,
    ),
    Mutant(
        "changes beside the computation of a view over views are lost",
        "spark_bridge/maintenance/derived_views.py",
        (("            unshown.keep(parents)\n", ""),),
        shown_by=f"{_FOLLOWED}::test_view_that_is_added_later_gets_all_rows",
    ),
    Mutant(
        "a view goes on when its parent has failed",
        "spark_bridge/maintenance/recorded_views.py",
        (("read.intersection(self._lives.within(ViewState.FAILING))", "read.intersection(())"),),
        shown_by=f"{_FOLLOWED}::test_a_view_fails_with_its_parent_and_the_others_go_on",
    ),
    Mutant(
        "views over views do not follow",
        "spark_bridge/maintenance/recorded_views.py",
        (("self._follow(epoch, changes(), follow)", "self._follow(epoch, {}, follow)"),),
    ),
    Mutant(
        "rows that leave count for their DISTINCT value",
        "spark_bridge/operators/group/distinct_set.py",
        (("pc.greater(weights, 0)", "pc.greater(counts, 0)"),),
        shown_by=f"{_FOLLOWED}::test_distinct_values_of_a_parent_are_counted[counts]",
    ),
    Mutant(
        "a DISTINCT value leaves with the first of its rows",
        "spark_bridge/operators/group/grouped_rows.py",
        (("changed.pairs.filter(pc.and_not(was, stays))", "changed.pairs.filter(was)"),),
        shown_by=f"{_FOLLOWED}::test_distinct_values_of_a_parent_are_counted[counts]",
    ),
    Mutant(
        "the internal views of a declared view are stopped at a start",
        "actors/recovery/catalog_changes.py",
        (("declared_name(name) not in definition.views", 'name.removesuffix(".next") not in definition.views'),),
        among="scenario.nested_view",
    ),
    Mutant(
        "a view that has failed leaves its internal views",
        "spark_bridge/maintenance/recorded_views.py",
        (("        internal = self._internal_views_of(name)\n", "        internal = list[str]()\n"),),
        shown_by=f"{_INTERNAL}::test_a_view_fails_with_its_internal_views_and_is_rebuilt[within]",
    ),
    Mutant(
        "the internal views of a dropped view are not dropped",
        "spark_bridge/maintenance/recorded_views.py",
        (("names = [name, *self._internal_views_of(name)]", "names = [name]"),),
        shown_by=f"{_INTERNAL}::test_a_dropped_view_takes_its_internal_views_along",
    ),
    Mutant(
        "an internal view continues in the epoch that ends it",
        "spark_bridge/maintenance/declaration.py",
        (("if is_view(name) or name not in ending}", "if True}"),),
        shown_by=f"{_INTERNAL}::test_a_internal_view_that_is_let_go_and_wanted_again_before_an_epoch_has_all_rows",
    ),
    Mutant(
        "equal aggregations of two sources are one internal view",
        "spark_bridge/operators/cut.py",
        (("identity_text(catalyst.trees, inner, self.leaves,", "identity_text(catalyst.trees, inner, {},"),),
        shown_by=f"{_CUT}::test_aggregations_of_two_sources_with_equal_columns_are_two_views",
    ),
    Mutant(
        "the columns of an internal view have other names in each session",
        "spark_bridge/operators/cut.py",
        (('re.compile(r"(?:#\\d+L?|\\W)+")', 're.compile(r"\\W+")'),),
        shown_by=f"{_CUT}::test_columns_without_a_name_have_the_same_name_in_every_session",
    ),
    Mutant(
        "one task of tidying follows an epoch, however many views there are",
        "spark_bridge/materializer.py",
        (
            (
                "        while self._tidy_one() and self._clock.monotonic() < until_s:\n            pass\n",
                "        self._tidy_one()\n",
            ),
        ),
        shown_by="tests/spark_bridge/test_materializer.py::test_many_views_are_tidied_as_often_as_a_few",
    ),
    Mutant(
        "rows that leave are joined with the rows after",
        _SIDES,
        (("of(self.gone, partners.before, -1)", "of(self.gone, right.rows_after(partners, self.hashes), -1)"),),
        shown_by=f"{_JOINS}::test_partners_that_change_in_one_epoch_meet_once[INNER]",
    ),
    Mutant(
        "rows that stay lose no partners",
        _SIDES,
        (("            Pairs.of(staying, right.gone, -1),\n", ""),),
        shown_by=f"{_EVERY_EPOCH}[three]",
    ),
    Mutant(
        "rows that stay get no partners",
        _SIDES,
        (("            Pairs.of(staying, right.new, 1),\n", ""),),
        shown_by=f"{_EVERY_EPOCH}[three]",
    ),
    Mutant(
        "rows that come are joined with the rows before",
        _SIDES,
        (("of(self.new, right.rows_after(partners, self.hashes), 1)", "of(self.new, partners.before, 1)"),),
        shown_by=f"{_EVERY_EPOCH}[three]",
    ),
    Mutant(
        "rows that leave are among those that stay",
        _SIDES,
        (("staying = self.rows_before(right.hashes).stay", "staying = self.rows_before(right.hashes).before"),),
        shown_by=f"{_JOINS}::test_partners_that_change_in_one_epoch_meet_once[INNER]",
    ),
    Mutant(
        "an outer join forgets the rows whose partners change",
        _PAIRS,
        (("pa.concat_tables([left.new, staying])", "left.new"),),
        shown_by=f"{_EVERY_EPOCH}[left]",
    ),
    Mutant(
        "an outer join asks for the partners after, twice",
        _PAIRS,
        (
            (
                "before = with_hashes(partners.before, hashes_of(gone))",
                "before = right.rows_after(partners, hashes_of(gone))",
            ),
        ),
        shown_by=f"{_EVERY_EPOCH}[left]",
    ),
    Mutant(
        "a full join forgets the rows without a key",
        _PAIRS,
        (("rows.filter(rows.column(_JOIN).is_null())", "rows.slice(0, 0)"),),
        shown_by=f"{_EVERY_EPOCH}[full]",
    ),
    Mutant(
        "rows of sources stand beside rows that leave",
        "spark_bridge/query/inner_views.py",
        (("if all(of_sources) or not any(of_sources):", "if of_sources:"),),
        shown_by=f"{_EVERY_EPOCH}[beside_groups]",
    ),
    Mutant(
        "a row without a partner is not in an outer join",
        _POSITIONS,
        (("alone = np.flatnonzero(~has_partner)", "alone = np.flatnonzero(~has_partner)[:0]"),),
        shown_by=f"{_EVERY_EPOCH}[left]",
    ),
    Mutant(
        "rows of the right side are not alone in a full join",
        _POSITIONS,
        (('if kind == "full" else alone[:0]', "if not kind else alone[:0]"),),
        shown_by=f"{_EVERY_EPOCH}[full]",
    ),
    Mutant(
        "equal hashes are partners, whatever the condition",
        _PAIRS,
        (("return met[0][are_partners], met[1][are_partners]", "return met"),),
        shown_by=f"{_EVERY_EPOCH}[left]",
    ),
    Mutant(
        "Spark gets batches without rows",
        "spark_bridge/engine/catalyst/arrow_frames.py",
        (
            ("if batch.num_rows:\n", "if batch is not None:\n"),
            ("    if chunks <= table.nbytes // _PART_BYTES + 1:\n", "    if chunks:\n"),
        ),
        shown_by="tests/spark_bridge/engine/catalyst/test_arrow_frames.py::test_an_empty_chunk_ends_nothing[1-50000]",
    ),
    Mutant(
        "rows stay when the time has reached them",
        _TIMED_ROWS,
        (("        if not turning:\n", "        if turning is not None:\n"),),
        shown_by=f"{_TIMED}[group]",
    ),
    Mutant(
        "a scan reads the rows that one boundary of several has passed",
        _TIMED_ROWS,
        (("for bound in plan.bounds if (each", "for bound in plan.bounds[:1] if (each"),),
        shown_by=f"{_TIMED}[nested]",
    ),
    Mutant(
        "the next time of one boundary of several is looked for",
        _TIMED_ROWS,
        (("        for bound in plan.bounds:\n", "        for bound in plan.bounds[:1]:\n"),),
        shown_by=f"{_TIMERS}::test_an_epoch_begins_when_any_boundary_of_a_condition_comes_to_a_row",
    ),
    Mutant(
        "the NOT of what is not known is true",
        "spark_bridge/operators/temporal_filter/temporal_filter_plan.py",
        (('"not": invert,', '"not": lambda part: ~(part & part.is_valid()),'),),
        shown_by=f"{_TIMED}[neither]",
    ),
    Mutant(
        "a CASE whose condition is not known has no value",
        _TIMED_CONDITIONS,
        (('_combined("and", known, _combined("has a value", known))', "known"),),
        shown_by=f"{_TIMED}[case]",
    ),
    Mutant(
        "a condition is computed for rows that the query does not compute it for",
        _TIMED_CONDITIONS,
        (("if needed is None or is_attribute(value):", "if needed is not value:"),),
        shown_by=f"{_TIMED}[guarded]",
    ),
    Mutant(
        "a condition behind an OR is computed for the rows that the first one keeps",
        _TIMED_CONDITIONS,
        (('self._is(each, name == "Or")', 'self._is(each, name == "And")'),),
        shown_by=f"{_TIMED}[guarded]",
    ),
    Mutant(
        "rows that come with a file are compared with the time of the epoch before the time passes",
        _TIMED_ROWS,
        (("new.append(changes.new.select(read).filter(was))", "new.append(changes.new.select(read).filter(is_now))"),),
        shown_by=f"{_TIMED}[between]",
    ),
    Mutant(
        "an equal boundary has reached no row",
        "spark_bridge/operators/temporal_filter/temporal_filter_plan.py",
        (("return value <= limit if self.at_equal else", "return value < limit if self.at_equal else"),),
        shown_by=f"{_TIMED}[between]",
    ),
    Mutant(
        "the time to which a view is right is that of the epoch",
        "spark_bridge/maintenance/derived_views.py",
        (("parents, rows.since(times[name])))", "parents, rows.since(None)))"),),
        among="scenario.time_filter",
    ),
    Mutant(
        "rows below a time to live are kept",
        "spark_bridge/maintenance/expiring_rows.py",
        (("if (bound := self._followed.next_bound()) is not None:", "if (bound := None):"),),
        shown_by=f"{_AGES}[groups]",
    ),
    Mutant(
        "rows below a time to live leave before they are taken out of the groups",
        "spark_bridge/maintenance/expiring_rows.py",
        (
            (
                "        if (bound := self._followed.next_bound())",
                "        self._followed.advance(rows.watermarks)\n        if (bound := self._followed.next_bound())",
            ),
        ),
        shown_by=f"{_AGES}[groups]",
    ),
    Mutant(
        "a time to live follows the time of the epoch",
        "spark_bridge/operators/temporal_filter/temporal_filter_operator.py",
        (("given.time_us if plan.clock is None else", "given.time_us if plan.name else"),),
        shown_by=f"{_AGES}[groups]",
    ),
    Mutant(
        "a late row counts in a window that was closed before it came",
        "spark_bridge/maintenance/recomputation.py",
        (('rows = rows.join(late, is_late, "left_anti")', "pass"),),
        shown_by=f"{_VERIFIED}::test_closed_windows_are_equal_at_every_epoch",
    ),
    Mutant(
        "verify closes windows that are open",
        "spark_bridge/maintenance/recomputation.py",
        (("else end <= followed.closed_us", "else F.lit(True)"),),
        shown_by=f"{_VERIFIED}::test_closed_windows_are_equal_at_every_epoch",
    ),
    Mutant(
        "verify counts late rows of a join that expires, by DuckDB",
        "slackwater/verification/duckdb_tables.py",
        (("sources = [*counted.late, *counted.least_us]", "sources = [*counted.least_us]"),),
        shown_by=f"{_VERIFIED}::test_joins_whose_rows_expire_are_equal_at_every_epoch[auto]",
    ),
    Mutant(
        "verify does not miss late rows that were cleared",
        "slackwater/verification/recorded_watermarks.py",
        (("(late.num_rows == 0) != (num_late == 0)", "False"),),
        shown_by=f"{_VERIFIED}::test_late_rows_that_were_cleared_are_named_as_the_reason",
    ),
    Mutant(
        "a row that comes later wakes no epoch",
        _TIMED_ROWS,
        (("known[bound] = min(found, default=None)", "known[bound] = first"),),
        among="scenario.time_filter",
    ),
    Mutant(
        "rows that come are looked at as of the time of the epoch",
        _TIMED_ROWS,
        (("new.append(changes.new.select(read).filter(was))", "new.append(changes.new.select(read).filter(is_now))"),),
        among="scenario.time_filter",
    ),
    Mutant(
        "a boundary that goes back makes no row due",
        _TIMED_ROWS,
        (("            if bound.goes_back(begun_us, time_us):\n                return True\n", ""),),
        among="scenario.time_filter",
    ),
    Mutant(
        "the next time of a row is that of one which the time has reached",
        _TIMED_ROWS,
        (
            (
                "if bound not in known or (first is not None and bound.has_reached(first, begun_us)):",
                "if bound not in known:",
            ),
        ),
        among="scenario.time_filter",
        start=294,
    ),
    Mutant(
        "time alone makes no epoch",
        "spark_bridge/maintenance/recorded_views.py",
        (("        return self._derived.are_due(", "        return False and self._derived.are_due("),),
        among="scenario.time_filter",
    ),
    Mutant(
        "a view that was computed beside the epochs is right at the time of the epoch that shows it",
        "spark_bridge/maintenance/derived_views.py",
        (("changed.since(unshown.begun_us)", "changed.since(None)"),),
        among="scenario.time_filter",
        start=732,
    ),
    Mutant(
        "each poll looks for rows whose time has come",
        "spark_bridge/maintenance/recorded_views.py",
        (("TIMERS_EVERY_S = 5.0", "TIMERS_EVERY_S = 0.0"),),
        shown_by=_TIME_COMES,
    ),
    Mutant(
        "a boundary that went back leaves the next value as it was",
        _TIMED_ROWS,
        (("            self._forget(plan)  # rows that", "            plan.names  # rows that"),),
        among="scenario.time_filter",
    ),
    Mutant(
        "a scan reads the rows that the time reached before",
        "spark_bridge/operators/temporal_filter/temporal_filter_plan.py",
        (("self._reached(high) & ~self._reached(low)", "self._reached(high)"),),
        shown_by=f"{_TIMERS}::test_rows_that_leave_are_found_by_their_values",
    ),
    Mutant(
        "of equal rows all leave",
        "spark_bridge/changes/equal_rows.py",
        (("numbered(present) >= numbers[present]", "numbers[present] == 0"),),
        shown_by=f"{_JOINS}::test_equal_rows_come_and_leave_one_by_one",
    ),
    Mutant(
        "a row that stays is lost if its equal leaves",
        "spark_bridge/maintenance/weighted_rows.py",
        (
            (
                "pa.concat_tables([left.select(self._stored_names), ",
                "pa.concat_tables([left.select(self._stored_names).slice(0, 0), ",
            ),
        ),
        shown_by=f"{_JOINS}::test_equal_rows_come_and_leave_one_by_one",
    ),
    Mutant(
        "changes of several epochs begin at the rows of now",
        "spark_bridge/maintenance/parents_backfill.py",
        (("parents[name].since(self._begun[name],", "parents[name].since(parents[name].version,"),),
        shown_by=f"{_ADDED_LATER}[grouped]",
    ),
    Mutant(
        "an internal view over views does not count as a parent",
        "spark_bridge/maintenance/recorded_views.py",
        (
            (
                "if self._lives.state(name) is ViewState.BACKFILLING:",
                "if self._lives.state(name) is ViewState.BACKFILLING and is_view(name):",
            ),
        ),
        shown_by=f"{_ADDED_LATER}[joined_again]",
    ),
    Mutant(
        "compiled code keeps the time of its first epoch",
        "spark_bridge/engine/catalyst/epoch_timestamps.py",
        (("cast(self._variable, timestamp", "cast(_java_times(catalyst).literal(0), timestamp"),),
        shown_by=f"{_EPOCH_TIMES}::test_the_code_of_few_rows_keeps_no_time",
    ),
    Mutant(
        "copies of rows are all the last row",
        _DRIVER_JAVA,
        (("copied.apply((InternalRow) each.next()).copy()", "copied.apply((InternalRow) each.next())"),),
        shown_by=f"{_IN_DRIVER}::test_it_gives_the_rows_of_a_job_each_time[an aggregation by hash]",
    ),
    Mutant(
        "rows in memory are those after the epoch",
        "spark_bridge/changes/change_set.py",
        (("self.follower.follow(self._taken)", "self.follower.follow(self._changes or self._taken)"),),
        shown_by=f"{_EVERY_EPOCH}[left]",
    ),
    Mutant(
        "a join that was computed beside the epochs finds partners among the rows of now",
        "spark_bridge/changes/rows_before.py",
        (("        if parent.begun is not None:\n", "        if False:\n"),),
        among="scenario.join",
    ),
    Mutant(
        "rows in memory miss an epoch",
        "spark_bridge/changes/change_set.py",
        (("self._taken = changes if self.follower is not None else None", "self._taken = None"),),
        shown_by=f"{_EVERY_EPOCH}[left]",
    ),
    Mutant(
        "rows in memory without a key have the hash 0",
        "spark_bridge/changes/cached_rows.py",
        ((" and 0 not in wanted", ""),),
        shown_by="tests/spark_bridge/changes/test_memory_tier.py::test_rows_are_found_and_leave_as_in_a_plain_table",
    ),
    Mutant(
        "rows in memory never leave",
        "spark_bridge/changes/cached_rows.py",
        (("self._leaves[leaving] = True", "self._leaves[leaving] = False"),),
        shown_by=f"{_EVERY_EPOCH}[left]",
    ),
    Mutant(
        "rows in memory stay as hot as they were",
        "spark_bridge/materializer.py",
        (("        self._tier.begin_epoch()", "        pass"),),
        shown_by=f"{_JOINS}::test_sides_that_are_looked_up_take_the_place_of_those_that_were",
    ),
    Mutant(
        "cold rows take the place of hot ones in memory",
        _TIER,
        (("use.heat_per_byte < _HOTTER * coldest", "use.heat_per_byte > _HOTTER * coldest"),),
        shown_by=f"{_KEPT}::test_hot_rows_take_the_place_of_cold_ones",
    ),
    Mutant(
        "rows in memory change places without an end",
        _TIER,
        (("_HOTTER = 2", "_HOTTER = 0"),),
        shown_by=f"{_KEPT}::test_rows_that_are_equally_hot_do_not_change_places",
    ),
    Mutant(
        "rows in memory leave before the others have paid for their reading",
        _TIER,
        (("if not use.has_paid:", "if False:"),),
        shown_by=f"{_KEPT}::test_rows_come_only_after_look_ups_as_long_as_their_reading",
    ),
    Mutant(
        "rows that leave the memory and come again have the changes of the epoch twice",
        "spark_bridge/changes/change_set.py",
        (("self.follower, self._taken = follower, None", "self.follower = follower"),),
        shown_by=f"{_KEPT}::test_rows_that_leave_and_come_within_an_epoch_have_its_changes_once",
    ),
    Mutant(
        "a window sees the rows before and after as one",
        "spark_bridge/operators/window/window_form.py",
        (
            (
                "keys = [*more, *catalyst.trees.items(each.partitionSpec())]",
                "keys = catalyst.trees.items(each.partitionSpec())",
            ),
        ),
        shown_by=f"{_WINDOWS}[running]",
    ),
    Mutant(
        "rows below a window are those before the epoch",
        "spark_bridge/operators/window/window_operator.py",
        (("rows.rows_after(found, hashes)", "found.before"),),
        shown_by=f"{_WINDOWS}[running]",
    ),
    Mutant(
        "only changed rows are below a window",
        "spark_bridge/operators/window/window_operator.py",
        (("with_weights(found.before, rows.rows_after(found, hashes))", "with_weights(rows.gone, rows.new)"),),
        shown_by=f"{_WINDOWS}[running]",
    ),
    Mutant(
        "values that change beside a window stay",
        "spark_bridge/changes/equal_rows.py",
        (("< net[kinds] * weights", "< net[kinds]"),),
        shown_by=f"{_WINDOWS}[running]",
    ),
    Mutant(
        "sessions that touch stay apart",
        _SESSION_WINDOWS,
        (("(time > ends)", "(time >= ends)"),),
        shown_by=f"{_SESSIONS}::test_late_row_puts_two_sessions_together_and_its_file_takes_them_apart",
    ),
    Mutant(
        "a recomputed view leaves sessions to Spark",
        "spark_bridge/maintenance/recomputation.py",
        (("definition.name).of(with_all_sessions(catalyst, plan))", "definition.name).of(plan)"),),
        shown_by=f"{_SESSIONS}::test_condition_on_a_session_sees_whole_sessions",
    ),
    Mutant(
        "rows that stay keep their results when the value beside them changes",
        _BESIDE,
        (("if not before.equals(after):", "if before.num_rows > 1:"),),
        shown_by=_STAYING,
    ),
    Mutant(
        "rows that stay are read in every epoch",
        _BESIDE,
        (("if not before.equals(after):", "if before.num_rows:"),),
        shown_by=_STAYING,
    ),
    Mutant(
        "rows leave with the value of after",
        _BESIDE,
        (("_with(gone, before, -1)", "_with(gone, after, -1)"),),
        shown_by=f"{_BESIDE_EVERY_EPOCH}[above]",
    ),
    Mutant(
        "an operator is not in the registry",
        "spark_bridge/operators/registry.py",
        (("    LimitOperator,\n", ""),),
        shown_by="tests/spark_bridge/operators/test_registry.py",
    ),
    Mutant(
        "a join with one row is a join first",
        "spark_bridge/operators/registry.py",
        (("    # An operator may be", "    JoinOperator,\n    # An operator may be"),),
        shown_by=f"{_BESIDE_EVERY_EPOCH}[in a function]",
    ),
    Mutant(
        "no operator has rows that the time reaches",
        "spark_bridge/maintenance/parent_rows.py",
        (("return self._operators.of(leaf).is_due(self._given, leaf)", "return False"),),
        shown_by=f"{_TIMERS}::test_an_epoch_begins_when_any_boundary_of_a_condition_comes_to_a_row",
    ),
    Mutant(
        "rows that leave stay beside another value",
        "spark_bridge/changes/parents.py",
        (("pc.invert(pc.is_in(found, value_set=keys.cast(found.type)))", "pc.is_valid(found)"),),
        shown_by=f"{_BESIDE_EVERY_EPOCH}[above]",
    ),
    Mutant(
        "rows that leave stay among many beside another value",
        "spark_bridge/changes/parents.py",
        (('rows.join(F.broadcast(leaving), key, "left_anti").select(', "rows.select("),),
        shown_by=_STAYING,
    ),
    Mutant(
        "rows that begin to pass a filter do not come",
        _FORM,
        (("expressions.EqualNullSafe(*both)", "expressions.EqualTo(*both)"),),
        shown_by=f"{_BESIDE_EVERY_EPOCH}[above]",
    ),
    Mutant(
        "rows are joined with one row that is not there",
        _FORM,
        (("            self.conditions.append(flag)\n", "            pass\n"),),
        shown_by=f"{_BESIDE_EVERY_EPOCH}[maybe crossed]",
    ),
    Mutant(
        "an aggregation is taken for one row",
        "spark_bridge/operators/scalar_subquery/single_values.py",
        (("return not plan.groupingExpressions().size()", "return True"),),
        shown_by=f"{_VALUES}::test_other_subqueries_are_refused_with_a_way_out",
    ),
    Mutant(
        "a value of the groups stands beside the rows below them",
        "spark_bridge/operators/scalar_subquery/single_values.py",
        (
            (
                "of_groups.put_into(catalyst.trees.rewrite(value, part_of_group))",
                "catalyst.rewrite(value, part_of_group)",
            ),
        ),
        shown_by=f"{_BESIDE_EVERY_EPOCH}[share]",
    ),
    Mutant(
        "a view with a schedule is computed in the epochs",
        "spark_bridge/query/analysis.py",
        (('if definition.on_full != "allow" or not', 'if definition.on_full == "allow" or not'),),
        shown_by=f"{_VALUES}::test_a_view_with_a_schedule_is_recomputed_beside_the_epochs",
    ),
    Mutant(
        "of a query over many rows the rows that leave stay",
        "spark_bridge/operators/global_window/global_window_operator.py",
        (("where(F.col(_WEIGHT) != 0)", "where(F.col(_WEIGHT) > 0)"),),
        shown_by=f"{_WHOLE}::test_only_rows_that_differ_are_written[True]",
    ),
    Mutant(
        "a query over all rows is computed over those of after alone",
        "spark_bridge/operators/global_window/global_window_operator.py",
        (
            (
                "for version in (parent.version_before, parent.version)",
                "for version in (parent.version, parent.version)",
            ),
        ),
        shown_by=f"{_WHOLE}::test_only_rows_that_differ_are_written[False]",
    ),
    Mutant(
        "a limit takes new rows that come after rows which are not kept",
        "spark_bridge/operators/limit/limit_operator.py",
        (("None if before.are_all else", "None if before.rows is not None else"),),
        shown_by=f"{_LIMITS}::test_all_rows_are_put_in_order_again_when_the_spare_ones_have_left",
    ),
    Mutant(
        "a limit shows fewer rows when the spare ones have left",
        "spark_bridge/operators/limit/limit_operator.py",
        (("after.num_rows < max(1, limit.end)", "after.num_rows < 1"),),
        shown_by=f"{_LIMITS}::test_all_rows_are_put_in_order_again_when_the_spare_ones_have_left",
    ),
    Mutant(
        "the first rows of a limit are taken for those of any version",
        "spark_bridge/operators/limit/first_rows.py",
        (("if (path, number) == (version.path, version.version)", "if path == version.path"),),
        shown_by=f"{_LIMITS}::test_kept_rows_of_another_version_are_not_used",
    ),
    Mutant(
        "the first rows of a limit are all rows once they were",
        "spark_bridge/operators/limit/limit_operator.py",
        (("before.are_all and after.num_rows <= most", "before.are_all"),),
        shown_by=f"{_LIMITS}::test_a_limit_that_had_all_rows_may_have_others_later",
    ),
    Mutant(
        "rows that others have are recorded as they were first",
        _SHARED_ROWS,
        (("for name in sorted(shareable):", "for name in self._unshared(shareable):"),),
        shown_by=f"{_SHARED}::test_a_view_that_a_start_leaves_out_leaves_the_rows_to_the_other",
    ),
    Mutant(
        "rows that others have end with the first view",
        _SHARED_ROWS,
        (("in ending - self.shared.without_own_name()", "in ending"),),
        shown_by=f"{_SHARED}::test_a_view_that_fails_leaves_the_rows_to_the_other",
    ),
    Mutant(
        "only one view fails with common rows",
        _SHARED_ROWS,
        (("self.shared.names(base_name(error.view))", "[error.view]"),),
        shown_by=f"{_SHARED}::test_views_fail_together_if_their_common_rows_do",
    ),
    Mutant(
        "a view that may lack rows shares them",
        _SHARED_ROWS,
        (("apart.union(declaration.incomplete)", "declaration.incomplete"),),
        shown_by=f"{_SHARED}::test_only_the_same_rows_are_shared[incomplete]",
    ),
    Mutant(
        "rows with the time of an epoch are shared",
        "spark_bridge/query/analysis.py",
        (("plan.computed or plan.timestamps.are_in(analysed_plan) or", "plan.computed or"),),
        shown_by=f"{_SHARED}::test_only_the_same_rows_are_shared[time]",
    ),
    Mutant(
        "rows of Python functions are shared by the names of the functions",
        "spark_bridge/query/analysis.py",
        ((" or self._has_python(analysed_plan)", ""),),
        shown_by=f"{_SHARED}::test_only_the_same_rows_are_shared[python]",
    ),
    Mutant(
        "a view comes before the rows that it shares",
        "spark_bridge/maintenance/derived_views.py",
        (("{shared.representative(each) for each in plan.parents}", "{*plan.parents}"),),
        shown_by=f"{_SHARED}::test_sides_over_a_view_are_shared",
    ),
    Mutant(
        "a common dataset is fenced once for each of its views",
        "state/store/restored_views.py",
        (("view.at(restored[tuple(view.datasets.items())])", "restore(view)"),),
        shown_by="tests/state/store/test_restored_views.py",
    ),
    Mutant(
        "an old version of a common dataset is fenced last",
        "state/store/restored_views.py",
        (("key=lambda each: each.version", "key=lambda each: -each.version"),),
        shown_by="tests/state/store/test_restored_views.py",
    ),
    Mutant(
        "new rows never come into the index",
        "spark_bridge/datasets/dataset_upkeep.py",
        (('if stats["num_unindexed_rows"] < _INDEX_PIECE:', "if True:"),),
        shown_by="tests/spark_bridge/datasets/test_view_table.py",
    ),
    Mutant(
        "a deletion file lists each row of a run",
        "spark_bridge/datasets/view_table.py",
        (
            (
                "            self._update(np.unique(addresses), rows)\n        else",
                "            self._rewrite(lambda: self._dataset.delete(' OR '.join(conditions)))\n        else",
            ),
        ),
        shown_by="tests/spark_bridge/datasets/test_view_table.py",
    ),
    Mutant(
        "rows that left a small dataset are found in memory",
        "spark_bridge/datasets/small_rows.py",
        (("rows.slice(0, 0) if addresses is None else _without(rows, addresses)", "rows"),),
        shown_by="tests/spark_bridge/datasets/test_small_rows.py",
    ),
    Mutant(
        "rows in memory have the addresses of one fragment",
        "spark_bridge/datasets/small_rows.py",
        (("(np.uint64(number) << np.uint64(FRAGMENT_BITS))", "np.uint64(0)"),),
        shown_by="tests/spark_bridge/datasets/test_small_rows.py",
    ),
    Mutant(
        "a small dataset is written without the rows that stay",
        "spark_bridge/datasets/view_table.py",
        (("self.replace(pa.concat_tables([rest, with_schema", "self.replace(pa.concat_tables([with_schema"),),
        shown_by="tests/spark_bridge/datasets/test_small_rows.py",
    ),
    Mutant(
        "rows that go to another view are opened as they were recorded",
        "spark_bridge/maintenance/incremental_views.py",
        (("before = {name: shared.before(name) for name in plans}", "before = {name: name for name in plans}"),),
        shown_by=f"{_SHARED}::test_a_view_is_dropped_after_its_rows_were_tidied",
    ),
    Mutant(
        "of rows of one time and one file the first one counts",
        "actors/sources/row_key.py",
        (("for name in (*self.order_by, PATH, ROW))", "for name in (*self.order_by, PATH))"),),
        shown_by=f"{_KEYED}::test_a_view_sees_the_last_row_of_each_key_at_every_epoch[grouped]",
    ),
    Mutant(
        "a deleted record keeps its last row",
        "actors/sources/row_key.py",
        (("return is_last if self.deleted is None else", "return is_last if True else"),),
        shown_by=f"{_KEYED}::test_a_view_sees_the_last_row_of_each_key_at_every_epoch[grouped]",
    ),
    Mutant(
        "a row without a key is a row",
        "actors/reading/file_columns.py",
        (("rows = with_values(rows, self._needs)", "pass"),),
        shown_by="tests/actors/reading/test_required_values.py::test_more_of_them_than_allowed_end_the_file[3]",
    ),
    Mutant(
        "a late row changes a group",
        "spark_bridge/operators/group/closing_view.py",
        (("return replace(partials, groups=partials.groups.filter(pc.invert(is_late)))", "return partials"),),
        shown_by=_CLOSING,
    ),
    Mutant(
        "a group that closes stays open, too",
        "spark_bridge/datasets/view_table.py",
        (("self._update(rows.column(ADDRESS).to_numpy(), [])", "pass"),),
        shown_by=_CLOSING,
    ),
    Mutant(
        "an attempt begins without the windows that are closed",
        "spark_bridge/operators/group/closing_view.py",
        (("self._closed = closed_until(version)", "self._closed = None"),),
        shown_by=_CLOSING,
    ),
    Mutant(
        "windows close only in epochs with rows",
        "spark_bridge/maintenance/incremental_views.py",
        (("if is_touched or is_behind(plan, version, given.watermarks):", "if is_touched:"),),
        shown_by=_CLOSING,
    ),
    Mutant(
        "a group without a window stays open for ever",
        "spark_bridge/query/closing.py",
        (("if has_grouping_sets(trees, aggregate):", "if False:"),),
        shown_by="tests/spark_bridge/operators/group/test_closing_views.py::"
        "test_what_cannot_be_closed_is_refused_with_the_reason",
    ),
    Mutant(
        "a window closes at its end without the watermark of its own source",
        "spark_bridge/query/closing.py",
        (("times != {(source, column)}:", "not times:"),),
        shown_by="tests/spark_bridge/operators/group/test_closing_views.py::"
        "test_what_cannot_be_closed_is_refused_with_the_reason",
    ),
    Mutant(
        "a time to live lets rows leave that are partners",
        "spark_bridge/operators/join/time_bounds.py",
        (("time BETWEEN other - {most} AND other + {most}", "time BETWEEN other - {most} AND other"),),
        shown_by=f"{_EXPIRING}::test_rows_further_apart_than_the_time_to_live_are_no_partners_and_leave",
    ),
    Mutant(
        "rows expire by the watermark of their own epoch",
        "spark_bridge/maintenance/expiring_rows.py",
        (
            (
                "        bound = self._followed.next_bound()\n",
                "        self._followed.advance(rows.watermarks)\n        bound = self._followed.next_bound()\n",
            ),
        ),
        shown_by=f"{_EXPIRES}[inner]",
    ),
    Mutant(
        "a row leaves by the higher one of the watermarks",
        "spark_bridge/ingest/followed_watermarks.py",
        (
            (
                "bound = self._expiry.bound(self._watermarks)",
                "bound = self._expiry.bound(self._watermarks) and max(self._watermarks.values())",
            ),
        ),
        among="scenario.expiring",
        start=925,
    ),
    Mutant(
        "a row at the watermark is late",
        "spark_bridge/ingest/followed_watermarks.py",
        (("is_late = pc.less(", "is_late = pc.less_equal("),),
        among="scenario.expiring",
        start=3139,
    ),
    Mutant(
        "the late rows of a join are counted, and not kept",
        "spark_bridge/ingest/followed_watermarks.py",
        (("            self._late.append(LateRows(", "            str(LateRows("),),
        among="scenario.expiring",
        start=321,
    ),
    Mutant(
        "a late row is joined",
        "spark_bridge/ingest/followed_watermarks.py",
        (("return new.filter(pc.invert(is_late))", "return new"),),
        among="scenario.expiring",
        start=418,
    ),
    Mutant(
        "a late row is lost in silence",
        "spark_bridge/maintenance/incremental_views.py",
        (("for view in self._with_late.values() for", "for view in self.closing.values() for"),),
        shown_by=f"{_EXPIRES}[inner]",
    ),
    Mutant(
        "an attempt begins without the watermarks that its sides follow",
        "spark_bridge/ingest/followed_watermarks.py",
        (("self._watermarks = followed_watermarks(version)", "self._watermarks = {}"),),
        shown_by=f"{_EXPIRES}[inner]",
    ),
    Mutant(
        "no row of a side expires",
        "spark_bridge/maintenance/expiring_rows.py",
        (("_expire(self._table, self._time.column, bound)\n            self.changes", "self.changes"),),
        shown_by=f"{_EXPIRES}[inner]",
    ),
    Mutant(
        "the partners of a row that may get another one expire",
        "spark_bridge/operators/join/join_plan.py",
        (('if self.kind != "inner":', "if False:"),),
        shown_by=f"{_EXPIRES}[left]",
    ),
    Mutant(
        "rows expire before the view that joins them has them",
        "spark_bridge/ingest/followed_watermarks.py",
        (("declared_name(plan.name) not in waiting)", "True)"),),
        among="scenario.expiring",
        start=2823,
    ),
    Mutant(
        "sides that expire are shared with those that do not",
        "spark_bridge/query/row_expiry.py",
        (("identity=identity, content=None, expiry=expiry", "identity=identity, expiry=expiry"),),
        shown_by=f"{_EXPIRING}::test_rows_that_expire_are_not_shared_with_a_view_that_keeps_them",
    ),
    Mutant(
        "a view with another query goes on with the rows that are left",
        "spark_bridge/query/row_expiry.py",
        (("\\nof {whole}", ""),),
        shown_by=f"{_EXPIRING}::test_rows_that_expire_are_not_shared_with_a_view_that_keeps_them",
    ),
    Mutant(
        "rows that can be replaced expire",
        "spark_bridge/query/row_expiry.py",
        (
            (
                "        source = time.source\n        if source in self._declared.materialized:",
                "        source = time.source\n        if False:",
            ),
        ),
        shown_by=f"{_EXPIRING}::test_a_join_whose_rows_cannot_expire_is_refused_with_the_reason",
    ),
    Mutant(
        "rows in memory do not expire",
        "spark_bridge/changes/cached_rows.py",
        (("            run.expire(column, before_us)\n", "            pass\n"),),
        shown_by="tests/spark_bridge/changes/test_memory_tier.py::test_rows_that_expire_take_no_memory",
    ),
    Mutant(
        "groups are taken over, and the view before goes on",
        "spark_bridge/maintenance/recorded_views.py",
        (
            (
                "            self.versions[name] = complete.finished()\n",
                "            self.versions.setdefault(name, complete.finished())\n",
            ),
        ),
        among="'FILTER_VIEW(' in repr(scenario.story)",
    ),
    Mutant(
        "groups by another key are taken over",
        _SAME_GROUPS,
        (("groups != wanted_groups or ", ""),),
        shown_by=f"{_REBUILT}[only a key]",
    ),
    Mutant(
        "groups without a new measure are taken over",
        "spark_bridge/query/view_planner.py",
        (("has_all = not missing.shown", "has_all = True"),),
        shown_by=f"{_ADDED}::test_only_added_measures_are_computed_of_the_stored_rows[a measure]",
    ),
    Mutant(
        "values of DISTINCT are taken over under other numbers",
        _SAME_GROUPS,
        ((" or distinct != wanted_distinct", ""),),
        shown_by=f"{_REBUILT}[a value less]",
    ),
    Mutant(
        "groups of another join are taken over",
        _SAME_GROUPS,
        (("[each.definition for each in view.computed.values()]", "[]"),),
        shown_by=f"{_REBUILT}[another join]",
    ),
    Mutant(
        "groups of rows that are recomputed are taken over",
        "spark_bridge/maintenance/declaration.py",
        (("            and rebuilt.isdisjoint(self.plans[name].parents)\n", ""),),
        shown_by=f"{_CHANGE}::test_a_change_does_what_its_explanation_says[other rows of a side]",
    ),
    Mutant(
        "groups of a stale view are taken over",
        "spark_bridge/query/view_planner.py",
        (("stored.stopped_epoch is not None or ", ""),),
        shown_by=f"{_REGROUPED}::test_a_stale_view_is_rebuilt_and_not_of_its_old_groups",
    ),
    Mutant(
        "buffers are taken over in the order of the stored view",
        "spark_bridge/operators/group/aggregate_plan.py",
        (("in zip(self._call_texts, self", "in zip(sorted(self._call_texts), self"),),
        shown_by=f"{_TAKEN_OVER}[other columns]",
    ),
    Mutant(
        "earlier rows reach measures whose groups were taken over",
        "spark_bridge/maintenance/backfill.py",
        (("self.view.complete(rows) if self.lacks else self.view.apply(rows)", "self.view.apply(rows)"),),
        shown_by=f"{_ADDED}::test_only_added_measures_are_computed_of_the_stored_rows[a measure]",
    ),
    Mutant(
        "the measures that lack the history are forgotten by a crash",
        "spark_bridge/maintenance/backfill.py",
        (("missing, fraction, self.lacks, self.since)", "missing, fraction, (), self.since)"),),
        shown_by=f"{_ADDED}::test_only_added_measures_are_computed_of_the_stored_rows[a measure]",
    ),
    Mutant(
        "a backfill that begins again after a correction computes the added measures alone",
        "spark_bridge/maintenance/backfills.py",
        (
            (
                "= HistoryBackfill(begun.definition, begun.plan, self._make_view(begun.plan))",
                "= begun; begun.version = None",
            ),
        ),
        shown_by=f"{_ADDED}::test_a_correction_in_the_middle_rebuilds_all_measures[later]",
    ),
    Mutant(
        "a piece that is computed is added to a backfill that has restarted",
        "spark_bridge/maintenance/backfills.py",
        (("if self._backfills.get(self._begun.backfill.plan.name) is self._begun.backfill:", "if self._backfills:"),),
        shown_by=f"{_PIECES}::test_a_piece_of_a_backfill_that_restarts_is_not_added",
    ),
    Mutant(
        "a backfill does not rest after a piece",
        "spark_bridge/maintenance/backfills.py",
        (("ended + sum(seconds) * (1 / self._weight - 1)", "ended"),),
        shown_by=f"{_PIECES}::test_a_backfill_rests_by_its_weight_while_rows_come",
    ),
    Mutant(
        "a piece counts as soon as it is computed",
        "spark_bridge/maintenance/backfill.py",
        (
            (
                "return 1.0 if self.is_complete else self._fraction",
                "return self._history.fraction if self._history else 0.0",
            ),
        ),
        shown_by=f"{_PIECES}::test_the_progress_is_that_of_the_pieces_in_the_view",
    ),
    Mutant(
        "the halves of a fingerprint change places",
        "state/tables/fingerprint.py",
        (
            (
                "return pa.array(numbers[:, 0].copy()), pa.array(numbers[:, 1].copy())",
                "return pa.array(numbers[:, 1].copy()), pa.array(numbers[:, 0].copy())",
            ),
        ),
        shown_by="tests/state/tables/test_fingerprint.py::test_the_halves_of_fingerprints_make_them_whole_again",
    ),
    Mutant(
        "groups that lack measures are taken for a dataset without rows",
        "spark_bridge/maintenance/derived_views.py",
        (("if BackfillProgress.of(version).lacks:", "if False:"),),
        shown_by=f"{_ADDED}::test_measures_over_many_rows_of_views_are_computed_beside_the_epochs[an attempt ends]",
    ),
    Mutant(
        "the changes of the epoch that takes groups over are lost",
        "spark_bridge/maintenance/derived_views.py",
        (("        elif unshown.work is not None:\n", "        elif unshown.computed is not None:\n"),),
        shown_by=f"{_ADDED}::test_measures_over_many_rows_of_views_are_computed_beside_the_epochs[it goes on]",
    ),
    Mutant(
        "a view that took groups over is none that others can follow",
        "spark_bridge/maintenance/recorded_views.py",
        (
            (
                "(complete.plan, complete.view)\n            self._go_live(name)\n",
                "(complete.plan, complete.view)\n",
            ),
        ),
        shown_by=f"{_REGROUPED}::test_a_view_over_a_regrouped_one_is_rebuilt_of_its_new_rows",
    ),
    Mutant(
        "a view of groups has a second name in the catalog",
        "spark_bridge/maintenance/recorded_views.py",
        (("created = [each for each in created if each.name != next_name(name)]", "pass"),),
        shown_by=f"{_REGROUPED}::test_a_view_over_the_same_groups_takes_them_over_in_one_epoch",
    ),
    Mutant(
        "every session has a class of the same name",
        "spark_bridge/engine/catalyst/java_classes.py",
        (('f"slackwater.of{os.getpid()}n{next(_PACKAGES)}"', '"slackwater.of"'),),
        shown_by=f"{_TABLE_QUERY}::test_a_java_class_that_is_compiled_again_is_another_one",
    ),
    Mutant(
        "a process of Python is started by the thread of the driver",
        _DRIVER_PLAN,
        (('or ".python." in name', "or not name"),),
        shown_by=f"{_IN_DRIVER}::test_other_plans_are_jobs[a process of Python]",
    ),
    Mutant(
        "the columns of rows stand for other columns of a leaf",
        _DRIVER_PLAN,
        (("if rows.schema.names[: len(of_leaf)] != of_leaf.names:", "if not rows.schema:"),),
        shown_by=f"{_LEAVES}::test_columns_may_lack_and_may_be_further_ones_in_another_order[in the driver]",
    ),
    Mutant(
        "the driver holds millions of small rows",
        "spark_bridge/engine/execution/leaves.py",
        ((" and rows.num_rows <= _FEW_ROWS", ""),),
        shown_by=f"{_LEAVES}::test_many_rows_of_few_bytes_are_left_to_tasks",
    ),
    Mutant(
        "a constant of some rows is null",
        "spark_bridge/engine/catalyst/leaf_plans.py",
        (("self._constant(constants.get(name), each)", "self._constant(None, each)"),),
        shown_by=f"{_LEAVES}::test_parts_have_their_own_columns_and_constants[as a job]",
    ),
    Mutant(
        "a group has a row for each leaf of a union",
        "spark_bridge/engine/execution/planned_once.py",
        (("self._catalyst.physical.unions_in_one_partition(self._plan)", "self._plan"),),
        shown_by=f"{_LEAVES}::test_a_partial_aggregation_of_several_leaves_has_one_row_for_each_group",
    ),
    Mutant(
        "the memory of a plan in the driver is kept",
        _DRIVER_JAVA,
        (("context.markTaskCompleted(Option.empty());", ";"), ("memory.cleanUpAllAllocatedMemory();", ";")),
        shown_by=f"{_IN_DRIVER}::test_an_error_is_that_of_the_query_and_the_next_rows_are_right",
    ),
    Mutant(
        "a plan in the driver locks blocks without being known",
        _DRIVER_JAVA,
        (("spark.blockManager().registerTask(number);", ";"),),
        shown_by=f"{_IN_DRIVER}::test_a_broadcast_is_read_as_in_a_task",
    ),
    Mutant(
        "each view makes the sides of its joins",
        "spark_bridge/changes/parents.py",
        (("return self._sides.of(self.by_name[name])", "return Sides(self.before).of(self.by_name[name])"),),
        shown_by="tests/spark_bridge/changes/test_sides.py",
    ),
    Mutant(
        "a session ends where the row before ends",
        _SESSION_WINDOWS,
        (("in_order.rowsBetween(first, before)", "in_order.rowsBetween(before, before)"),),
        shown_by="tests/spark_bridge/operators/window/test_sessions.py::test_a_long_gap_spans_rows_with_short_ones",
    ),
    Mutant(
        "a PIVOT takes null for no value",
        "spark_bridge/operators/group/aggregate_functions.py",
        (
            (
                "catalyst.expressions.classes.EqualNullSafe(key, wanted)",
                "catalyst.expressions.classes.EqualTo(key, wanted)",
            ),
        ),
        shown_by=f"{_INTERNAL}::test_a_query_that_groups_within_equals_sparks_answer_at_every_epoch[pivoted]",
    ),
    Mutant(
        "a limit of no row is left out",
        "spark_bridge/operators/limit/limit_form.py",
        (("int(number.value()) > 0", "int(number.value()) >= 0"),),
        shown_by="tests/spark_bridge/query/test_refusals.py::"
        "test_view_that_cannot_be_maintained_is_refused_with_the_reason[GlobalLimit without an order]",
    ),
    Mutant(
        "rows that are only counted have no column",
        "spark_bridge/operators/cut.py",
        (("if not named:", "if False:"),),
        shown_by=f"{_EVERY_EPOCH}[counted_except]",
    ),
    Mutant(
        "tables below a limit stay in their order",
        "spark_bridge/operators/join/joined_form.py",
        (("return with_narrow_sides(catalyst, plan) if needs_order else pruned", "return pruned"),),
        shown_by=f"{_LIMITS}::test_a_limit_is_sparks_answer_at_every_epoch[of joins in another order]",
    ),
    Mutant(
        "sets within IN stay",
        "spark_bridge/operators/join/joined_form.py",
        (('"RewritePredicateSubquery", *_WITHOUT_SETS)', '"RewritePredicateSubquery")'),),
        shown_by=f"{_EVERY_EPOCH}[in_intersect]",
    ),
    Mutant(
        "a view goes on with the former names of what it reads",
        "spark_bridge/maintenance/derived_views.py",
        (("self._plans[before].parents == plan.parents", "True"),),
        shown_by="tests/spark_bridge/maintenance/test_shared_views.py::"
        "test_an_aggregation_over_an_aggregation_goes_on_with_both_under_other_names",
    ),
    Mutant(
        "the query of an operator is planned in each epoch",
        "spark_bridge/changes/leaf_queries.py",
        (("            if key not in planned:\n", "            if True:\n"),),
        shown_by="tests/spark_bridge/operators/test_planned_queries.py"
        "::test_many_changes_of_files_plan_no_query_from_the_third_epoch_on[left join]",
    ),
    Mutant(
        "a query of DataFrames is planned in each epoch",
        "spark_bridge/engine/execution/frame_queries.py",
        (("            if key not in self._made:\n", "            if True:\n"),),
        shown_by="tests/spark_bridge/operators/test_planned_queries.py"
        "::test_many_changes_of_files_plan_no_query_from_the_third_epoch_on[global window]",
    ),
    Mutant(
        "the queries that Spark plans in an epoch are not counted",
        "spark_bridge/materializer.py",
        (("late=late, planned_queries=planned)", "late=late)"),),
        shown_by="tests/spark_bridge/operators/test_planned_queries.py",
    ),
    Mutant(
        "rows over internal views have the present names of these in their origins",
        "spark_bridge/maintenance/derived_rows.py",
        (("origins=tuple(version.noted.get(_ORIGINS, ()))", "origins=()"),),
        shown_by="tests/spark_bridge/maintenance/test_shared_views.py::"
        "test_rows_of_an_aggregation_within_leave_when_they_have_another_name[by a restart]",
    ),
)
