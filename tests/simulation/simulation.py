"""One seed: one story, told in one order of events."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - the seed of a simulation becomes its chance here
from typing import Any

from actors.files import FileKey
from state.tables.expectations import Gate
from state.tables.stored_rows import is_view
from tests.simulation.memory.file_tables import FileTables
from tests.simulation.promise_broken import PromiseBroken
from tests.simulation.simulated_world import World
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    ACCEPT,
    ALL_OVER,
    ANSWERED,
    CAUGHT_UP,
    CLAIMED,
    CLOSED,
    CURRENT,
    FOUND,
    NOTED,
    PUBLISHED,
    SETTLED,
    STOP,
    STOPPED,
    Step,
    Wait,
)
from tests.simulation.world.schedule import Life
from tests.simulation.world.surroundings import Surroundings


@dataclass(frozen=True)
class Outcome:
    """The end of a simulation.

    Args:
        events: number of events.
        epochs: number of committed epochs.
        seconds: simulated time.
        statuses: path -> the statuses of its versions in the ledger, in the order of their epochs.
        failed_views: the names of the views that have failed.
        views: the names of the views of the last version of the store that are maintained.
        refusals: the errors of merges that were refused.
        late_rows: the file and the position of each row that came too late for a view.
        gates: the states of the gate, one after the other.
        removed: the number of files that were deleted or moved after the commit.
        present: the paths that are in the bucket.
        published: view → the epoch that its table names.
        exit_codes: of the runs that ended without an error, and whose views are published.
    """

    events: int
    epochs: int
    seconds: float
    statuses: dict[str, tuple[str, ...]]
    failed_views: frozenset[str]
    views: frozenset[str] = frozenset()
    refusals: tuple[str, ...] = ()
    late_rows: tuple[tuple[FileKey, int], ...] = ()
    gates: tuple[Gate, ...] = ()
    removed: int = 0
    present: frozenset[str] = frozenset()
    published: dict[str, int | None] = field(default_factory=dict)
    exit_codes: tuple[int, ...] = ()


class Simulation:
    """Tells a story, and checks the promises at every version of the store.

    At the end of every story the faults end, and then the pipeline must catch up, note what is gone, and stop.

    Args:
        scenario: the story, and the settings of the pipeline.
        seed: seed of every choice.
        trace: called with each event and each step, as text.
    """

    def __init__(self, scenario: Scenario, seed: int, trace: Callable[[str], None] | None = None) -> None:
        self._trace = trace
        on_event = None if trace is None else self._on_event
        chance, beside = Random(seed), Random(f"{seed} beside")
        self._world = World(scenario, Surroundings(scenario, chance, beside, self._turn, on_event))
        # A change that is found from now on ends no run.
        accepted = [ACCEPT] if scenario.on_change == "fail" else []
        self._steps: Iterator[Step] = iter(
            (
                *scenario.story,
                _FAULTS_END,
                _BRANCHES_END,
                *accepted,
                CAUGHT_UP,
                FOUND,
                SETTLED,
                NOTED,
                ANSWERED,
                CURRENT,
                CLOSED,
                PUBLISHED,
                STOP,
                STOPPED,
                ALL_OVER,
                _AT_END,
            )
        )
        self._wait: Wait | None = None
        self._waited_events = self._first_pause = 0

    def run(self) -> Outcome:
        """Tells the story to its end.

        Raises:
            PromiseBroken: a promise does not hold.
        """
        try:
            while self._turn(nested=False):
                pass
            self._world.check_end()
        except PromiseBroken:
            raise
        except Exception as error:
            raise PromiseBroken("no bug", _described(error)) from error
        finally:
            self._world.threads.end()
            self._world.ownerships.threads.end()
            self._world.close()
        world = self._world
        tables = FileTables.latest(world.disk)
        stopped = tables.stopped_views()
        return Outcome(
            events=world.schedule.events + world.ownerships.background.events,
            epochs=world.promises.epochs,
            seconds=world.clock.monotonic(),
            statuses=tables.statuses(),
            failed_views=frozenset(name for name, row in stopped.items() if row["error"] is not None),
            views=frozenset(filter(is_view, world.head().views)) - stopped.keys(),
            refusals=world.branches.refusals,
            late_rows=world.promises.late_rows,
            gates=world.promises.gates,
            removed=world.promises.kept.removed,
            present=frozenset(map("/".join, world.bucket.present())),
            published={view: table.epoch for view, table in world.tables.by_view.items()},
            exit_codes=tuple(world.promises.exits.codes),
        )

    def _turn(self, *, nested: bool = True) -> bool:
        """One event, or one step of the story.  Returns False at the end, or if an outer turn must continue first.

        Args:
            nested: whether this happens in the middle of an operation.
        """
        if self._wait is not None:
            return self._go_on_waiting(self._wait, nested=nested)
        step = next(self._steps, None)
        if step is None:
            return False
        if self._trace is not None:
            self._trace(f"-- {step!r}")
        self._wait = step.begin(self._world)
        self._waited_events, self._first_pause = 0, self._world.schedule.pauses
        return True

    def _go_on_waiting(self, wait: Wait, *, nested: bool) -> bool:
        if wait.is_over():
            self._wait = None
            return True
        pauses = self._world.schedule.pauses - self._first_pause
        if self._waited_events < wait.events and pauses < wait.pauses:
            self._waited_events += 1
            if self._world.schedule.step():
                return True
            if nested and (wait.is_patient or wait.otherwise is not None):
                return False
        if wait.otherwise is not None:
            why = (
                f"{self._waited_events} events were not enough"
                if self._world.schedule.is_waiting
                else "nothing is under way"
            )
            raise PromiseBroken("liveness", f"{wait.otherwise}: {why}")
        self._wait = None
        return True

    def _on_event(self, life: Life, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        assert self._trace is not None
        name = getattr(action, "__name__", "")
        if name in ("act", "_run", "soon"):
            action, *rest = arguments
            name, arguments = getattr(action, "__name__", ""), tuple(rest)
        now_s = self._world.clock.monotonic()
        self._trace(f"{now_s:9.3f} {life.process.name} {life.name}: {name}({', '.join(map(repr, arguments))})")


def simulate(story: Scenario | Iterable[Step], *, seed: int = 0) -> Outcome:
    """Tells a story once.

    Args:
        story: the steps; see `tests.simulation.stories.steps`.
        seed: decides the order of everything that the story leaves open.

    Raises:
        PromiseBroken: a promise does not hold.

    Example:
        >>> from tests.simulation.stories.steps import BARRIER, CAUGHT_UP, CRASH, file
        >>> outcome = simulate([file("a", rows=3), BARRIER, CRASH("fetch-0"), file("b", rows=2), CAUGHT_UP])
        >>> outcome.statuses
        {'s/a': ('done',), 's/b': ('done',)}
    """
    return Simulation(story if isinstance(story, Scenario) else Scenario(tuple(story)), seed).run()


def _end_faults(world: World) -> Wait | None:
    for branch in world.branches.worlds:
        _end_faults(branch)
    world.bucket.end_faults()
    world.links.restore()
    world.faults.end()
    world.tables.end_faults()
    world.ownerships.end_faults()
    world.interruptions.end()
    world.thaw()
    return CLAIMED.begin(world) if world.ownerships.is_claimed else None


def _check_end(world: World) -> None:
    process = world.process
    if process is not None and not process.stopped:
        raise PromiseBroken("liveness", f"the run was to stop, and failed: {process.failure}")


_FAULTS_END = Step("FAULTS_END", _end_faults)
_BRANCHES_END = Step("BRANCHES_END", lambda world: world.branches.end())
_AT_END = Step("AT_END", _check_end)


def _described(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    at = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"
    return f"{type(error).__name__}: {error} at {at}"
