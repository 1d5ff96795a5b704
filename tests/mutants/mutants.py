"""Deliberate faults, each a small replacement in the source, that the simulator must find."""

from __future__ import annotations

from tests.mutants.after_commit_mutants import AFTER_COMMIT_MUTANTS
from tests.mutants.branch_mutants import BRANCH_MUTANTS
from tests.mutants.capability_mutants import CAPABILITY_MUTANTS
from tests.mutants.csv_mutants import CSV_MUTANTS
from tests.mutants.endpoint_mutants import ENDPOINT_MUTANTS
from tests.mutants.equality_mutants import EQUALITY_MUTANTS
from tests.mutants.file_mutants import FILE_MUTANTS
from tests.mutants.format_mutants import FORMAT_MUTANTS
from tests.mutants.gate_mutants import GATE_MUTANTS
from tests.mutants.interface_mutants import INTERFACE_MUTANTS
from tests.mutants.isolation_mutants import ISOLATION_MUTANTS
from tests.mutants.mutant import Mutant
from tests.mutants.outer_mutants import OUTER_MUTANTS
from tests.mutants.place_mutants import PLACE_MUTANTS
from tests.mutants.publication_mutants import PUBLICATION_MUTANTS
from tests.mutants.removal_mutants import REMOVAL_MUTANTS
from tests.mutants.schema_mutants import SCHEMA_MUTANTS
from tests.mutants.serving_mutants import SERVING_MUTANTS
from tests.mutants.store_mutants import STORE_MUTANTS
from tests.mutants.view_mutants import VIEW_MUTANTS
from tests.mutants.waiting_mutants import WAITING_MUTANTS

_WATERMARKS = "tests/actors/coordination/test_watermarks.py"

