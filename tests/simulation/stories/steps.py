"""The words of a story.

Words in small letters are about the bucket, words in capitals about everything else.  Each prints as it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from slackwater.commands.operations import ClearQuarantineCommand, TagCommand
from state.epoch import epoch_time_us, next_epoch
from state.errors import BadInputError
from state.ownership.command import Command
from tests.simulation.model_views.model_view import with_other_filter, with_other_groups
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.world.bucket import BucketFault, Content
from tests.simulation.world.file_rows import path_at
from tests.simulation.world.ownerships import OwnerFate
from tests.simulation.world.simulated_root import CommitFate, ViewFate

if TYPE_CHECKING:
    from tests.simulation.hosting.process import SimulatedProcess
    from tests.simulation.simulated_world import World

_SOFT_EVENTS, _SOFT_PAUSES, _HARD_EVENTS = 300, 4, 40_000
_LONG_EVENTS, _LONG_PAUSES = 1_000, 30
_RESTARTS = 3


@dataclass(frozen=True)
class Wait:
    """What a story waits for.

    Args:
        is_over: whether it has come.
        events: so many things may happen before.
        pauses: so often there may be nothing to do before.
        otherwise: the fault if it does not come; without it the story goes on all the same.
        is_patient: whether an operation that is interrupted continues when nothing else is under way.
    """

    is_over: Callable[[], bool]
    events: int = _SOFT_EVENTS
    pauses: int = _SOFT_PAUSES
    otherwise: str | None = None
    is_patient: bool = False


@dataclass(frozen=True, repr=False)
class Step:
    """One word of a story.

    Args:
        text: as it is written.
        begin: does it; what takes time returns what is waited for.
    """

    text: str
    begin: Callable[[World], Wait | None] = field(compare=False)

    def __repr__(self) -> str:
        return self.text


# -- the bucket ----------------------------------------------------------------------------------------------------


def file(
    path: str,
    *,
    rows: int = 3,
    bad: Sequence[int] = (),
    bad_row: int | None = None,
    kills: str | None = None,
    kill_row: int = 0,
    fails: str = "",
) -> Step:
    """A file appears, or is rewritten.

    Args:
        path: its name; `source/name` for another source than the first.
        rows: their number.
        bad: rows that do not fit.
        bad_row: from this row on it cannot be read.
        kills: `"fetch"` or `"spark"`: who dies of reading it.
        kill_row: the row that kills, or that a view fails over.
        fails: the view whose own expression fails over a row.
    """
    more = f", bad={tuple(bad)}" if bad else ""
    more += "" if bad_row is None else f", bad_row={bad_row}"
    more += "" if kills is None else f", kills={kills!r}"
    more += f", kill_row={kill_row}" if kill_row else ""
    more += f", fails={fails!r}" if fails else ""
    return Step(
        f"file({path!r}, rows={rows}{more})",
        lambda world: world.bucket.put(
            *world.path_of(path), Content(rows, bad_row, kills, frozenset(bad), kill_row, fails), world.bucket_time()
        ),
    )


def fresh(path: str, *, rows: int = 3, ago_s: float = 0.0) -> Step:
    """A file appears whose rows have happened so many seconds ago.

    Args:
        path: the beginning of its name, see `file`.
        rows: their number.
        ago_s: the seconds.
    """
    more = f", ago_s={ago_s:g}" if ago_s else ""

    def begin(world: World) -> None:
        now = world.clock.now()
        source, name = world.path_of(path)
        name = path_at(name, int((now.timestamp() - ago_s) * 1e6))
        world.bucket.put(source, name, Content(rows), now)

    return Step(f"fresh({path!r}, rows={rows}{more})", begin)


def vanish(path: str) -> Step:
    """A file goes."""
    return Step(f"vanish({path!r})", lambda world: world.bucket.vanish(*world.path_of(path)))


def mend(path: str) -> Step:
    """A file that could not be read can be, in the same version."""
    return Step(f"mend({path!r})", lambda world: world.bucket.mend(*world.path_of(path)))


def back(path: str) -> Step:
    """A file that went is there again, the same version."""
    return Step(f"back({path!r})", lambda world: world.bucket.bring_back(*world.path_of(path)))


def again(path: str) -> Step:
    """The last version of a file is written once more: the same bytes with the same etag, as a new object."""
    return Step(f"again({path!r})", lambda world: world.bucket.put_again(*world.path_of(path), world.bucket_time()))


def archived(path: str) -> Step:
    """Another program puts an object where this file would be moved to."""
    return Step(f"archived({path!r})", lambda world: world.bucket.put_into_archive(*world.path_of(path)))


def mount(directory: str) -> Step:
    """A table of another program appears in a directory below a source, by a link or a mount."""
    return Step(
        f"mount({directory!r})", lambda world: world.bucket.mount(*world.path_of(directory), world.bucket_time())
    )


def _unmount(world: World) -> None:
    world.bucket.unmount()


unmount = Step("unmount", _unmount)
"""The user removes every such link and mount."""


def link(place: str, target: str) -> Step:
    """A link or a mount leads a place of the root elsewhere, until `unlink`: a start is refused if places overlap then.

    Args:
        place: `tables/<view>`, `archive/<source>` or `sources/<source>`.
        target: a path in the bucket, see `Links`.
    """
    return Step(f"link({place!r}, {target!r})", lambda world: world.links.lead(place, target))


unlink = Step("unlink", lambda world: world.links.restore())
"""The user removes every such link and mount."""


def _fault(fault: BucketFault, requests: int) -> Step:
    """The next requests of a kind get a wrong answer, see `BucketFault`."""

    def begin(world: World) -> None:
        world.bucket.faults[fault] += requests

    return Step(f"{fault}({requests})", begin)


def cut(deletions: int) -> Step:
    """The next deletions of files after the commit are carried out, and not answered."""
    return _fault("cut", deletions)


def phantom(deletions: int = 1) -> Step:
    """The next deletions of files after the commit are acknowledged, and not carried out."""
    return _fault("phantom", deletions)


def stale(readings: int = 1) -> Step:
    """The next reads of a replaced object return the version before, with its etag."""
    return _fault("stale", readings)


def repeat(listings: int = 1) -> Step:
    """The next listings show the last object of each page again on the following page."""
    return _fault("repeat", listings)


def refuse(requests: int) -> Step:
    """The next requests to the bucket are answered 503."""
    return _fault("refuse", requests)


def hide(*paths: str, listings: int = 1) -> Step:
    """The next listings lack these files of the first source, or all of them; they are there all the same."""
    more = "" if listings == 1 else f"listings={listings}"
    text = ", ".join([*map(repr, paths), *([more] if more else [])])

    def begin(world: World) -> None:
        world.bucket.hide(world.definition.sources[0].name, frozenset(paths), listings)

    return Step(f"hide({text})", begin)


# -- deaths --------------------------------------------------------------------------------------------------------


def CRASH(actor: str) -> Step:
    """An actor dies: `list-s`, `names-s-0`, `dispatcher`, `fetch-0`, `merger`, `coordinator`, or `materializer` for
    Spark.
    """

    def begin(world: World) -> None:
        process = _running(world)
        if process is not None and process.attempt is not None:
            process.attempt.crash(actor)

    return Step(f"CRASH({actor!r})", begin)


def DEATH(actor: str) -> Step:
    """An actor dies of something that is no file, unless no row was committed since the last two such deaths.

    A third one could be that of a file that kills, which nothing tells apart.
    """

    def begin(world: World) -> None:
        if world.deaths.is_harmless(world.promises.rows):
            CRASH(actor).begin(world)

    return Step(f"DEATH({actor!r})", begin)


def _crash_publications(world: World) -> None:
    process = _running(world)
    if process is not None and process.publications is not None:
        process.publications.crash()


CRASH_PUBLICATIONS = Step("CRASH_PUBLICATIONS", _crash_publications)
"""The process dies that publishes beside a run; it starts again."""


def TABLES_DOWN(seconds: float) -> Step:
    """The place of the published tables answers nothing for a while."""
    return Step(f"TABLES_DOWN({seconds:g})", lambda world: world.tables.fail_for(seconds))


def CUT_TABLE(view: str, commits: int = 1) -> Step:
    """So many of the next commits of the table of a view are carried out, and not answered."""

    def begin(world: World) -> None:
        world.tables.by_view[view].cuts += commits

    return Step(f"CUT_TABLE({view!r}, {commits})", begin)


def SPOIL_TABLE(view: str) -> Step:
    """Another program writes to the table of a view: nothing more is published to it."""
    return Step(f"SPOIL_TABLE({view!r})", lambda world: world.tables.by_view[view].spoil())


def NODE(*actors: str) -> Step:
    """A node dies with these actors, all at once."""

    def begin(world: World) -> None:
        process = _running(world)
        if process is not None and process.attempt is not None:
            process.attempt.lose_node(actors)

    return Step(f"NODE({', '.join(map(repr, actors))})", begin)


def _kill(world: World) -> None:
    if world.process is not None:
        world.process.end()


def _freeze(world: World) -> None:
    if world.process is not None:
        world.process.frozen = True


KILL = Step("KILL", _kill)
"""The process dies, and all of its actors; what it has sent may still arrive."""
START = Step("START", lambda world: world.start_process())
"""A process starts; one that runs already is taken over from."""
START_IF_FREE = Step("START_IF_FREE", lambda world: world.start_process(takeover=False))
"""A process starts if no other one runs, or if that one has been silent for long."""
POWER_CUT = Step("POWER_CUT", lambda world: world.ownerships.cut_power())
"""Every process dies, and half of `owner.json` is left."""
FREEZE = Step("FREEZE", _freeze)
"""The process stands still, at whatever it is doing, until `THAW`."""
THAW = Step("THAW", lambda world: world.thaw())
"""The frozen process goes on."""


# -- the root ------------------------------------------------------------------------------------------------------


def COMMIT(fate: CommitFate) -> Step:
    """The next commit of the store, which a take-over is, too, is lost or late, or its answer is lost."""
    return Step(f"COMMIT({fate!r})", lambda world: world.faults.commits.append(fate))


def VIEW_COMMIT(fate: ViewFate) -> Step:
    """The next commit of a view is lost, or its answer is."""
    return Step(f"VIEW_COMMIT({fate!r})", lambda world: world.faults.views.append(fate))


def OWNER_WRITE(fate: OwnerFate) -> Step:
    """The next write of `owner.json` is lost or late, or its answer is lost.

    `repeated`: its answer is lost, and the repeated request is refused.
    """
    return Step(f"OWNER_WRITE({fate!r})", lambda world: world.ownerships.fates.append(fate))


def OWNER_SILENCE(readings: int) -> Step:
    """So many of the next readings of `owner.json` are not answered."""

    def begin(world: World) -> None:
        world.ownerships.silences += readings

    return Step(f"OWNER_SILENCE({readings})", begin)


def SILENCE(readings: int) -> Step:
    """So many of the next readings of the store are not answered."""
    return Step(f"SILENCE({readings})", lambda world: world.faults.fall_silent(readings))


# -- the user, and time --------------------------------------------------------------------------------------------


def _request(name: str, ask: Callable[[SimulatedProcess], None]) -> Step:
    def begin(world: World) -> None:
        process = _running(world)
        if process is not None:
            ask(process)

    return Step(name, begin)


PAUSE = _request("PAUSE", lambda process: process.pause())
"""The user pauses the pipeline."""
RESUME = _request("RESUME", lambda process: process.resume())
"""The user lets it go on."""
ALLOW = _request("ALLOW", lambda process: process.allow_removals())
"""The user lets the files go whose removal is paused."""
STOP = _request("STOP", lambda process: process.stop())
"""The user stops it; `STOPPED` waits for the end."""


def ASK(command: Command) -> Step:
    """A user sends a command to the run, from another process."""

    def begin(world: World) -> None:
        world.ask(command)

    return Step(f"ASK({command!r})", begin)


def TAG(name: str) -> Step:
    """A user asks for a tag of the last epoch."""

    def begin(world: World) -> None:
        epoch = world.disk.versions[world.disk.latest].head.epoch if world.disk.latest else 0
        if epoch:
            world.ask(TagCommand(name=name, epoch=epoch))

    return Step(f"TAG({name!r})", begin)


def _clear(world: World) -> None:
    if world.disk.latest:
        world.ask(ClearQuarantineCommand(epoch=world.disk.versions[world.disk.latest].head.epoch))


CLEAR_QUARANTINE = Step("CLEAR_QUARANTINE", _clear)
"""A user has seen the bad records up to now, and lets go of their content."""


def PIN(reader: str) -> Step:
    """A reader begins to read the last epoch, and keeps it."""
    return Step(f"PIN({reader!r})", lambda world: world.pins.begin(reader))


def UNPIN(reader: str) -> Step:
    """A reader lets go of its epoch."""
    return Step(f"UNPIN({reader!r})", lambda world: world.pins.end(reader))


def KILL_READER(reader: str) -> Step:
    """A reader dies, and leaves its pin."""
    return Step(f"KILL_READER({reader!r})", lambda world: world.pins.kill(reader))


TORN_PIN = Step("TORN_PIN", lambda world: world.pins.tear())
"""A power cut leaves half a pin, which holds nothing."""


def BRANCH(name: str) -> Step:
    """A user makes a branch at the last epoch, or goes on with one that was begun."""
    return Step(f"BRANCH({name!r})", lambda world: world.branches.make(name))


def DROP_BRANCH(name: str) -> Step:
    """A user drops a branch."""
    return Step(f"DROP_BRANCH({name!r})", lambda world: world.branches.drop(name))


def MERGE(name: str) -> Step:
    """A user takes the views of a branch into the root, on which nothing may run."""
    return Step(f"MERGE({name!r})", lambda world: world.branches.merge(name))


KILL_USERS = Step("KILL_USERS", lambda world: world.branches.kill())
"""The users die who are making, merging or dropping branches."""


def ON(branch: str, step: Step) -> Step:
    """Something happens on a branch, as on a root of its own; nothing does if it cannot be opened."""

    def begin(world: World) -> Wait | None:
        there = world.branches.world_of(branch)
        wait = None if there is None else step.begin(there)
        if wait is None:
            return None
        return replace(wait, is_over=lambda: world.branches.world_of(branch) is not there or wait.is_over())

    return Step(f"ON({branch!r}, {step!r})", begin)


def ADD_VIEW(name: str) -> Step:
    """The user declares a view while the run runs: `extra`, `more`, `joined`, or one that was dropped."""
    return Step(f"ADD_VIEW({name!r})", lambda world: world.add_view(name))


def CHANGE_VIEW(name: str) -> Step:
    """The user changes the groups of a view, and of those that read it, for the next process."""
    return Step(f"CHANGE_VIEW({name!r})", lambda world: world.change_view(name, with_other_groups))


def FILTER_VIEW(name: str) -> Step:
    """The user changes the filter above the groups of a view, and of those that read it, for the next process."""
    return Step(f"FILTER_VIEW({name!r})", lambda world: world.change_view(name, with_other_filter))


def DROP_VIEW(name: str) -> Step:
    """The user ends a view."""
    return Step(f"DROP_VIEW({name!r})", lambda world: world.drop_view(name))


def RESCALE(fetchers: int) -> Step:
    """The user wants so many fetch actors."""
    return _request(f"RESCALE({fetchers})", lambda process: process.rescale(fetchers))


def _accept(world: World) -> None:
    world.accept_changes()
    if world.process is not None and world.process.alive:
        world.process.end()


ACCEPT = Step("ACCEPT", _accept)
"""The user ends the process, and declares that changed files end no later one."""


def CLOCK(seconds: float) -> Step:
    """The wall clock is set forth, or back."""
    return Step(f"CLOCK({seconds:g})", lambda world: world.clock.set_wall(seconds))


def SUSPEND(seconds: float) -> Step:
    """Every machine is suspended for a while: monotonic clocks stand, and wall clocks are right afterwards."""
    return Step(f"SUSPEND({seconds:g})", lambda world: world.clock.suspend(seconds, wall_stands=False))


def STAND(seconds: float) -> Step:
    """Every virtual machine is paused for a while: all clocks of the runs stand."""
    return Step(f"STAND({seconds:g})", lambda world: world.clock.suspend(seconds, wall_stands=True))


def LATER(seconds: float) -> Step:
    """Time passes without any event: a process that lives gets no turn in it."""

    def begin(world: World) -> None:
        world.clock.skip(seconds)
        world.ownerships.checker.excuse_all()

    return Step(f"LATER({seconds:g})", begin)


def AT(moment: str, step: Step) -> Step:
    """Something happens not now but the next time that a moment comes.

    The moments at the root: `before` and `after` each of `commit`, `view`, `restore`, `tag`, `vacuum`, `stage`, and
    with `on_lance` `fold`; and `before read`.  Those of `owner.json`: `before` and `after` each of `look` and `owner`,
    which is a write.  Those of the work on files after the commit: `before` and `after` each of `copy`, `delete` and
    `note`.  Those of any actor: `fetch-0 collects`: it has sealed an epoch and told so, and not passed the
    barrier on; `fetch-0 hands over`: what it hands over with its vnodes is on the way.
    """

    def begin(world: World) -> None:
        world.interruptions.plan(moment, lambda: step.begin(world))

    return Step(f"AT({moment!r}, {step!r})", begin)


# -- waiting -------------------------------------------------------------------------------------------------------


def EVENTS(count: int) -> Step:
    """So many things happen."""
    return Step(f"EVENTS({count})", lambda world: Wait(lambda: False, count))


def SECONDS(seconds: float) -> Step:
    """So much time passes."""

    def begin(world: World) -> Wait:
        end_s = world.clock.monotonic() + seconds
        return Wait(lambda: world.clock.monotonic() >= end_s, pauses=_HARD_EVENTS)

    return Step(f"SECONDS({seconds:g})", begin)


def _barrier(world: World) -> Wait:
    epochs = world.promises.epochs
    return Wait(lambda: world.promises.epochs > epochs)


def _rows(world: World) -> Wait:
    rows = world.promises.rows
    return Wait(lambda: world.promises.rows > rows, _LONG_EVENTS, _LONG_PAUSES, is_patient=True)


def _recovered(world: World) -> Wait:
    process = _running(world)
    attempt = None if process is None else process.attempt

    def is_over() -> bool:
        process = _running(world)
        if process is None:
            return True
        return process.attempt is not None and process.attempt is not attempt and process.attempt.is_running

    return Wait(is_over, _LONG_EVENTS, _LONG_PAUSES, is_patient=True)


def _stopped(world: World) -> Wait:
    process = world.process
    if process is None or process.frozen or not process.is_stopping:
        return Wait(lambda: True)
    return Wait(lambda: not process.alive or process.frozen, _HARD_EVENTS, _HARD_EVENTS, "stop does not end")


def _answered(world: World) -> Wait:
    return Wait(
        lambda: _running(world) is None or not world.inbox.unanswered,
        _HARD_EVENTS,
        _HARD_EVENTS,
        "a command is not answered",
    )


def _current(world: World) -> Wait:
    if not world.has_timers:
        return Wait(lambda: True)
    head = world.disk.versions[world.disk.latest].head
    time_us = epoch_time_us(next_epoch(world.clock, head.epoch))
    return Wait(
        lambda: _running(world) is None or world.promises.is_current(time_us),
        _HARD_EVENTS,
        _HARD_EVENTS,
        f"rows that the time has reached by {time_us} stay as they are",
    )


def _closed(world: World) -> Wait:
    if world.definition.sources[0].event_time is None or world.definition.sources[0].event_time.idle_us is None:
        return Wait(lambda: True)
    return _must(lambda: _running(world) is None or not world.promises.has_open_windows, "a window stays open")


def _settled(world: World) -> Wait:
    return _caught_up(world, is_settled=True) if world.backlog.has_vanished else Wait(lambda: True)


def _found(world: World) -> Wait:
    process = _running(world)
    closed: frozenset[str] = frozenset() if process is None else process.closed
    return Wait(
        lambda: not (world.queues and world.backlog.undiscovered(closed)) and not world.backlog.removed(closed),
        _HARD_EVENTS,
        _HARD_EVENTS,
        "what is there is not known, or its rows are not",
    )


def _noted(world: World) -> Wait:
    process = _running(world)
    closed: frozenset[str] = frozenset() if process is None else process.closed
    asked: set[tuple[str, int, int]] = set()

    def is_over() -> bool:
        if not world.backlog.not_noted_deleted(closed):
            return True
        running = _running(world)
        if running is not None and (paused := running.paused_removals - asked):
            # The user reads the status, and sees that the files were deleted.
            asked.update(paused)
            running.allow_removals()
        return False

    return Wait(
        is_over,
        _HARD_EVENTS,
        _HARD_EVENTS,
        "deleted files are not noted",
    )


def _caught_up(world: World, *, is_settled: bool = False) -> Wait:
    started = [len(world.processes)]

    def is_over() -> bool:
        process = _running(world)
        if process is None and world.ownerships.is_claimed:
            return False
        if process is None:
            failure = world.process.failure if world.process is not None else None
            if len(world.processes) - started[0] > _RESTARTS:
                raise PromiseBroken("liveness", f"the run gives up again and again: {failure}")
            if isinstance(failure, BadInputError):
                # The user reads the error, and accepts the change.
                world.accept_changes()
                started[0] = len(world.processes)
            world.start_process()
            return False
        if process.frozen:
            world.thaw()
        if process.is_paused:
            # By a command that came late.
            process.resume()
        if not process.caught_up:
            return False
        world.promises.on_caught_up(
            process.marked_objects,
            process.shown_views,
            process.ended_views,
            expecting=process.expecting_views,
            is_settled=is_settled,
        )
        return True

    # The user reads why a source is paused, or a start is refused.
    world.bucket.unmount()
    world.links.restore()
    process = _running(world)
    if process is not None:
        process.resume()
        process.new_mark()
    return Wait(is_over, _HARD_EVENTS, _HARD_EVENTS, "it does not catch up")


def _claimed(world: World) -> Wait:
    return _must(lambda: not world.ownerships.is_claimed, "a start does not end")


def _all_over(world: World) -> Wait:
    # A run that is idle hears with a renewal that it has lost the root.
    world.ownerships.background.passes_time = True
    return _must(lambda: not any(each.alive for each in world.processes), "a run goes on that has lost the root")


def _published(world: World) -> Wait:
    tables = [each for each in world.tables.by_view.values() if not each.is_spoilt]
    return _must(
        lambda: _running(world) is None or all(world.promises.is_published(each) for each in tables),
        "a table does not catch up",
    )


def _must(is_over: Callable[[], bool], otherwise: str) -> Wait:
    return Wait(is_over, _HARD_EVENTS, _HARD_EVENTS, otherwise)


BARRIER = Step("BARRIER", _barrier)
"""The next epoch is committed, unless none comes."""
ROWS = Step("ROWS", _rows)
"""The next rows are committed, unless none come."""
RECOVERED = Step("RECOVERED", _recovered)
"""The next attempt runs, unless none begins."""
CAUGHT_UP = Step("CAUGHT_UP", _caught_up)
"""Everything that is in the bucket now is finished; for that, a process runs, and is neither paused nor frozen."""
CURRENT = Step("CURRENT", _current)
"""The views with filters by the time have the rows of now, or of later; a process has caught up."""
CLOSED = Step("CLOSED", _closed)
"""If sources can be idle, the last windows are closed; a process has caught up."""
SETTLED = Step("SETTLED", _settled)
"""The same once more, if anything has vanished: word of that was on its way then, and has come."""
FOUND = Step("FOUND", _found)
"""Everything that is in the bucket is known, whatever events were lost; a process has caught up."""
NOTED = Step("NOTED", _noted)
"""The ledger says of every file that is not in the bucket any more that it is deleted; a process has caught up."""
ANSWERED = Step("ANSWERED", _answered)
"""Every command is answered, unless no process runs."""
BRANCHED = Step(
    "BRANCHED", lambda world: _must(lambda: not world.branches.are_busy, "a command about a branch does not end")
)
"""Every user has made, merged or dropped a branch, or has given up."""
PUBLISHED = Step("PUBLISHED", _published)
"""Every table that no other program has written to has the rows of the last epoch that nothing holds back."""
STOPPED = Step("STOPPED", _stopped)
"""The process that was asked to stop has ended."""
CLAIMED = Step("CLAIMED", _claimed)
"""No start is under way."""
ALL_OVER = Step("ALL_OVER", _all_over)
"""No process runs, also none that has lost the root."""


def _running(world: World) -> SimulatedProcess | None:
    process = world.process
    return process if process is not None and process.alive else None
