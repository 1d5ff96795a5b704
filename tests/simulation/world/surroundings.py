"""Everything that the roots of a story share: the bucket, the clock, and the schedule of their events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.world.background import Background
from tests.simulation.world.bucket import Bucket
from tests.simulation.world.event_queue import EventQueue
from tests.simulation.world.interruptions import Interruptions
from tests.simulation.world.schedule import Life, Schedule
from tests.simulation.world.simulated_clock import SimulatedClock
from tests.simulation.world.simulated_threads import SimulatedThreads

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

    from tests.simulation.stories.scenario import Scenario


class Surroundings:
    """The world around roots.

    Args:
        scenario: all settings.
        random: makes every choice.
        beside: makes the choices about the ownership of roots.
        turn: lets one event happen.
        on_event: see `Schedule`.
    """

    def __init__(
        self,
        scenario: Scenario,
        random: Random,
        beside: Random,
        turn: Callable[[], bool],
        on_event: Callable[[Life, Callable[..., None], tuple[Any, ...]], None] | None = None,
    ) -> None:
        self.random, self.beside, self.turn = random, beside, turn
        self.clock = SimulatedClock(stands=scenario.clock_stands)
        self.background = Background(beside, self.clock, on_event, is_lazy=scenario.is_contended)
        self.schedule = Schedule(random, self.clock, scenario.slow, on_event, self.background)
        self.interruptions = Interruptions(random, turn)
        self.threads = SimulatedThreads(self.schedule, self.clock)
        self.bucket = Bucket(scenario.page_size)
        self.queues = {
            source: EventQueue(source, random, self.clock, loses=scenario.loses_events)
            for source in (scenario.sources if scenario.notifications else ())
        }
        self.network = Life("network")
