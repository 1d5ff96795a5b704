"""Deliberate faults in expectations, and in the gate that they close."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_COUNTED = "tests/slackwater/expectations/test_expectation_counts.py"
_GATE = "tests/slackwater/expectations/test_gate.py"
_JUDGED = "tests/slackwater/expectations/test_view_conditions.py"
_STORIES = "tests/simulation/test_stories.py"
_MERGED = f"{_STORIES}::test_a_view_that_is_merged_is_judged_at_the_root"
_RELEASED = f"{_STORIES}::test_the_gate_opens_for_what_is_right_or_released_whoever_dies"

GATE_MUTANTS = (
    Mutant(
        "a merge brings views without what is expected of them",
        "slackwater/branching/merge_steps.py",
        (("expected = self._expectations(names)", "expected = []"),),
        shown_by=_MERGED,
    ),
    Mutant(
        "a view that is merged keeps what was released on the branch",
        "state/tables/expectations.py",
        (("replace(each, accepted=0, error=uncounted or each.error)", "replace(each, error=uncounted or each.error)"),),
        shown_by=_MERGED,
    ),
    Mutant(
        "what nobody has counted holds back for ever",
        "slackwater/expectations/view_facts.py",
        (("known = replace(known, error=None)", "known = replace(known)"),),
        shown_by=_JUDGED,
    ),
    Mutant(
        "what nobody has counted waits for files",
        "slackwater/expectations/expectation_counts.py",
        (("self._release.is_due or self._is_uncounted or wanted", "self._release.is_due or wanted"),),
        shown_by=_JUDGED,
    ),
    Mutant(
        "a release is asked for and not done",
        "slackwater/running/materializer_loop.py",
        (
            (
                "        self._expectations.release()\n        self._notify(record=True)",
                "        self._notify(record=True)",
            ),
        ),
        shown_by=_RELEASED,
    ),
    Mutant(
        "a release whose epoch is lost is forgotten",
        "slackwater/expectations/release.py",
        (("self._is_due, self._epoch = True, None", "self._epoch = None"),),
        shown_by=_COUNTED,
    ),
    Mutant(
        "the tag of the gate moves to the epoch that closes it",
        "state/tables/expectations.py",
        (('return None if before == "closed" else last', 'return None if before == "closed" else epoch'),),
    ),
    Mutant(
        "the tag of the gate moves while it is closed",
        "state/tables/expectations.py",
        (('return None if before == "closed" else last', "return last"),),
    ),
    Mutant(
        "rows that leave still violate",
        "state/tables/expectations.py",
        (("rows=self.rows + begun - left,", "rows=self.rows + begun,"),),
    ),
    Mutant(
        "a release accepts rows that come later, as others leave",
        "state/tables/expectations.py",
        (
            (
                "accepted=max(0, self.accepted - (left - waited))",
                "accepted=min(self.accepted, self.rows + begun - left)",
            ),
        ),
    ),
    Mutant(
        "rows that leave are those that no release has accepted",
        "state/tables/expectations.py",
        (
            (
                "waited = (waiting & Counter(left_from)).total()",
                "waited = left",
            ),
        ),
        shown_by=f"{_COUNTED}::test_rows_that_no_release_has_accepted_hold_when_accepted_ones_leave",
    ),
    Mutant(
        "an expectation that cannot be computed holds nothing back",
        "state/tables/expectations.py",
        (("self.rows > self.accepted or self.error is not None", "self.rows > self.accepted"),),
        shown_by=f"{_COUNTED}::test_an_expectation_that_fails_over_a_row_holds_until_it_can_be_computed",
    ),
    Mutant(
        "a condition that is null is fulfilled",
        "spark_bridge/plans/row_conditions.py",
        (("F.expr(self._conditions[name]), F.lit(False)", "F.expr(self._conditions[name]), F.lit(True)"),),
        shown_by="tests/spark_bridge/plans/test_row_conditions.py",
    ),
    Mutant(
        "a publication does not mind the gate",
        "slackwater/plugins/publish/publication_loop.py",
        (("published = root.published_epoch()", "published = root.latest_epoch()"),),
        shown_by=f"{_GATE}::test_a_publication_stays_where_it_is_and_goes_on_when_the_gate_opens[parquet]",
    ),
    Mutant(
        "SQL clients see the epoch that is held back",
        "slackwater/plugins/serve/served_root.py",
        (("published = self._store.published_epoch()", "published = self._store.latest_epoch()"),),
        shown_by=f"{_GATE}::test_sql_clients_see_the_last_epoch_that_passed_unless_they_ask",
    ),
    Mutant(
        "a release opens the gate without its tag",
        "slackwater/commands/release.py",
        (
            (
                "gate_of(after), last=last, epoch=epoch)",
                "gate_of(catalog.expectations.values()), last=last, epoch=epoch)",
            ),
        ),
        shown_by=f"{_GATE}::test_a_release_is_an_epoch_that_opens_the_gate_until_more_rows_violate",
    ),
    Mutant(
        "an epoch that is committed while a publication begins is taken for a held one",
        "slackwater/plugins/publish/publication_loop.py",
        (
            (
                "        latest = root.latest_epoch()\n        published = root.published_epoch()\n        latest =",
                "        published = root.published_epoch()\n        latest = root.latest_epoch()\n        latest =",
            ),
        ),
        shown_by="tests/slackwater/plugins/publish/test_publication_loop.py::"
        "test_an_epoch_that_is_committed_while_a_turn_begins_is_not_taken_for_a_held_one",
    ),
    Mutant(
        "a row whose condition is null is in no half of its view",
        "spark_bridge/plans/row_halves.py",
        (('else f"coalesce(({condition}), false)"', 'else f"({condition})"'),),
        shown_by="tests/spark_bridge/plans/test_row_halves.py",
    ),
    Mutant(
        "the rows that are left out are those that violate all conditions",
        "spark_bridge/plans/row_halves.py",
        (('return " AND ".join(map(_is_true', 'return " OR ".join(map(_is_true'),),
        shown_by="tests/spark_bridge/plans/test_row_halves.py",
    ),
    Mutant(
        "single rows are taken out of groups",
        "spark_bridge/query/view_planner.py",
        (('if plan.view_class != "append":', 'if plan.view_class == "full":'),),
        shown_by="tests/spark_bridge/plans/test_row_halves.py::test_what_cannot_be_halved_is_refused",
    ),
    Mutant(
        "the newest time stays when its row leaves",
        "slackwater/expectations/view_facts.py",
        (("gone is None or (newest is not None and gone < newest)", "True"),),
        shown_by="tests/slackwater/expectations/test_view_conditions.py",
    ),
    Mutant(
        "a view gets stale only when its rows change",
        "slackwater/expectations/view_facts.py",
        (
            (
                "condition.is_fulfilled(newest, epoch_time_us(epoch))",
                "condition.is_fulfilled(newest, epoch_time_us(epoch)) or (before is after)",
            ),
        ),
        shown_by="tests/slackwater/expectations/test_view_conditions.py::test_a_view_gets_stale_by_time_and_fresh_by_rows",
    ),
)
