"""Deliberate faults in the outer half: commands and their loop, views that come and go, pauses, tags, corrections."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

_ASKS = "'ASK(' in repr(scenario)"
_SINCE = "tests/slackwater/backfill/test_rows_since_an_epoch.py"
_RETRIES = "'ASK(RetryCommand' in repr(scenario)"
_FORGETS = "'ASK(ForgetCommand' in repr(scenario)"
_REREADS = "'ASK(ReingestCommand' in repr(scenario)"
_PAUSES = "'ASK(Pause' in repr(scenario)"
_STOPS = "'ASK(StopCommand' in repr(scenario)"
_TAGS = "'TAG(' in repr(scenario)"
_VIEW_FAILS = "', fails=' in repr(scenario)"
_VIEWS = "'_VIEW(' in repr(scenario)"
_PINS = "'PIN(' in repr(scenario)"
_STRICT = "scenario.on_change == 'fail'"
_CLEARS = "'CLEAR_QUARANTINE' in repr(scenario.story)"
_CONTENDED = "scenario.is_contended"

OUTER_MUTANTS = (
    Mutant(
        "a run carries out the commands for the run before",
        "slackwater/running/command_loop.py",
        (("if pending.run != self._ownership.run_id:", "if False:"),),
        among=_ASKS,
    ),
    Mutant(
        "an answer comes before the commit",
        "slackwater/running/requests.py",
        (
            (
                "            number = self._request(mutation)\n        return self._await_request(attempt, number)",
                "            number = self._request(mutation)\n        return number > 0",
            ),
        ),
        among=_RETRIES,
    ),
    Mutant(
        "an answer comes with the request before",
        "slackwater/running/requests.py",
        (("attempt.state.requests_over >= number)", "attempt.state.requests_over >= number - 1)"),),
        among=_ASKS,
    ),
    Mutant(
        "a pause is answered before it is in force",
        "slackwater/running/requests.py",
        (
            (
                "return attempt is not None and self._await_request(attempt, number)",
                "return attempt is not None",
            ),
        ),
        among=_PAUSES,
        start=1_220,
    ),
    Mutant(
        "a stop is not carried over to the next attempt",
        "slackwater/running/requests.py",
        (
            (
                "            if self.stopping:\n                self._request(Stop())",
                "            if False:\n                pass",
            ),
        ),
        start=26,
    ),
    Mutant(
        "a correction that its attempt did not carry out is given up",
        "slackwater/running/corrections.py",
        (
            (
                "            while not self._requests.carry_out(self._requests.running_attempt(), mutation):\n"
                "                pass\n",
                "            self._requests.carry_out(self._requests.running_attempt(), mutation)\n",
            ),
        ),
        among=f"{_FORGETS} or {_REREADS}",
        start=16,
    ),
    Mutant(
        "a retry that its attempt did not carry out is given up",
        "slackwater/running/requests.py",
        (
            (
                "                if self.carry_out(attempt, Retry(tuple(files))):\n",
                "                if [self.carry_out(attempt, Retry(tuple(files)))]:\n",
            ),
        ),
        among=_RETRIES,
        start=36,
    ),
    Mutant(
        "a stop is answered before the run is over",
        "slackwater/running/commanded_run.py",
        (("        self.requests.wait_over()\n", ""),),
        among=_STOPS,
        start=30,
    ),
    Mutant(
        "a retry of a view and of files at once leaves the files out",
        "slackwater/commands/operations.py",
        (("if any(each is not None for each in files.values()):", "if False:"),),
        shown_by="tests/slackwater/cli/test_commands.py",
    ),
    Mutant(
        "a throttle without a limit and without `off` removes all limits",
        "actors/protocol/barrier.py",
        (("if (off is None) == (cls(**limits) == cls()):", "if off is not None and cls(**limits) != cls():"),),
        shown_by="tests/slackwater/cli/test_commands.py",
    ),
    Mutant(
        "a vacuum does not count the epochs that it expires",
        "state/upkeep/housekeeping.py",
        (("self._num_expired += len(gone)", "pass"),),
        shown_by="tests/slackwater/cli/test_upkeep.py",
    ),
    Mutant(
        "the arguments of an operation are lost on the command line",
        "slackwater/cli/commands/asking.py",
        (("operation.of_line(**arguments)", "operation()"),),
        shown_by="tests/slackwater/cli/test_commands.py",
    ),
    Mutant(
        "a dropped view is forgotten with its attempt",
        "slackwater/running/declared_views.py",
        (("        self.dropped = {**self.dropped, **dict.fromkeys(parts, attempt.state.epoch)}\n", ""),),
        among=_VIEWS,
        start=140,
    ),
    Mutant(
        "the next attempt declares a dropped view again",
        "slackwater/running/declared_views.py",
        ((" in self.definitions.items() if each not in parts}\n", " in self.definitions.items()}\n"),),
        among=_VIEWS,
        start=15,
    ),
    Mutant(
        "an added view is forgotten with its attempt",
        "slackwater/running/declared_views.py",
        (("        self.definitions = {**left, **{part.name: part for part in view.parts}}\n", "        pass\n"),),
        among=_VIEWS,
        start=104,
    ),
    Mutant(
        "a change of views that an attempt did not carry out is given up",
        "slackwater/running/declared_views.py",
        (("                self._requests.wait_end_of(attempt)\n", "                return None\n"),),
        among=_VIEWS,
        start=208,
    ),
    Mutant(
        "the next attempt does not drop what the last one did not",
        "slackwater/commands/attempt_views.py",
        (("ended = {*self._dropped, *dropped}", "ended = {*dropped}"),),
        among=_VIEWS,
        start=294,
    ),
    Mutant(
        "a view that is dropped and added again continues",
        "slackwater/commands/attempt_views.py",
        (("if declared_name(name) not in ended}", "if True}"),),
        among=_VIEWS,
        start=630,
    ),
    Mutant(
        "a retried file stays in the ledger",
        "actors/fetching/file_versions.py",
        (("                self.state.delete_ledger(progress)\n", ""),),
        among=_RETRIES,
        start=94,
    ),
    Mutant(
        "a retried file is read from its first row",
        "actors/fetching/file_progress.py",
        (("            row_offset=retried.rows_read,\n", ""),),
        among=_RETRIES,
    ),
    Mutant(
        "a retry is counted as over one epoch early",
        "actors/coordination/requests.py",
        (
            (
                "epoch, num_files = barrier.epoch.curr, len(mutation.files)",
                "num_files = len(mutation.files)",
            ),
        ),
        among=f"{_RETRIES} or {_REREADS}",
    ),
    Mutant(
        "a forget is counted as over one epoch early",
        "actors/coordination/requests.py",
        (("            case Forget():\n                epoch = barrier.epoch.curr\n", ""),),
        among=_FORGETS,
        start=15,
    ),
    Mutant(
        "a forgotten file keeps its bad records",
        "actors/coordination/ledger_corrections.py",
        (('        if each.outcome == "forgotten" or (row', "        if (row"),),
        among=_FORGETS,
        start=440,
    ),
    Mutant(
        "a correction does not know of the one before it",
        "actors/coordination/ledger_corrections.py",
        (("        rows[key] = row\n", ""),),
        shown_by="tests/actors/fetching/test_replacements.py",
    ),
    Mutant(
        "a new tag takes the others away",
        "state/upkeep/tags.py",
        (("store.amend(tags={**tags, name: epoch})", "store.amend(tags={name: epoch})"),),
        among=_TAGS,
        start=857,
    ),
    Mutant(
        "a forgotten file keeps its place in the ledger",
        "actors/fetching/file_versions.py",
        (('            self.state.corrected.append(CorrectedFile(*path, None, "forgotten"))\n', ""),),
        among=_FORGETS,
        start=15,
    ),
    Mutant(
        "tagged epochs expire",
        "state/upkeep/housekeeping.py",
        (("for each in store.head.kept_epochs]", "for each in ()]"),),
        among=f"{_TAGS} and scenario.keep_epochs",
        start=79,
    ),
    Mutant(
        "two changes of the store are made at once",
        "actors/shells/owned_store.py",
        (
            (
                "        async with self._turn:\n            return await self",
                "        if True:\n            return await self",
            ),
        ),
        among=_TAGS,
        start=53,
    ),
    Mutant(
        "pinned epochs expire",
        "state/upkeep/housekeeping.py",
        (
            ("kept = {*store.head.kept_epochs, *self._pinned()}", "kept = {*store.head.kept_epochs}"),
            (
                "count - 1][0] for count in before if count), *self._pinned()}",
                "count - 1][0] for count in before if count)}",
            ),
        ),
        among=_PINS,
    ),
    Mutant(
        "a pin that is renewed ends all the same",
        "state/upkeep/pin.py",
        (
            (
                "            overwrite(self._client, ReservedNames(self._root, PINS), self._name, self._body())\n",
                "            obstore.head(self._client, self._name)\n",
            ),
        ),
        among=_PINS,
        start=14,
    ),
    Mutant(
        "the pin of a dead reader holds for ever",
        "state/upkeep/pin.py",
        (("            if expires_at <= now:\n", "            if expires_at is None:\n"),),
        among=_PINS,
        start=382,
    ),
    Mutant(
        "a torn pin ends the upkeep",
        "state/upkeep/pin.py",
        (
            (
                "    except (ValueError, TypeError, KeyError):\n",
                "    except (TypeError, KeyError):\n",
            ),
        ),
        among=_PINS,
        start=14,
    ),
    Mutant(
        "a pin that its reader deletes stays",
        "state/upkeep/pin.py",
        (("            delete(ReservedNames(self._root, PINS), [self._name], self._client)\n", "            pass\n"),),
        among=_PINS,
        start=28,
    ),
    Mutant(
        "bad records of later epochs are cleared, too",
        "state/upkeep/quarantine.py",
        (
            (
                'pc.and_(pc.less_equal(records["epoch"], epoch), pc.is_valid(records["reason"]))',
                'pc.is_valid(records["reason"])',
            ),
        ),
        among=_CLEARS,
        start=543,
    ),
    Mutant(
        "the positions of bad records are cleared, too",
        "state/upkeep/quarantine.py",
        (
            ("records.filter(pc.invert(has_place)), records", "records, records"),
            ("        delta.put_many(", "        0 and delta.put_many("),
        ),
        among=_CLEARS,
        start=49,
    ),
    Mutant(
        "a late row that is cleared leaves its place",
        "state/upkeep/quarantine.py",
        (('pc.and_(pc.is_valid(records["row"]), pc.is_valid(records["version"]))', 'pc.is_valid(records["row"])'),),
        shown_by="tests/slackwater/branching/test_merge.py::test_late_rows_come_with_their_view",
    ),
    Mutant(
        "a clearing is answered, and not done",
        "state/upkeep/quarantine.py",
        (("        store.amend(delta.build())\n", "        delta.build()\n"),),
        among=_CLEARS,
        start=49,
    ),
    Mutant(
        "a first file that is forgotten shows no schema, and holds its source up",
        "actors/fetching/fetch_executor.py",
        (("for each in ended if each.file.source not in self._schemas]", "for each in ended if each is None]"),),
        start=9225,
    ),
    Mutant(
        "rows that came by a correction alone are no history",
        "spark_bridge/maintenance/recorded_views.py",
        (("        self.ingested.update(changed)\n", "        self.ingested.update(sources)\n"),),
        start=5731,
    ),
    Mutant(
        "a file that is read again, and has changed, counts as two names",
        "actors/listing/list_executor.py",
        (("                    self._looks.on_reread(file.path)\n", "                    pass\n"),),
        shown_by="tests/actors/listing/test_list_executor.py",
    ),
    Mutant(
        "an attempt after a recovery does not know that the run is paused",
        "slackwater/running/requests.py",
        (("(Pause(),) if self._paused else ()", "() if self._paused else ()"),),
        among="'paused' in repr(scenario.story)",
        start=2458,
    ),
    Mutant(
        "the first barrier of an attempt does not carry the pause",
        "actors/coordination/barrier_scheduler.py",
        (("None if initial and not isinstance(due, FlowCommand) else due", "None if initial else due"),),
        among="'paused' in repr(scenario.story)",
        start=2458,
    ),
    Mutant(
        "a changed file ends no run",
        "actors/fetching/fetch_executor.py",
        (('                    if policy == "fail" and not', '                    if policy == "never" and not'),),
        among=_STRICT,
        start=40,
    ),
    Mutant(
        "a run whose root was taken renews all the same",
        "state/ownership/owner.py",
        (("            self._lost.set()\n", "            pass\n"),),
        among=_CONTENDED,
    ),
    Mutant(
        "the root of a living owner is taken",
        "state/ownership/owner.py",
        (
            (
                "            if now.owner != found.owner:\n                raise self._refusal(now.owner)\n",
                "            found = now\n",
            ),
        ),
        among=_CONTENDED,
    ),
    Mutant(
        "a run whose root was taken while it started begins",
        "state/ownership/owner.py",
        (("        self.renew()\n        self.check()\n", "        pass\n"),),
        shown_by="tests/slackwater/commands/test_maintenance.py",
    ),
    Mutant(
        "the wait for a silent owner ends by the wall clock",
        "state/ownership/owner.py",
        (
            (
                "        deadline = self._clock.monotonic() + self._watch_s\n"
                "        while self._clock.monotonic() < deadline:\n",
                "        deadline = self._clock.now().timestamp() + self._watch_s\n"
                "        while self._clock.now().timestamp() < deadline:\n",
            ),
        ),
        among=_CONTENDED,
        start=1601,
    ),
    Mutant(
        "an owner renews no more after a request without an answer",
        "state/ownership/owner.py",
        (("                continue  # a missing renewal", "                return  # a missing renewal"),),
        among=_CONTENDED,
        start=800,
    ),
    Mutant(
        "a start whose answer is lost takes its own file for another's",
        "state/ownership/owner.py",
        (("return None if self._wrote(other) else other", "return other"),),
        among=_CONTENDED,
        start=29,
    ),
    Mutant(
        "an owner whose clock stands writes the same file again",
        "state/ownership/owner.py",
        (("status=status, renewal=number)", "status=status)"),),
        among=_CONTENDED,
        start=724,
    ),
    Mutant(
        "a view that fails is stopped at an epoch that was not committed",
        "actors/coordination/epoch_commits.py",
        (
            (
                "        return replace(view, stopped_epoch=min(view.stopped_epoch, self._epoch))\n",
                "        return view\n",
            ),
        ),
        among=_VIEW_FAILS,
        start=3865,
    ),
    Mutant(
        "a failed view that fails again is stopped later",
        "actors/coordination/epoch_commits.py",
        (("            return replace(view, stopped_epoch=known.stopped_epoch)\n", "            pass\n"),),
        shown_by="tests/actors/coordination/test_epoch_commits.py",
    ),
    Mutant(
        "a view that fails keeps what the epoch has written",
        "spark_bridge/maintenance/recorded_views.py",
        (("            version = before.get(name)\n", "            version = self.versions.get(name)\n"),),
        shown_by="tests/spark_bridge/maintenance/test_recorded_views.py",
    ),
    Mutant(
        "a backfill that fails goes on",
        "spark_bridge/maintenance/recorded_views.py",
        (
            (
                "for views in (self._backfills, self._full, self._derived):",
                "for views in (self._full, self._derived):",
            ),
        ),
        among=_VIEW_FAILS,
        start=3860,
    ),
    Mutant(
        "a full view that failed is recomputed",
        "spark_bridge/maintenance/recorded_views.py",
        ((" and declaration.starts[name] is not Start.STALE", ""),),
        among=_VIEW_FAILS,
        start=1940,
    ),
    Mutant(
        "a view that another one replaces comes back without the rows since then",
        "spark_bridge/maintenance/recorded_views.py",
        (
            (
                "return ViewLife(ViewState.BACKFILLING, stops=name in self.versions)",
                "return ViewLife(ViewState.BACKFILLING)",
            ),
        ),
        shown_by="tests/spark_bridge/maintenance/test_recorded_views.py",
    ),
    Mutant(
        "a view that was replaced by one that waits comes back without the rows since then",
        "spark_bridge/maintenance/recorded_views.py",
        (("return ViewLife(ViewState.WAITING, stops=name in self.versions)", "return ViewLife(ViewState.WAITING)"),),
        shown_by="tests/spark_bridge/maintenance/test_recorded_views.py",
    ),
    Mutant(
        "a view is dropped before the other views are declared",
        "slackwater/commands/attempt_views.py",
        (
            (
                "        ended = {*self._dropped, *dropped}\n",
                "        ended = {*self._dropped, *dropped}\n"
                "        self.known = {each: view for each, view in self.known.items() if each not in ended}\n",
            ),
        ),
        shown_by="tests/slackwater/running/test_view_commands.py",
    ),
    Mutant(
        "a view that resumes gets the rows of its own epochs again",
        "slackwater/backfill/backfill_input.py",
        (("first=rows.get(each.file, 0))", "first=0)"),),
        shown_by=_SINCE,
    ),
    Mutant(
        "a view resumes from the rows of an older epoch that a tag retains",
        "slackwater/backfill/backfill_input.py",
        (("last=1) if each.epoch == since]", "last=1)]"),),
        shown_by=_SINCE,
    ),
    Mutant(
        "a view resumes over files that were replaced",
        "slackwater/backfill/backfill_input.py",
        (("if present.get(file, 0) < count:", "if False:"),),
        shown_by=_SINCE,
    ),
    Mutant(
        "a history reads the first part of a file again",
        "slackwater/backfill/ledger_history.py",
        (("Offset(max(row, file.first))", "Offset(row)"),),
        shown_by=_SINCE,
    ),
    Mutant(
        "a view resumes over stored rows that were corrected",
        "slackwater/backfill/stored_history.py",
        (("if (had.path, had.progress) != (stored.path, stored.progress):", "if False:"),),
        shown_by=_SINCE,
    ),
    Mutant(
        "a view resumes over stored rows that were compacted",
        "slackwater/backfill/stored_history.py",
        (("if [_rows_of(each) for each in before] !=", "if False and [_rows_of(each) for each in before] !="),),
        shown_by=_SINCE,
    ),
    Mutant(
        "a view that follows the time resumes",
        "spark_bridge/maintenance/declaration.py",
        (("not plan.parents and not follows_time", "not plan.parents"),),
        shown_by="tests/spark_bridge/maintenance/test_recorded_views.py",
    ),
    Mutant(
        "a view that lacks missing files resumes",
        "spark_bridge/maintenance/declaration.py",
        (("            and not known.missing\n", ""),),
        shown_by="tests/spark_bridge/maintenance/test_recorded_views.py",
    ),
    Mutant(
        "a view that resumes is complete at once",
        "spark_bridge/maintenance/backfill.py",
        (("not (self.lacks or self.since)", "not self.lacks"),),
        shown_by="tests/spark_bridge/maintenance/test_recorded_views.py",
    ),
    Mutant(
        "a view that cannot resume waits for ever",
        "spark_bridge/maintenance/backfills.py",
        (("            self._restart(backfill.plan.name, backfill)\n", ""),),
        shown_by="tests/spark_bridge/maintenance/test_recorded_views.py",
    ),
    Mutant(
        "a failing view that can have late rows is rebuilt",
        "slackwater/commands/attempt_views.py",
        (("if name in self._materializer().failing:", "if False:"),),
        shown_by="tests/slackwater/running/test_view_commands.py",
    ),
    Mutant(
        "a refused retry leaves the view to fail again",
        "slackwater/commands/attempt_views.py",
        (
            (
                "            self.declare()\n            raise CommandRefusedError",
                "            raise CommandRefusedError",
            ),
        ),
        shown_by="tests/slackwater/running/test_view_commands.py",
    ),
    Mutant(
        "the attempt continues with views that are declared by half",
        "slackwater/running/materializer_loop.py",
        (("if not isinstance(error, _REFUSALS):", "if False:"),),
        shown_by="tests/slackwater/running/test_view_commands.py",
    ),
    Mutant(
        "a retry is forgotten when the process ends before the view is rebuilt",
        "slackwater/commands/attempt_views.py",
        (("        recorded = self._recorded\n", "        recorded = self.known\n"),),
        shown_by="tests/slackwater/running/test_view_commands.py",
    ),
    Mutant(
        "common rows stay when the last view with them has failed",
        "spark_bridge/maintenance/recorded_views.py",
        (("                self._ending.add(name)  # its own", "                pass  # its own"),),
        shown_by="tests/spark_bridge/maintenance/test_recorded_views.py",
    ),
    Mutant(
        "a transition that is not in the table is made",
        "spark_bridge/maintenance/view_life.py",
        (("if after is not before and after not in TRANSITIONS.get((before, cause), ()):", "if False:"),),
        shown_by="tests/spark_bridge/maintenance/test_view_life.py",
    ),
    Mutant(
        "a view that an epoch has created stays declared",
        "spark_bridge/maintenance/recorded_views.py",
        (
            (
                "            if name in work and name in versions:\n",
                "            if name in work and name not in versions:\n",
            ),
        ),
    ),
    Mutant(
        "a backfill goes on with the rows of another query",
        "spark_bridge/maintenance/backfills.py",
        (("begun.version is not None and begun.plan.identity == plan.identity", "begun.version is not None"),),
        shown_by="tests/spark_bridge/maintenance/test_recorded_views.py",
    ),
    Mutant(
        "a driver of Spark without memory goes on",
        "spark_bridge/engine/session/settings.py",
        (('options = f"{_OPENS} {_ENDS_WITHOUT_MEMORY}"', "options = _OPENS"),),
        shown_by="tests/spark_bridge/engine/session/test_spark_jobs.py::test_a_driver_without_memory_is_a_lost_application_and_not_silence",
    ),
    Mutant(
        "news for the views waits for the end of the wait for an epoch",
        "slackwater/running/materializer_loop.py",
        (("        self._client.wake()\n", ""),),
        shown_by="tests/slackwater/running/test_materializer_loop.py::"
        "test_a_change_of_the_views_ends_the_wait_for_an_epoch",
    ),
    Mutant(
        "news before the wait for an epoch is lost",
        "actors/hosting/awaited_epoch.py",
        (("        if self._call is None:\n", "        self._woken.clear()\n        if self._call is None:\n"),),
        shown_by="tests/actors/hosting/test_awaited_epoch.py::"
        "test_a_wake_ends_the_present_wait_and_one_before_the_wait_is_not_lost",
    ),
)
