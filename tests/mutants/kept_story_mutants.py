"""Deliberate faults in what keeps users' files and published tables right, which stories find."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_REACH = "slackwater/plugins/after_commit/reach.py"
_WORK = "slackwater/plugins/after_commit/file_work.py"
_DUE = "slackwater/plugins/after_commit/due_files.py"
_VIEWS = "slackwater/extensions/run_views.py"
_CLOCK = "slackwater/plugins/after_commit/clock_watch.py"
_COMMITS = "slackwater/plugins/after_commit/commit_times.py"
_COMMITS_SHOWN = "tests/slackwater/plugins/after_commit/test_commit_times.py"
_LOOP = "slackwater/plugins/publish/publication_loop.py"
_STORIES = "tests/simulation/test_after_commit_stories.py"
_KEPT = "scenario.after is not None"
_LATER = f"{_KEPT} and scenario.after.keep_s > 0"
_FOLLOWED = f"{_KEPT} and scenario.publishes"
_PUBLISHED = "scenario.publishes"

AFTER_COMMIT_MUTANTS = (
    Mutant(
        "a file whose deletion was acknowledged and not done is read again",
        "state/tables/fingerprint.py",
        (("return None if delivery == deleted else delivery", "return delivery"),),
        shown_by=f"{_STORIES}::test_a_file_whose_deletion_was_acknowledged_and_not_done_is_not_read_again",
    ),
    Mutant(
        "a table is written at a place that has begun to overlap",
        _LOOP,
        (("            self._places.check()\n            published =", "            published ="),),
        shown_by=f"{_STORIES}::test_a_table_whose_place_begins_to_overlap_is_not_written_and_follows_again",
    ),
    Mutant(
        "the upkeep of a table goes on at a place that has begun to overlap",
        _LOOP,
        (("            self._places.check()\n            self._access.maintain", "            self._access.maintain"),),
        shown_by=f"{_STORIES}::test_no_upkeep_of_a_table_whose_place_overlaps",
    ),
    Mutant(
        "files are still handled when a place of their source has begun to overlap",
        _WORK,
        (("        return self._changed_place(name)\n", '        return ""\n'),),
        shown_by="tests/slackwater/places/test_watched_files.py::"
        "test_no_file_is_moved_while_a_link_of_the_target_leads_elsewhere",
    ),
    Mutant(
        "the files of a look go on though a place has begun to overlap",
        _WORK,
        (("                if self._changed_place(name):\n                    raise NeedsChangedError\n", ""),),
        shown_by=f"{_STORIES}::test_the_next_file_stays_when_a_place_begins_to_overlap_during_a_look",
    ),
    Mutant(
        "a file of an expired epoch is as old as the epochs before it",
        _COMMITS,
        (("            break\n        last =", "            return commit.epoch - 1\n        last ="),),
        shown_by=_COMMITS_SHOWN,
    ),
    Mutant(
        "a clock that was set back and right again makes a commit old",
        _COMMITS,
        (("commit.epoch > change.epoch or commit.at <= now", "commit.epoch > change.epoch"),),
        shown_by=_COMMITS_SHOWN,
    ),
    Mutant(
        "the times of commits end with their run",
        _COMMITS,
        (("            self._record.append_commit_time(last)\n", ""),),
        shown_by=_COMMITS_SHOWN,
    ),
    Mutant(
        "a tag on an old epoch hides that epochs expire",
        _COMMITS,
        (("kept_since - 2 * apart <= each.at <= kept_since", "each.at <= kept_since"),),
        shown_by=_COMMITS_SHOWN,
    ),
    Mutant(
        "files go before a run has analysed its views",
        _REACH,
        (
            (
                '    if not needs.is_analysed:\n        return "the views of this run are not analysed yet"\n',
                "    if not needs.is_analysed:\n        return ''\n",
            ),
        ),
        among=_KEPT,
    ),
    Mutant(
        "files go that a declared view lacks, which no epoch has yet",
        _REACH,
        (('        return "no epoch has it yet"\n', '        return ""\n'),),
        among=_KEPT,
    ),
    Mutant(
        "files go that a view with a new definition lacks",
        _REACH,
        (
            ("if stored.identity != needs.identities[name]:", "if not stored.identity:"),
            ("if next_name(name) in catalog.views or any(", "if any("),
            (
                "source in view.sources and (view.error is not None or _is_built(name, head))",
                "source in view.sources and view.error is not None",
            ),
            (
                "version is not None and version.pinned_epoch is not None",
                "version is not None and version.pinned_epoch is not None and is_next(recorded)",
            ),
            (
                "def _is_built(recorded: str, head: Head) -> bool:\n",
                "def is_next(recorded: str) -> bool:\n    return not recorded.endswith('.next')\n\n\n"
                "def _is_built(recorded: str, head: Head) -> bool:\n",
            ),
        ),
        shown_by=f"{_STORIES}::test_files_that_are_due_wait_while_a_view_is_built",
    ),
    Mutant(
        "files go that a view under construction lacks",
        _REACH,
        (("    return version is not None and version.pinned_epoch is not None\n", "    return False\n"),),
        shown_by=f"{_STORIES}::test_files_that_are_due_wait_while_a_view_is_built",
    ),
    Mutant(
        "files go that a view lacks which has failed",
        _REACH,
        (
            ("if any(view.error is not None for view in parts):", "if not parts:"),
            ("if any(view.stopped_epoch is not None for view in parts):", "if not parts:"),
            ("(view.error is not None or _is_built(name, head))", "_is_built(name, head)"),
        ),
        among=f"{_KEPT} and 'fails=' in repr(scenario.story)",
    ),
    Mutant(
        "a file is removed that was chosen before a view was added",
        _VIEWS,
        (("            if needs.number != self._number or self._exclusions:\n", "            if self._exclusions:\n"),),
        among=f"{_KEPT} and 'ADD_VIEW(' in repr(scenario.story)",
    ),
    Mutant(
        "files are removed when they are committed, whatever keep_s is",
        _REACH,
        (("moment.now - timedelta(seconds=keep_s)", "moment.now"),),
        among=_LATER,
    ),
    Mutant(
        "a clock that is set forward is not noticed",
        _CLOCK,
        (("if abs(shift_s) <= _JUMP_S:", "if shift_s >= -_JUMP_S:"),),
        shown_by=f"{_STORIES}::test_a_clock_that_jumps_takes_no_file_early[the others-in the run-3600]",
    ),
    Mutant(
        "files go that a branch has not read",
        _WORK,
        (
            (
                "readers = branch_readers(self._root, state, declared.source, self._access.open) "
                "if reached.epoch else []",
                "readers: list[BranchReader] = []",
            ),
        ),
        among=f"{_KEPT} and 'BRANCH(' in repr(scenario.story)",
    ),
    Mutant(
        "files of a root go by the run of a branch",
        _REACH,
        (("if root_above(moment.root) is not None:", "if root_above(moment.root) is not None and not source:"),),
        among=f"{_KEPT} and 'ON(' in repr(scenario.story)",
    ),
    Mutant(
        "files go that a table lacks which fails for a while",
        _REACH,
        (("        limits[reason] = epoch or 0\n", "        limits[reason] = epoch or kept\n"),),
        among=_FOLLOWED,
    ),
    Mutant(
        "files do not wait for the tables that follow their view",
        _REACH,
        (("        limits[reason] = epoch or 0\n", "        limits[reason] = kept\n"),),
        among=_FOLLOWED,
    ),
    Mutant(
        "files of an epoch go that an expectation holds back",
        _REACH,
        (("published_epoch(moment.state, moment.catalog)}", "moment.state.head.epoch}"),),
        among=f"{_KEPT} and scenario.gate",
    ),
    Mutant(
        "files with bad records go",
        _DUE,
        (('pc.equal(pc.coalesce(rows["rows_bad"], 0), 0)', 'pc.is_valid(rows["path"])'),),
        among=f"{_KEPT} and 'bad=' in repr(scenario.story)",
    ),
    Mutant(
        "quarantined files go",
        _DUE,
        (('_DONE = Clue("status", equals="done")', '_DONE = Clue("status", is_set=True)'),),
        among=_KEPT,
    ),
    Mutant(
        "a run that has lost the root goes on with its files",
        _WORK,
        (
            (
                "                self._require_owner()\n                if self._changed_place",
                "                if self._changed_place",
            ),
        ),
        among=_KEPT,
    ),
    Mutant(
        "a publication follows every epoch, whatever the gate",
        _LOOP,
        (("published = root.published_epoch()", "published = root.latest_epoch()"),),
        among=f"{_PUBLISHED} and scenario.gate",
    ),
    Mutant(
        "a publication that fails is not tried again",
        _LOOP,
        (
            (
                "self.due_s, self._done = self._clock.monotonic() + pause_s, 0",
                "self.due_s, self._done = self._clock.monotonic() + pause_s, 1 << 62",
            ),
        ),
        among=_PUBLISHED,
    ),
    Mutant(
        "an epoch is published without a pin",
        _LOOP,
        (("            pins.enter_context(self._access.pin(epoch))\n", ""),),
        among=f"{_PUBLISHED} and scenario.keep_epochs is not None",
    ),
    Mutant(
        "files go while their source is paused",
        _WORK,
        (('            return "the source is paused"\n', '            return ""\n'),),
        among=f"{_KEPT} and 'mount(' in repr(scenario.story)",
    ),
    Mutant(
        "a source reads the files of a table below it",
        "actors/listing/list_executor.py",
        (
            (
                "        self._foreign.take_page(page, batches)\n        if self._foreign.paused is not None:",
                "        if self._foreign.paused is not None:",
            ),
        ),
        among=f"{_KEPT} and 'mount(' in repr(scenario.story)",
    ),
)