MUTANTS = (
    Mutant(
        "a fetch actor passes the barrier on before it has emitted and sealed",
        "actors/fetching/fetch_executor.py",
        (
            (
                "instructions += pass_on(barrier, self._seal(barrier))",
                "instructions = [*pass_on(barrier, self._seal(barrier))[::-1], *instructions]",
            ),
        ),
    ),
    Mutant(
        "an offset is written one row early",
        "actors/fetching/file_progress.py",
        (('"row_offset": self.row_offset,', '"row_offset": max(0, self.row_offset - 1),'),),
    ),
    Mutant(
        "bad records are kept when they are read, not when their rows are emitted",
        "actors/fetching/fetch_executor.py",
        (
            (
                "        self._buffer(piece)\n        if not last",
                "        self._files.state.quarantine(progress, rows.bad)\n"
                "        self._buffer(piece)\n        if not last",
            ),
        ),
    ),
    Mutant(
        "the last file of a batch is not read",
        "actors/fetching/read_scheduler.py",
        (("ReadFiles(tuple(reads[begin:end]))", "ReadFiles(tuple(reads[begin : end - 1]))"),),
        shown_by="tests/actors/fetching/test_fetch_executor.py",
    ),
    Mutant(
        "a file that fails ends the others of its batch",
        "actors/shells/fetch_shell.py",
        (
            (
                "    except Exception as error:\n        return error\n",
                "    except ZeroDivisionError as error:\n        return error\n",
            ),
        ),
        start=0,
    ),
    Mutant(
        "an object that was asked for is asked for again",
        "actors/objects/object_file.py",
        (
            (
                "[number])\n            return block\n",
                "[number])\n            self._kept.pop(number)\n            return block\n",
            ),
        ),
        shown_by="tests/actors/objects/test_object_file.py",
    ),
    Mutant(
        "a bad record is not counted",
        "actors/fetching/file_queue.py",
        (("        progress.rows_bad += len(rows.bad)\n", "        progress.rows_bad += len(rows.bad[1:])\n"),),
    ),
    Mutant(
        "a changed file is read again only when it was finished",
        "actors/fetching/file_versions.py",
        ((" or source in self._appending or source in self._replacing", ""),),
        among="scenario.on_change != 'ignore'",
        start=257,
    ),
    Mutant(
        "rows that were committed after the last state of an attempt do not clear a file",
        "actors/recovery/recovery.py",
        (("if rows.get(file, each.rows) <= each.rows}", "if file in accused}"),),
        shown_by="tests/simulation/test_stories.py::"
        "test_a_row_of_which_no_state_was_heard_before_a_death_shows_that_the_file_makes_progress[some orders]",
    ),
    Mutant(
        "a version is retried though its object has changed",
        "actors/fetching/file_versions.py",
        ((" and progress.key not in self.changed", ""),),
        shown_by="tests/actors/fetching/test_retry.py::"
        "test_a_version_whose_object_has_changed_since_the_retry_was_asked_for_stays_quarantined",
    ),
    Mutant(
        "the next owner of a vnode does not know what has changed",
        "actors/fetching/vnode_moves.py",
        (("        versions.changed.take(handover.changed)\n", ""),),
        shown_by="tests/actors/coordination/test_rescaling.py::"
        "test_the_next_owner_retries_no_version_whose_object_has_changed",
    ),
    Mutant(
        "alignment does not block",
        "actors/exchange/barrier_aligner.py",
        (("        if edge in self._blocked:\n            return []\n", ""),),
    ),
    Mutant(
        "epochs are committed in any order",
        "actors/coordination/epoch_collector.py",
        (
            (
                "if not self._open or len(self._open[0].reports) < len(self._open[0].actors):",
                "complete = (n for n, e in enumerate(self._open) if len(e.reports) == len(e.actors))\n"
                "        self._open.rotate(-next(complete, 0))\n"
                "        if not self._open or len(self._open[0].reports) < len(self._open[0].actors):",
            ),
        ),
    ),
    Mutant(
        "views are not restored at a take-over",
        "actors/recovery/recovery.py",
        (("views = restored_views(head.views, lambda view: root.restore(view, head.term))", "views = head.views"),),
    ),
    Mutant(
        "`seen` is committed one epoch late",
        "actors/listing/epoch_writer.py",
        (
            (
                "        return self._delta.build()\n",
                "        late = getattr(self, '_late', DeltaBuilder())\n"
                "        self._late, self._delta = self._delta, DeltaBuilder()\n"
                "        return late.build()\n",
            ),
        ),
    ),
    Mutant(
        "a commit whose outcome is not known counts as failed and is made again",
        "state/store/head_swap.py",
        (
            ("            if name == staged.name:\n", "            if False:\n"),
            (
                "        self._commit(self._stage(Delta.merge([delta, epoch_delta(record)]), head))\n",
                "        try:\n"
                "            self._commit(self._stage(Delta.merge([delta, epoch_delta(record)]), head))\n"
                "        except CommitRefusedError:\n"
                "            self._adopt(self.reopen())\n"
                "            self._out_of_date, again = False, max(epoch, self._head.epoch + 1)\n"
                "            return self.commit(\n"
                "                epoch=again, delta=delta, views=views, counts=counts, seconds=seconds\n"
                "            )\n",
            ),
        ),
        start=66,
    ),
    Mutant(
        "a commit whose outcome is not known counts as done",
        "state/store/head_swap.py",
        (
            ("            if name == staged.name:\n", "            if isinstance(error, CommitUnknownError):\n"),
            ("self._adopt(self.reopen(self._version + 1))", "self._adopt(fresh)"),
        ),
        start=27,
    ),
    Mutant(
        "the head is not compared",
        "tests/simulation/memory/memory_disk.py",
        (("if self.latest != expected:", "if False:"),),
    ),
    Mutant(
        "a take-over does not begin a term",
        "state/store/head_swap.py",
        (("term=self._head.term + 1, run=run", "term=max(1, self._head.term), run=run"),),
    ),
    Mutant(
        "a late attempt's handle on a view still writes",
        "tests/simulation/memory/memory_root.py",
        (
            ("if dataset.latest != expected_version:", "if False:"),
            (
                "        return dataset.add(rows)\n\n    def view_rows",
                "        dataset.versions[expected_version + 1] = rows\n"
                "        dataset.latest = max(dataset.latest, expected_version + 1)\n"
                "        return expected_version + 1\n\n    def view_rows",
            ),
        ),
        start=75,
    ),
    Mutant(
        "a run that was replaced takes over again",
        "actors/recovery/recovery.py",
        (("and (plan.held_root or _is_newer(store.head, plan)):", "and False:"),),
    ),
    Mutant(
        "a list budget of nothing is never raised",
        "actors/coordination/barrier_scheduler.py",
        (
            (
                "share = -(-max(0, self._max_files_waiting - self._backlog()) // max(1, len(self._lists)))",
                "share = max(0, self._max_files_waiting - self._backlog()) // max(1, len(self._lists))",
            ),
        ),
    ),
    Mutant(
        "a list actor that is held back is nothing to commit",
        "actors/coordination/barrier_scheduler.py",
        (("held_back = bool(held) and any(map(self._list_budget().get, held))", "held_back = False"),),
    ),
    Mutant(
        "admission stays with the first paths",
        "actors/coordination/admission.py",
        (
            (
                "            self._admit_next()\n        return self.admitted is None",
                "        return self.admitted is None",
            ),
        ),
    ),
    Mutant(
        "admission is not looked at",
        "actors/fetching/read_scheduler.py",
        (("return self._epoch.admitted is None or progress.key in self._epoch.admitted", "return True"),),
    ),
    Mutant(
        "a poison file is never given up",
        "actors/recovery/recovery_policy.py",
        (("if self._alone[file].tries >= _TRIES_ALONE]", "if False]"),),
    ),
    Mutant(
        "a file that makes progress is given up",
        "actors/recovery/recovery_policy.py",
        (("if before is not None and before.rows == rows else 1", "if before is not None else 1"),),
        among="'large' in repr(scenario)",
        start=204,
    ),
    Mutant(
        "a node that is lost accuses a file",
        "actors/recovery/recovery_policy.py",
        (("    NodeLostError,\n    RowsLostError,\n)", "    RowsLostError,\n)"),),
        among="'large' in repr(scenario)",
        start=1035,
    ),
    Mutant(
        "an epoch of a term that committed nothing comes again",
        "state/epoch.py",
        (("return least + (term - least) % TERMS", "return least"),),
        start=121,
    ),
    Mutant(
        "a file begins again after a restart",
        "actors/recovery/committed_files.py",
        (('row_offset=row["row_offset"],', "row_offset=0,"),),
    ),
    Mutant(
        "an edge does not reorder",
        "actors/exchange/edge.py",
        (("        early[sequence] = envelope.message\n", "        return [envelope.message]\n"),),
    ),
    Mutant(
        "what had vanished before a restart is not read when it is back",
        "actors/recovery/seen_names.py",
        (("            if own:\n", "            if False:\n"),),
        start=673,
    ),
    Mutant(
        "what has vanished is not read when it is back",
        "actors/listing/vanished_names.py",
        (("        if not own:\n", "        if True:\n"),),
        shown_by="tests/actors/listing/test_event_look_up.py",
    ),
    Mutant(
        "rows stay in the views when the version that was to replace them vanishes",
        "actors/listing/vanished_names.py",
        (("        if vanished.replaces:\n", "        if False:\n"),),
        shown_by="tests/actors/listing/test_list_executor.py",
    ),
    Mutant(
        "rows stay in the views when the version that was to replace them vanished before a restart",
        "actors/recovery/committed_files.py",
        (("    return [key for key in keys if key[:2] in held]", "    return [key for key in keys if key in held]"),),
        shown_by="tests/actors/recovery/test_recovery.py",
    ),
    Mutant(
        "a version that vanished before its reading counts as noted while earlier rows are in the views",
        "actors/recovery/seen_names.py",
        (('pc.is_in(deleted["key"], value_set=unread)', 'pc.is_null(deleted["key"])'),),
        shown_by="tests/actors/recovery/test_recovery.py",
    ),
    Mutant(
        "nobody looks for what a listing does not show",
        "actors/listing/missing_files.py",
        (("        return [FindDeleted(self._source, {", "        return [] and [FindDeleted(self._source, {"),),
        start=16,
    ),
    Mutant(
        "what a listing did not look up counts as not shown",
        "actors/listing/page_look_up.py",
        (("        if digests.skipped:\n", "        if False:\n"),),
    ),
    Mutant(
        "a listing that skips what is known finds nothing gone",
        "actors/listing/page_look_up.py",
        (("            if missing.uncounted and not self._guard.paused:\n", "            if False:\n"),),
        among="'vanish' in repr(scenario)",
        start=607,
    ),
    Mutant(
        "a name that is back counts as missing",
        "actors/names/seen_index.py",
        (("        self._flags[stored] = _SHOWN | (self._flags[stored] & _UNREAD)\n", "        pass\n"),),
    ),
    Mutant(
        "what is not in the store yet counts as looked for",
        "actors/listing/missing_files.py",
        (("known, self.discard(known)", "known, self.discard(list(self._names))"),),
        start=121,
    ),
    Mutant(
        "the hashes of paths decide the order of missing files",
        "actors/listing/missing_files.py",
        (("{key: [] for path, key in keys.items() if path in known}", "{keys[path]: [] for path in known}"),),
        shown_by="tests/actors/listing/test_missing_files.py",
    ),
    Mutant(
        "one listing is enough to call a file gone",
        "actors/listing/missing_files.py",
        (("names = self._names if key in self._names else self._suspected", "names = self._names"),),
        among="'hide(' in repr(scenario)",
        start=94,
    ),
    Mutant(
        "a file that is back stays under suspicion",
        "actors/listing/missing_files.py",
        (
            (
                "        for key in keys:\n            self._suspected.pop(key, None)\n",
                "        for key in keys:\n",
            ),
        ),
        among="'hide(' in repr(scenario)",
    ),
    Mutant(
        "removals never pause",
        "actors/listing/removal_guard.py",
        (("self.paused, self.known = missing if is_paused else 0, known", "self.known = known"),),
        among="'hide(' in repr(scenario) and scenario.on_change == 'replace'",
        start=94,
    ),
    Mutant(
        "no approval ends a pause",
        "actors/listing/removal_guard.py",
        (("        self._allowed = self.paused\n", "        pass\n"),),
        among="scenario.on_change == 'replace'",
        start=94,
    ),
    Mutant(
        "a restart forgets the paused removals whose messages are deleted",
        "actors/listing/listing_state.py",
        (("events is None or self.must_list or needs_listing", "events is None or self.must_list"),),
        among="scenario.notifications and scenario.on_change == 'replace'",
        start=101,
    ),
    Mutant(
        "a mark is complete with the listing that was under way",
        "actors/listing/listing_marks.py",
        (("self.last = max(self.last, mark)", "self.last = self._listing = max(self.last, mark)"),),
        start=88,
    ),
    Mutant(
        "a mark is reached while files are unfinished",
        "actors/coordination/caught_up.py",
        (("if min(since, default=self._listed_epoch + 1) > self._listed_epoch:", "if True:"),),
    ),
    Mutant(
        "a vacuum goes by age",
        "state/upkeep/vacuum.py",
        (("self._existing(path, each.last) - each.versions if", "self._existing(path, each.last) if"),),
    ),
    Mutant(
        "a vacuum takes datasets that are not named yet",
        "state/upkeep/vacuum.py",
        (("created and int(created.group(1)) <= settled:", "created:"),),
    ),
    Mutant(
        "credit does not come back",
        "actors/exchange/merge_executor.py",
        (("return [Grant(edge, nbytes) for edge, nbytes in held.items()]", "return []"),),
    ),
    Mutant(
        "a finished file stays in the queue",
        "actors/fetching/state_changes.py",
        (
            (
                "        if progress.stored:\n            self._delta.delete",
                "        if False:\n            self._delta.delete",
            ),
        ),
    ),
    Mutant(
        "the versions of the views that are recorded are the last ones",
        "actors/coordination/epoch_collector.py",
        (("} | dict(self.views)", "} | {name: view for name, view in self.views.items() if name not in before}"),),
    ),
    Mutant(
        "epochs that were committed and not acknowledged are not counted",
        "actors/recovery/recovery.py",
        (("store.epochs(after=plan.so_far.epoch) if plan.held_root else []", "[]"),),
        start=16,
    ),
    Mutant(
        "a vacuum takes rows that are staged, and not committed yet",
        "state/upkeep/vacuum.py",
        (
            (
                "settled = last_of_others if is_stored_rows_path(path) else store.head.epoch",
                "settled = store.head.epoch",
            ),
        ),
    ),
    Mutant(
        "what was dropped is recorded for ever",
        "actors/coordination/epoch_collector.py",
        ((" for name, view in before.items() if name not in self.dropped}", " for name, view in before.items()}"),),
    ),
    Mutant(
        "the epoch up to which a view catches up expires",
        "state/tables/records.py",
        (("return frozenset(self.tags.values()).union(pinned)", "return frozenset(self.tags.values())"),),
        start=79,
    ),
    Mutant(
        "a view that is further is no reason to commit",
        "actors/coordination/epoch_commits.py",
        ((" or views != self._views:", ":"),),
        among="scenario.backfill",
        start=15,
    ),
    Mutant(
        "a run has caught up when its views have not",
        "actors/coordination/caught_up.py",
        ((" and not self._backfilling\n", "\n"),),
        start=60,
    ),
    Mutant(
        "a message is deleted before what it tells of is committed",
        "actors/notifications/message_tracker.py",
        (("while self._settled and self._settled[0][0] <= self._committed:", "while self._settled:"),),
    ),
    Mutant(
        "a message is deleted when its file waits for room",
        "actors/listing/event_look_up.py",
        (
            (
                "                unsent.add(file)\n            else:\n                self.settle(path, 0)",
                "                unsent.add(file)\n            self.settle(path, 0)",
            ),
        ),
    ),
    Mutant(
        "a message that comes during a look is settled by it",
        "actors/notifications/message_tracker.py",
        (
            (
                "            self._looking[path] = self._named.pop(path, set())",
                "            self._looking[path] = self._named.setdefault(path, set())",
            ),
            (
                "        stage.setdefault(path, set()).update(self._looking.pop(path, ()))",
                "        stage.setdefault(path, set()).update(self._looking.pop(path, ()))\n"
                "        self._named.pop(path, None)",
            ),
        ),
        shown_by="tests/actors/notifications/test_message_tracker.py",
    ),
    Mutant(
        "what a queue tells is enough from the beginning",
        "actors/listing/listing_state.py",
        (
            (
                "if listed.listed_at is None or listed.queue != queue:\n        return None",
                "if listed.queue != queue:\n        return 0.0",
            ),
        ),
        start=18,
    ),
    Mutant(
        "a queue counts as empty while others work on its messages",
        "actors/notifications/event_watch.py",
        ((" and depth.in_flight <= self._feed.tracker.received_once", ""),),
        start=64,
    ),
    Mutant(
        "a file that has vanished is not looked at again",
        "actors/listing/vanished_names.py",
        (
            (
                "forget()\n        self._looks.look_again(vanished.path)\n\n    def _set_deleted",
                "forget()\n\n    def _set_deleted",
            ),
        ),
        shown_by="tests/actors/listing/test_event_look_up.py",
    ),
    Mutant(
        "a run that was replaced deletes messages about what it does not know",
        "actors/listing/event_look_up.py",
        (
            (
                "            self.settle(path, self._writer.open_epoch)\n",
                "            self.settle(path, 0)\n",
            ),
        ),
        among="scenario.notifications and 'FREEZE' in repr(scenario)",
        start=4_094,
    ),
    Mutant(
        "an event about a file that is deleted is settled at once",
        "actors/listing/event_look_up.py",
        (("        elif path not in self._names.unsent:", "        if path not in self._names.unsent:"),),
        start=85,
    ),
    Mutant(
        "a message that is none is deleted at once",
        "actors/notifications/event_feed.py",
        (("if self.tracker.receive(message, (), now_s, epoch):", "if self.tracker.receive(message, (), now_s):"),),
        start=40,
    ),
    Mutant(
        "a handover forgets the row of a half-read file",
        "actors/fetching/vnode_moves.py",
        (
            (
                "                each.settle(is_interrupted=each.key in self._reads.active)\n",
                "                each.settle(is_interrupted=each.key in self._reads.active)\n"
                "                each.row_offset, each.read_to = 0, type(each.read_to)()\n",
            ),
        ),
        start=85,
    ),
    Mutant(
        "what was read and not emitted is not read again behind a handover",
        "actors/fetching/file_progress.py",
        (("        if is_interrupted or not self.replaces:\n", "        if is_interrupted and self.replaces:\n"),),
        start=92,
    ),
    Mutant(
        "the next owner does not wait for the handover",
        "actors/fetching/fetch_executor.py",
        (("        if self._arrivals.is_waiting:\n", "        if False:\n"),),
        start=2155,
    ),
    Mutant(
        "a handover leaves the later versions behind",
        "actors/fetching/vnode_moves.py",
        (("                    successors=tuple(successors.get(name, ())),\n", ""),),
        start=2_183,
    ),
    Mutant(
        "a handover leaves behind which versions had no row",
        "actors/fetching/vnode_moves.py",
        (("        versions.without_rows.take(handover.without_rows)\n", ""),),
        start=542,
    ),
    Mutant(
        "vnodes move in the dispatcher one barrier late",
        "actors/exchange/dispatch_executor.py",
        (
            (
                "            self._mapping = barrier.mutation.after\n",
                "            before, self._mapping = self._mapping, barrier.mutation.after\n",
            ),
            (
                "        instructions = pass_on(barrier, ",
                "        elif hasattr(self, '_next'):\n"
                "            self._mapping = self._next\n"
                "        instructions = pass_on(barrier, ",
            ),
            (
                "receivers)\n",
                "receivers)\n"
                "        if isinstance(barrier.mutation, Update):\n"
                "            self._mapping, self._next = before, barrier.mutation.after\n",
            ),
        ),
    ),
    Mutant(
        "rows of a fetch actor that begins with a barrier do not wait for it",
        "actors/exchange/barrier_aligner.py",
        (
            (
                "            self._early.setdefault(edge, deque()).append(message)\n            return []\n",
                "            self._early.setdefault(edge, deque())\n"
                "            if not isinstance(message, Barrier):\n"
                "                return [message]\n"
                "            self._early[edge].append(message)\n"
                "            return []\n",
            ),
        ),
        start=92,
    ),
    Mutant(
        "a listing counts although not all that it found is handed on",
        "actors/listing/listing_state.py",
        (("        self._ended_at = now\n", "        self.listed_at, self.must_list = now, False\n"),),
        shown_by="tests/actors/listing/test_listing_state.py",
    ),
    Mutant(
        "the next file of an ordered source is opened before the last one is read",
        "actors/fetching/pending_files.py",
        (("            if source not in self._reading or source not in decided:", "            if True:"),),
        start=28,
    ),
    Mutant(
        "what is found later is read last, whatever its place",
        "actors/fetching/pending_files.py",
        (
            (
                "            insort(files, progress, key=",
                "            files.append(progress)\n            insort([], progress, key=",
            ),
        ),
        shown_by="tests/actors/fetching/test_pending_files.py",
    ),
    Mutant(
        "an epoch is reported before its views are written",
        "slackwater/running/materializer_loop.py",
        (
            (
                "        report = self._materialize(taken)\n",
                "        self._client.collect(CollectReport(MATERIALIZER, taken.epoch.epoch))\n"
                "        self._materialize(taken)\n",
            ),
            ("        self._client.collect(report)\n", ""),
        ),
    ),
    Mutant(
        "an epoch does not wait for the schemas of its rows",
        "slackwater/running/materializer_loop.py",
        (("(self._spark_is_up() and self._is_known(epoch))", "self._spark_is_up()"),),
        start=374,
    ),
    Mutant(
        "an epoch that waits for Spark is lost",
        "slackwater/running/materializer_loop.py",
        (("            return Turn.WAITS\n", "            self._taken = None\n            return Turn.WAITS\n"),),
    ),
    Mutant(
        "a run has caught up before its backfills",
        "slackwater/running/materializer_loop.py",
        (
            (
                "return bool(behind) or any(not late.missing for late in self.status.backfills.values())",
                "return bool(behind)",
            ),
        ),
    ),
    Mutant(
        "counts that the ledger does not have are lost with an attempt",
        "slackwater/running/progress.py",
        (("self._of_run.get(source, SourceProgress()).plus(added)", "added"),),
        shown_by="tests/slackwater/running/test_progress.py",
    ),
    Mutant(
        "a metric counts what earlier runs have counted",
        "slackwater/status/observability/run_metrics.py",
        (("if counter.in_ledger else None", "if counter.restarts else None"),),
        shown_by="tests/slackwater/status/observability/test_run_metrics.py",
    ),
    Mutant(
        "a view that an epoch created is new in the next declaration",
        "slackwater/commands/attempt_views.py",
        (
            ("self._recorded = self.known = done.catalog(self.known)", "self._recorded = done.catalog(self.known)"),
            (
                "for name, view in self.known.items() if view != recorded.get(name)",
                "for name, view in self._recorded.items() if view != recorded.get(name)",
            ),
        ),
        start=67,
    ),
    Mutant(
        "no epoch is requested for a backfill without new rows",
        "slackwater/running/materializer_loop.py",
        (("new_views=record or self._has_news,", "new_views=False,"),),
        start=13,
    ),
    Mutant(
        "a backfill that continues begins its history again",
        "spark_bridge/maintenance/backfill.py",
        (("self._progress = self._recorded.history\n", "self._progress = None\n"),),
        start=391,
    ),
    Mutant(
        "the history of a backfill has the rows of the epoch that creates it",
        "spark_bridge/maintenance/backfill.py",
        (("        self.pinned_epoch = epoch - 1\n", "        self.pinned_epoch = epoch\n"),),
    ),
    Mutant(
        "a correction does not restart a backfill",
        "spark_bridge/maintenance/backfills.py",
        (
            (
                "        for name in changed:\n            self._restart(",
                "        for name in changed[:0]:\n            self._restart(",
            ),
        ),
        start=164,
    ),
    Mutant(
        "the epoch that shows a backfill does not end its hidden name",
        "spark_bridge/maintenance/recorded_views.py",
        (
            (
                "            self._ending.add(next_name(name))\n            created.append(",
                "            created.append(",
            ),
        ),
        among="scenario.backfill",
    ),
    Mutant(
        "the answer of one name actor is taken for that of another",
        "actors/names/name_shards.py",
        (
            (
                "[(rows, answers[owner]) for owner, rows in asked.items()]",
                "[(rows, answer) for rows, answer in zip(asked.values(), answers.values(), strict=True)]",
            ),
        ),
        among="scenario.name_actors > 1",
    ),
    Mutant(
        "a mark is complete before all parts of a page are answered",
        "actors/names/name_shards.py",
        (
            (
                "        if owner not in self._asked or owner in self._answers:\n",
                "        self._late = getattr(self, '_late', {})\n"
                "        if self._late.get(owner):\n"
                "            self._late[owner] -= 1\n"
                "            return\n"
                "        if owner not in self._asked or owner in self._answers:\n",
            ),
            ("len(self._answers) == len(self._asked)", "bool(self._answers) or not self._asked"),
            (
                "        return question.joined([(rows, answers[owner]) for owner, rows in asked.items()])\n",
                "        from actors.names.questions import Shown, ShowNames\n"
                "        for owner, rows in asked.items():\n"
                "            if owner not in answers:\n"
                "                self._late[owner] = self._late.get(owner, 0) + 1\n"
                "                part = question.part(rows, len(self.owners))\n"
                "                known = Shown(np.ones(len(rows), np.uint8))\n"
                "                is_page = isinstance(question, ShowNames)\n"
                "                answers[owner] = known if is_page else part.answer(SeenIndex())\n"
                "        return question.joined([(rows, answers[owner]) for owner, rows in asked.items()])\n",
            ),
        ),
        among="scenario.name_actors > 1",
    ),
    Mutant(
        "the names of one name actor are not recovered",
        "actors/shells/actor_group.py",
        (("for owner, part in parts.items()]", "for owner, part in parts.items() if owner != [*names][-1]]"),),
        among="scenario.name_actors > 1",
    ),
    Mutant(
        "a name is put into the shard of another",
        "actors/names/name_shards.py",
        (
            (
                "self._changes[self._mapping.owner_of(key)].append(change)",
                "self._changes[self.owners[0]].append(change)",
            ),
        ),
        among="scenario.name_actors > 1",
    ),
    *BRANCH_MUTANTS,
    Mutant(
        "a watermark does not wait for the files of the listing",
        "actors/coordination/watermarks.py",
        (("if min(since, default=epoch + 1) > self._listed_epoch:", "if True:"),),
        among="scenario.lateness_us is not None",
    ),
    Mutant(
        "rows of later files move the watermark",
        "actors/coordination/watermarks.py",
        (("if self._listed_epoch is not None and listed > self._listed_epoch:", "if False:"),),
        shown_by=f"{_WATERMARKS}::test_rows_of_later_files_count_with_the_next_mark",
    ),
    Mutant(
        "an attempt begins without the event times before it",
        "actors/coordination/watermarks.py",
        (("self._high = committed.high", "self._high = None"),),
        shown_by=f"{_WATERMARKS}::test_a_watermark_never_goes_back_and_a_crash_keeps_what_rows_have_shown",
    ),
    Mutant(
        "a watermark goes back",
        "actors/coordination/watermarks.py",
        (("highest(highest(self.at, self._next), self._idle_at)", "highest(self._next, self._idle_at)"),),
        shown_by=f"{_WATERMARKS}::test_a_watermark_never_goes_back_and_a_crash_keeps_what_rows_have_shown",
    ),
    Mutant(
        "a source is idle although rows come",
        "actors/coordination/watermarks.py",
        (("self._rows_s, self._idle_at = now_s, None", "self._rows_s = now_s"),),
        shown_by=f"{_WATERMARKS}::test_a_source_to_which_rows_come_is_not_idle",
    ),
    Mutant(
        "rows do not end the idle time of their source",
        "actors/coordination/watermarks.py",
        (("            self._rows_s, self._idle_at = now_s, None\n", "            pass\n"),),
        among="scenario.idle_s is not None",
    ),
    Mutant(
        "the watermark of an idle source passes a file that is not finished",
        "actors/coordination/watermarks.py",
        (
            (
                "        if min(since, default=epoch + 1) > self._listed_epoch:\n",
                "        if self._idle_at is not None or min(since, default=epoch + 1) > self._listed_epoch:\n",
            ),
        ),
        among="scenario.idle_s is not None",
        start=3984,
    ),
    Mutant(
        "the watermark of an idle source is the clock",
        "actors/coordination/watermarks.py",
        (("max(_FIRST_US, self._time_us() - self._idle_us)", "max(_FIRST_US, self._time_us())"),),
        among="scenario.idle_s is not None",
    ),
    Mutant(
        "no mark is made for an idle source",
        "actors/coordination/watermarks.py",
        (("!= self.at or self.idle_in_s(now_s) <= 0.0", "!= self.at"),),
        among="scenario.idle_s is not None",
    ),
    Mutant(
        "the watermark of an idle source moves with each look at the clock",
        "actors/coordination/watermarks.py",
        (("_IDLE_STEP = 0.25", "_IDLE_STEP = 0"),),
        shown_by=f"{_WATERMARKS}::test_the_watermark_of_an_idle_source_follows_the_clock",
    ),
    Mutant(
        "a row far ahead of the clock moves the watermark",
        "actors/reading/required_values.py",
        (("high = pc.max(pc.filter(times, pa.array(~is_ahead))).as_py()", "pass"),),
        shown_by="tests/actors/reading/test_event_times.py::"
        "test_rows_without_a_time_or_far_ahead_are_bad_and_move_no_watermark",
    ),
    Mutant(
        "a watermark that passes before Spark is up closes no window",
        "slackwater/running/materializer_loop.py",
        (("        self._watermarks = epoch.barrier.watermarks\n", ""),),
        shown_by="tests/slackwater/running/test_materializer_loop.py::"
        "test_a_watermark_that_passes_before_spark_is_up_closes_windows_in_the_next_epoch[empty]",
    ),
    Mutant(
        "a late row takes the place of one of an earlier version of its file",
        "state/upkeep/quarantine.py",
        (("row, view, epoch, content)", "row, view)"),),
        shown_by="tests/spark_bridge/ingest/test_late_rows.py::"
        "test_a_late_row_of_another_version_of_the_file_is_kept_beside_the_first",
    ),
    Mutant(
        "late rows are not kept",
        "slackwater/running/materializer_loop.py",
        (("late_delta(done.late, self._urls, epoch.epoch),", "late_delta((), self._urls, epoch.epoch),"),),
        among="scenario.closing",
    ),
    Mutant(
        "the event times that were seen before a death are forgotten",
        "actors/coordination/watermarks.py",
        (("committed.get(name, SourceWatermark(name))", "SourceWatermark(name)"),),
        among="scenario.closing",
    ),
    Mutant(
        "the event time is read only if a view uses it",
        "actors/reading/file_columns.py",
        (("columns = {*columns, source.event_time.column}", "pass"),),
        shown_by="tests/actors/reading/test_event_times.py::test_the_time_is_read_when_no_view_uses_it",
    ),
    *ENDPOINT_MUTANTS,
    *EQUALITY_MUTANTS,
    *FORMAT_MUTANTS,
    *CSV_MUTANTS,
    *CAPABILITY_MUTANTS,
    *AFTER_COMMIT_MUTANTS,
    *FILE_MUTANTS,
    *GATE_MUTANTS,
    *INTERFACE_MUTANTS,
    *ISOLATION_MUTANTS,
    *AFTER_COMMIT_MUTANTS,
    *OUTER_MUTANTS,
    *PLACE_MUTANTS,
    *REMOVAL_MUTANTS,
    *PUBLICATION_MUTANTS,
    *SCHEMA_MUTANTS,
    *SERVING_MUTANTS,
    *STORE_MUTANTS,
    *VIEW_MUTANTS,
    *WAITING_MUTANTS,
)
