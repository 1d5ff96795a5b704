"""Deliberate faults in the listings of a wait, the moment of a barrier, and the progress of a start."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_LISTING = "tests/actors/listing/test_list_executor.py"
_BARRIERS = "tests/actors/coordination/test_barrier_scheduler.py"
_RUN_FILES = "tests/slackwater/reading/test_run_files.py"

WAITING_MUTANTS = (
    Mutant(
        "a wait waits for the time of the next listing",
        "actors/listing/list_executor.py",
        (("            self._pace.request(now_s)\n", "            self._pace.rest_until(now_s)\n"),),
        shown_by=f"{_LISTING}::test_a_wait_does_not_wait_for_the_time_of_the_next_listing",
    ),
    Mutant(
        "a wait asks for no listing",
        "actors/coordination/coordinate_executor.py",
        (("make_mark(), at_once=True)]", "make_mark())]"),),
        shown_by="tests/actors/coordination/test_coordinate_executor.py",
    ),
    Mutant(
        "waits use up the requests of the hour",
        "actors/listing/listing_pace.py",
        (("if self.budget.has_half(now_s, self._cost):", "if self.budget.left(now_s, 1):"),),
        shown_by=_LISTING,
    ),
    Mutant(
        "a wait does not list a table whose file is not committed",
        "actors/listing/listing_marks.py",
        (("self._is_after_commit = last_epoch <= self._committed", "self._is_after_commit = True"),),
        shown_by=_LISTING,
    ),
    Mutant(
        "a wait does not list a table whose file was replaced before it was read",
        "actors/listing/list_executor.py",
        (("            self._frame.on_vanished()\n", "            pass\n"),),
        shown_by=_LISTING,
    ),
    Mutant(
        "after a rest a barrier does not wait until the listed files are read",
        "actors/coordination/barrier_scheduler.py",
        (("max(self._last_injection_s + self._settings.interval_s, patient_s)", "patient_s - 1.0"),),
        shown_by=_BARRIERS,
    ),
    Mutant(
        "a barrier waits for files without a limit",
        "actors/coordination/barrier_scheduler.py",
        (("news_s + self._clamped(_PATIENCE * self._work_s)", "now_s + self._clamped(_PATIENCE * self._work_s)"),),
        shown_by=_BARRIERS,
    ),
    Mutant(
        "a barrier waits while Spark is free",
        "actors/coordination/barrier_scheduler.py",
        (("is_working = self.last_in_flight > self._materialized", "is_working = True"),),
        shown_by=_BARRIERS,
    ),
    Mutant(
        "the files of a closed source keep an epoch open",
        "actors/coordination/barrier_scheduler.py",
        (("any(each.backlog_without(self.closed) for", "any(each.backlog for"),),
        shown_by=_BARRIERS,
    ),
    Mutant(
        "a file that grows in every listing delays every barrier",
        "actors/coordination/company.py",
        (("each.is_company, each.in_vain = False, True", "each.is_company = False"),),
        shown_by=_BARRIERS,
    ),
    Mutant(
        "a source is waited for after its listing without files",
        "actors/coordination/company.py",
        (
            (
                "each.is_company, each.in_vain = False, True",
                "each.in_vain = each.progress.unsettled > 0",
            ),
        ),
        shown_by=_BARRIERS,
    ),
    Mutant(
        "a start has no step while Spark computes the first epoch",
        "slackwater/status/first_commit.py",
        (
            (
                '_STEPS: dict[str, FirstCommitStep] = {"spark": "views of the first epoch", ',
                "_STEPS: dict[str, FirstCommitStep] = {",
            ),
        ),
        shown_by="tests/slackwater/status/test_first_commit.py",
    ),
    Mutant(
        "a file that the run reads was found by no listing",
        "slackwater/reading/tables/run_files.py",
        (("max(0, count - known[name])", "0"),),
        shown_by=_RUN_FILES,
    ),
    Mutant(
        "the sources of a run are not shown before its first commit",
        "slackwater/cli/display/source_block.py",
        (("[*facts.sources, *_uncommitted(facts)]", "facts.sources"),),
        shown_by=_RUN_FILES,
    ),
    Mutant(
        "the files of a run that has ended are in flight",
        "slackwater/reading/tables/run_files.py",
        (("None if owner is None or owner.is_gone() else", "None if owner is None else"),),
        shown_by=_RUN_FILES,
    ),
)
