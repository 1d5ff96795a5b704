"""Random stories, each from a seed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args
from zlib import crc32

from actors.protocol.barrier import Pause, Resume, Throttle
from actors.sources.pipeline_definition import COORDINATOR, DISPATCHER, MATERIALIZER, MERGER
from slackwater.commands.operations import (
    AllowRemovalsCommand,
    ForgetCommand,
    ReingestCommand,
    RescaleCommand,
    RetryCommand,
    StopCommand,
    TagCommand,
    VacuumCommand,
)
from spark_bridge.changes.joined_positions import JoinKind
from tests.simulation.model_views.model_view import TimeFilter
from tests.simulation.stories.scenario import Scenario
from tests.simulation.stories.steps import (
    ACCEPT,
    ADD_VIEW,
    ASK,
    AT,
    BARRIER,
    CAUGHT_UP,
    CLOCK,
    COMMIT,
    CRASH,
    DEATH,
    DROP_VIEW,
    EVENTS,
    FREEZE,
    KILL,
    KILL_READER,
    NODE,
    PAUSE,
    PIN,
    RECOVERED,
    RESCALE,
    RESUME,
    ROWS,
    SECONDS,
    SILENCE,
    START,
    STOP,
    STOPPED,
    TAG,
    THAW,
    TORN_PIN,
    UNPIN,
    VIEW_COMMIT,
    Step,
    back,
    file,
    hide,
    mend,
    refuse,
    vanish,
)

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 - as an argument

_PATHS = "abcdef"
_RESCALED, _BACKFILLED, _DYING, _HIDDEN, _SHARDED = 0.35, 0.5, 0.06, 0.25, 0.4
_STAGED, _LATE, _LATE_S = 0.15, 0.25, 8 * 86_400
_FULL = 0.5
_DERIVED_ONE_IN, _DERIVED_AT, _NESTED_AT = 11, 7, 3
_TIMED, _TIMED_ONE_IN = 1, 4
_BY_TIME, _BY_TIME_ONE_IN, _TIME_FILTERS, _OFTEN_S = 3, 8, get_args(TimeFilter), 30.0
_EXPIRING, _EXPIRING_ONE_IN = 4, 3
_JOINED, _JOINED_ONE_IN, _JOIN_KINDS = 2, 6, get_args(JoinKind)
_JOIN_ADDED, _TABLE = 0.5, 0.5
_ON_LANCE, _ON_LANCE_WITH_UPKEEP = 0.007, 0.03
_DURING_UPKEEP = 0.7
_COMMANDED, _FAILING, _PINNED = 0.4, 0.2, 0.5
_NUMBERS_OF_FETCHERS = (1, 1, 2, 3, 4, 7, 16)
_FETCHERS_NAMED = 6
_NOBODY_DIES = 0.5
_MOST_KILLERS = 2
_AT_ROOT = ("commit", "view", "restore", "tag", "vacuum", "stage")


class RandomStory:
    """Makes a scenario.

    Args:
        random: makes every choice; the same one makes the same scenario.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._killers = 0
        self._named: list[str] = []

    def scenario(self) -> Scenario:
        """A pipeline, a few files, and up to three misfortunes; a few of them on Lance, too."""
        scenario = self._scenario()
        if self._random.random() < _SHARDED:
            scenario = self._sharded(scenario)
        # Last of all: what comes before is the same with it and without.
        if self._random.random() < _STAGED:
            scenario = replace(scenario, stages_deltas=True)
        may_be_late = (scenario.stages_deltas or scenario.stores_rows) and "PIN(" not in repr(scenario.story)
        if may_be_late and self._random.random() < _LATE:
            scenario = self._late(scenario)
        if scenario.stores_rows and self._random.random() < _FULL:
            scenario = replace(scenario, full_view=True)
        on_lance = self._random.random() < (_ON_LANCE if scenario.keep_epochs is None else _ON_LANCE_WITH_UPKEEP)
        scenario = self._on_lance(scenario) if on_lance else scenario
        # No choice of `random`: all that it chooses later stays what it was before there were such views.
        chance = crc32(repr(scenario.story).encode()) % _DERIVED_ONE_IN
        scenario = replace(scenario, derived_view=chance == _DERIVED_AT, nested_view=chance == _NESTED_AT)
        chance = crc32(repr(scenario.story).encode(), _TIMED) % _TIMED_ONE_IN
        scenario = replace(
            scenario, lateness_us=None if chance else 25, closing=not chance and not scenario.stores_rows
        )
        kind, chance = divmod(crc32(repr(scenario.story).encode(), _BY_TIME), _BY_TIME_ONE_IN)
        if not chance:
            # Rows that leave each minute make an epoch each minute, and a long listing takes many minutes.
            kinds = _TIME_FILTERS if scenario.listing_s <= _OFTEN_S else _TIME_FILTERS[:1]
            scenario = replace(scenario, time_filter=kinds[kind % len(kinds)])
        kind, chance = divmod(crc32(repr(scenario.story).encode(), _EXPIRING), _EXPIRING_ONE_IN)
        is_apart = len(self._sources) > 1 and not scenario.stores_rows
        if is_apart and not chance and "DEATH(" not in repr(scenario.story):
            scenario = replace(scenario, lateness_us=25, expiring=_JOIN_KINDS[kind % len(_JOIN_KINDS)])
        kind, chance = divmod(crc32(repr(scenario.story).encode(), _JOINED), _JOINED_ONE_IN)
        # A large file and a join have very many pairs.
        if chance or "DEATH(" in repr(scenario.story):
            return scenario
        return self._joined(replace(scenario, join=_JOIN_KINDS[kind % len(_JOIN_KINDS)]))

    def _joined(self, scenario: Scenario) -> Scenario:
        """The same with another join that comes and goes, and with a static table as the right side of both."""
        random, steps = self._random, list(scenario.story)
        added = list[list[Step]]()
        if random.random() < _JOIN_ADDED:
            added += [[ADD_VIEW("joined")], *random.choice(([], [[DROP_VIEW("joined"), *self._wait()]]))]
        if scenario.on_change == "replace" and random.random() < _TABLE:
            table = f"{self._sources[-1]}/table"
            added += [[file(table, rows=random.choice((0, 2, 5, 8))), *self._wait()] for _ in range(3)]
        for each in added:
            at = random.randint(0, len(steps))
            steps[at:at] = each
        return replace(scenario, story=tuple(steps))

    def _scenario(self) -> Scenario:
        random, pick = self._random, self._random.choice
        # Upkeep and views that are created late are hard to bring together.
        keep_epochs = pick((1, 1, 2, 3)) if random.random() < 0.25 else None
        self._sources = ("s", "t") if random.random() < (0.2 if keep_epochs is None else 0.5) else ("s",)
        self._fetchers = pick((1, 2, 2, 2, 3))
        self._actors = (
            *(f"list-{source}" for source in self._sources),
            *(f"fetch-{index}" for index in range(self._fetchers)),
            DISPATCHER,
            MERGER,
            COORDINATOR,
            MATERIALIZER,
        )
        scenario = Scenario(
            tuple(self._story()),
            sources=self._sources,
            fetchers=self._fetchers,
            schema_known=random.random() < (0.7 if keep_epochs is None else 0.4),
            must_settle=random.random() < 0.1,
            listing_s=pick((2.0, 10.0, 30.0)),
            page_size=pick((1, 2, 3, 10)),
            piece_rows=pick((1, 2, 3, 5)),
            epoch_rows=pick((2, 5, 50)),
            credit_rows=pick((1, 3, 20)),
            concurrency=pick((1, 2, 4)),
            files_waiting=pick((1, 2, 8)),
            keep_epochs=keep_epochs,
            on_change=random.choice(("ignore", "ignore", "append")),
            clock_stands=random.random() < 0.15,
            slow=pick(self._actors) if random.random() < 0.3 else "",
            adds_columns=random.random() < 0.2,
            materialize=random.random() < (0.2 if keep_epochs is None else 0.5),
            backfill=random.random() < 0.4,
        )
        if scenario.materialize and random.random() < 0.5:
            scenario = replace(scenario, on_change="replace")
        if not scenario.must_settle and random.random() < 0.35:
            listing_s, loses = pick((60.0, 600.0)), random.random() < 0.3
            scenario = replace(scenario, notifications=True, listing_s=listing_s, loses_events=loses)
        if random.random() < 0.15:
            scenario = replace(scenario, order=pick(("name", "last_modified")))
        # Last of all: what comes before is the same with it and without.
        if random.random() < _RESCALED:
            scenario = self._rescaled(scenario)
        if scenario.backfill and random.random() < _BACKFILLED:
            scenario = self._backfilled(scenario)
        if random.random() < _DYING:
            scenario = self._dying(scenario)
        elif random.random() < _HIDDEN:
            scenario = self._hidden(scenario)
        if random.random() < _COMMANDED:
            scenario = self._commanded(scenario)
        elif scenario.on_change == "ignore" and random.random() < _FAILING:
            scenario = self._failing(scenario)
        # Readers and owners measure the lives of pins by clocks that nearly agree.
        is_steady = "CLOCK(" not in repr(scenario.story)
        has_readers = scenario.keep_epochs is not None and is_steady and random.random() < _PINNED
        return self._pinned(scenario) if has_readers else scenario

    def _pinned(self, scenario: Scenario) -> Scenario:
        """The same with readers that keep epochs."""
        random, steps = self._random, list(scenario.story)
        first = steps.index(START) + 1 if START in steps else 0
        for _ in range(random.choice((1, 2, 4))):
            reader = random.choice("pq")
            added = [*self._wait(), PIN(reader), *self._wait(), self._put(), *self._wait(), self._put()]
            added.append(random.choice((UNPIN(reader), KILL_READER(reader), TORN_PIN, SECONDS(150), BARRIER)))
            at = random.randint(first, len(steps))
            steps[at:at] = added
        return replace(scenario, story=tuple(steps))

    def _failing(self, scenario: Scenario) -> Scenario:
        """The same with a run that ends when a file has changed."""
        random, steps = self._random, list(scenario.story)
        if START not in steps:
            steps.append(START)
        for _ in range(random.choice((1, 1, 2))):
            path = random.choice(self._named)
            added = [file(path, rows=random.choice((1, 2, 5))), *self._wait(), *self._wait()]
            added += random.choice(([], [], [START], [ACCEPT, START]))
            at = random.randint(steps.index(START) + 1, len(steps))
            steps[at:at] = [*added, *self._wait()]
        return replace(scenario, story=tuple(steps), on_change="fail")

    def _commanded(self, scenario: Scenario) -> Scenario:
        """The same with commands of users, and views that come and go."""
        random, steps = self._random, list(scenario.story)
        if START not in steps:
            steps.append(START)
        corrects = random.random() < 0.5
        kinds = [self._flow_command, self._root_command, self._view_change]
        if scenario.order is None:
            # A file that is read again is read out of its order.
            kinds += [self._retry] * 2 + ([self._correction] * 2 if corrects else [])
            scenario = replace(scenario, materialize=scenario.materialize or (corrects and random.random() < 0.9))
        for _ in range(random.choice((1, 2, 3, 5))):
            added = [*random.choice(kinds)(), *self._wait()]
            if not self._killers and random.random() < 0.25:
                added += [*self._crash(), *self._wait()]
            at = random.randint(steps.index(START) + 1, len(steps))
            steps[at:at] = added
        return replace(scenario, story=tuple(steps))

    def _retry(self) -> list[Step]:
        """A file that cannot be read, or not yet, and its retry."""
        random, path = self._random, self._path()
        self._named.append(path)
        rows = random.choice((1, 2, 5))
        added = [file(path, rows=rows, bad_row=random.randrange(rows)), *self._wait(), *self._wait()]
        added += [mend(path)] if random.random() < 0.7 else []
        whole = RetryCommand() if random.random() < 0.5 else RetryCommand(file=path.rpartition("/")[2])
        added += [ASK(whole)] * random.choice((1, 1, 2))
        return added

    def _correction(self) -> list[Step]:
        """A file is forgotten or read again, or one after the other."""
        random = self._random
        added: list[Step] = []
        path = random.choice(self._named).rpartition("/")[2]
        for _ in range(random.choice((1, 1, 2))):
            kind = random.choice((ForgetCommand, ReingestCommand))
            added += [*self._wait(), ASK(kind(file=path))]
        return added

    def _flow_command(self) -> list[Step]:
        """A pause, a throttle, another number of fetch actors, or a stop."""
        random = self._random
        kind = random.random()
        if kind < 0.4:
            return [ASK(Pause()), *self._wait(), *self._crash_sometimes(), self._put(), *self._wait(), ASK(Resume())]
        if kind < 0.6:
            rate = random.choice((1.0, 10.0))
            throttle = random.choice((Throttle(files_per_second=rate), Throttle(rows_per_second=rate)))
            return [ASK(throttle), self._put(), *self._wait(), ASK(Throttle())]
        if kind < 0.85:
            fewest = random.choice((1, 2, 4))
            return [ASK(RescaleCommand(fewest=fewest, most=fewest + random.choice((0, 0, 2)))), self._put()]
        return [ASK(StopCommand()), *self._wait(), STOPPED, START]

    def _crash_sometimes(self) -> list[Step]:
        return self._crash() if not self._killers and self._random.random() < 0.3 else []

    def _root_command(self) -> list[Step]:
        """A tag, a vacuum, or the end of bad records."""
        random = self._random
        name = random.choice("xy")
        kind = random.random()
        if kind < 0.5:
            return [TAG(name), *self._wait(), *self._crash_sometimes(), *self._wait()]
        if kind < 0.65:
            return [ASK(TagCommand(name=name, epoch=None))]
        if kind < 0.8:
            return [ASK(VacuumCommand())]
        return [ASK(AllowRemovalsCommand())]

    def _view_change(self) -> list[Step]:
        """A view is added or dropped, or one after the other."""
        random = self._random
        added: list[Step] = []
        for _ in range(random.choice((1, 2, 2, 3))):
            change = random.choice((ADD_VIEW, DROP_VIEW))
            added += [change(random.choice(("extra", "more", "groups"))), *self._wait()]
        return added

    def _on_lance(self, scenario: Scenario) -> Scenario:
        """The same with a twin in Lance, and with so many epochs that it folds and merges."""
        self._killers = _MOST_KILLERS
        added = [step for _ in range(self._random.randint(3, 8)) for step in (self._put(), self._put(), BARRIER)]
        if self._random.random() < _DURING_UPKEEP:
            at = self._random.randint(0, len(added))
            moment = self._random.choice(
                ("before fold", "after fold", "before commit", "before vacuum", "after vacuum")
            )
            added[at:at] = [AT(moment, self._random.choice((KILL, FREEZE)))]
            added.insert(self._random.randint(at + 1, len(added)), START)
        started = () if START in scenario.story else (START,)
        stages = scenario.stages_deltas or self._random.random() < 0.5
        return replace(scenario, story=(*scenario.story, *started, *added), stages_deltas=stages, on_lance=True)

    def _late(self, scenario: Scenario) -> Scenario:
        """The same with rows that wait for their commit so long that a clean-up may delete them."""
        self._killers = _MOST_KILLERS
        started = () if START in scenario.story else (START,)
        moment = self._random.choice(("after stage", "before view", "before commit", "before vacuum", "before vacuum"))
        added = [step for _ in range(self._random.randint(2, 5)) for step in (self._put(), EVENTS(20))]
        story = (*scenario.story, *started, AT(moment, CLOCK(_LATE_S)), *added)
        # Short epochs: while a vacuum deletes, rows of the next epoch are staged.
        return replace(scenario, story=story, keep_epochs=1, epoch_rows=2, credit_rows=3)

    def _sharded(self, scenario: Scenario) -> Scenario:
        """The same with two to four name actors, which may die."""
        random, steps = self._random, list(scenario.story)
        count = random.choice((2, 2, 3, 4))
        first = steps.index(START) + 1 if START in steps else 0
        for _ in range(0 if self._killers else random.choice((0, 1, 1, 2))):
            name = f"names-{random.choice(self._sources)}-{random.randrange(count)}"
            death = random.choice((CRASH(name), AT(f"{name} collects", CRASH(name))))
            at = random.randint(first, len(steps))
            steps[at:at] = [*self._wait(), death, *self._wait()]
        slow = f"names-{self._sources[0]}-0" if random.random() < 0.1 else scenario.slow
        return replace(scenario, story=tuple(steps), name_actors=count, slow=slow)

    def _hidden(self, scenario: Scenario) -> Scenario:
        """The same with listings that lack files which are there, and with removals that pause more often.

        One listing may lack what it likes.  If several may do so, every removal waits for the user, or all files are
        lacking.
        """
        random, steps = self._random, list(scenario.story)
        some = tuple(sorted(random.sample(_PATHS, random.randint(1, 4))))
        if scenario.on_change != "replace":
            added = [hide(*random.choice(((), some)))]
        elif random.random() < 0.5:
            scenario = replace(scenario, max_removed_share=0.0, max_removed_files=0)
            added = [hide(*random.choice(((), some)), listings=random.choice((1, 2, 3, 6)))]
        elif scenario.notifications:
            # A file that an event names is known, and no listing has shown it: not all files are lacking.
            scenario = replace(scenario, max_removed_share=random.choice((0.2, 0.5)), max_removed_files=0)
            added = [hide(*random.choice(((), some)))]
        else:
            added = [hide(listings=random.choice((1, 2, 3, 6)))]
        first = steps.index(START) + 1 if START in steps else 0
        at = random.randint(first, len(steps))
        steps[at:at] = [*added, *self._wait(), SECONDS(2.5 * scenario.listing_s)]
        return replace(scenario, story=tuple(steps))

    def _backfilled(self, scenario: Scenario) -> Scenario:
        """The same with a process that declares the further view, and ends while that gets its history."""
        random, steps = self._random, list(scenario.story)
        deaths = CRASH(MATERIALIZER), CRASH(COORDINATOR), AT("after view", KILL), AT("before commit", KILL)
        ends = [*([death] for death in deaths), [STOP, STOPPED]]
        added = [BARRIER, START]
        for _ in range(random.choice((0, 1, 1, 2))):
            added += [*[BARRIER] * random.choice((1, 1, 2)), *random.choice(ends)]
            added += [*self._wait(), *(self._put() for _ in range(random.choice((0, 0, 1)))), START]
        at = random.randint(steps.index(START) + 1 if START in steps else len(steps), len(steps))
        steps[at:at] = added
        return replace(scenario, story=tuple(steps))

    def _dying(self, scenario: Scenario) -> Scenario:
        """The same with a large file, and with deaths of actors and nodes, or a file that kills and deaths of nodes.

        Deaths of actors that a file has no part in, and a file that kills, together accuse the wrong one.
        """
        random, steps = self._random, [step for step in scenario.story if not _is_death(step)]
        large = f"{self._sources[0]}/large" if len(self._sources) > 1 else "large"
        added = [file(large, rows=random.choice((20, 40, 60)))]
        has_killer = self._killers > 0
        if random.random() < 0.4 and self._killers < _MOST_KILLERS:
            has_killer = True
            rows = random.choice((2, 5, 12))
            kills, kill_row = random.choice(("fetch", "spark")), random.randrange(rows)
            added.append(file(self._path(), rows=rows, kills=kills, kill_row=kill_row))
        random.shuffle(added)
        losses = 1.0 if has_killer else random.choice((0.0, 0.5, 1.0))
        if not has_killer:
            # Without rows between them, so that the next attempts are careful.
            added += [ROWS, self._death_of_reader(), RECOVERED, self._death_of_reader(), RECOVERED]
        for _ in range(random.choice((4, 8))):
            if random.random() < losses:
                added += [EVENTS(random.choice((5, 10, 20))), self._loss_of_node(), RECOVERED]
            else:
                added += [ROWS, self._death_of_reader(), RECOVERED]
        # Files from before are done: deaths may come three times without rows of one that waits beside the large one.
        at = steps.index(START) + 1 if START in steps else len(steps)
        steps[at:at] = [*(() if START in steps else (START,)), CAUGHT_UP, *added]
        return replace(
            scenario,
            story=tuple(steps),
            epoch_rows=random.choice((2, 5)),
            credit_rows=3,
            piece_rows=random.choice((1, 3)),
        )

    def _loss_of_node(self) -> Step:
        random = self._random
        return NODE(*random.sample((*self._fetch_actors, DISPATCHER, MERGER, COORDINATOR), random.randint(1, 3)))

    def _death_of_reader(self) -> Step:
        """The death of an actor that a file could have killed."""
        return DEATH(self._random.choice((*self._fetch_actors, COORDINATOR, MATERIALIZER)))

    @property
    def _fetch_actors(self) -> list[str]:
        return [f"fetch-{index}" for index in range(self._fetchers)]

    def _rescaled(self, scenario: Scenario) -> Scenario:
        """The same with more files, and other numbers of fetch actors on the way, some of which die of it."""
        random, steps = self._random, list(scenario.story)
        # A file that kills, and deaths that it has no part in: together they accuse the wrong one.
        may_die, self._killers = not self._killers, _MOST_KILLERS
        first = steps.index(START) + 1 if START in steps else 0
        for _ in range(random.choice((1, 2, 2, 3))):
            added = [self._put() for _ in range(random.choice((0, 2, 4)))]
            if random.random() < 0.7:
                added.append(EVENTS(random.choice((5, 10, 20, 30, 50, 80))))
            fetcher = f"fetch-{random.randrange(_FETCHERS_NAMED)}"
            kind = random.random() if may_die else _NOBODY_DIES
            if kind < 0.15:
                added.append(AT(f"{fetcher} {random.choice(('hands over', 'collects'))}", self._death(fetcher)))
            added.append(RESCALE(random.choice(_NUMBERS_OF_FETCHERS)))
            if 0.15 < kind < 0.35:
                added += [EVENTS(random.choice((2, 5, 10, 20, 40))), self._death(fetcher)]
            elif kind < 0.8:
                added += [*(self._put() for _ in range(random.choice((0, 0, 1, 2)))), *self._wait()]
            at = random.randint(first, len(steps))
            steps[at:at] = added
        return replace(
            scenario,
            story=tuple(steps),
            patience_s=random.choice((10.0, 10.0, 0.5, 0.0, 0.0)),
            slow=scenario.slow or random.choice(("", "", "fetch-0", "fetch-1")),
        )

    def _death(self, fetcher: str) -> Step:
        return CRASH(self._random.choice((fetcher, fetcher, "fetch-0", DISPATCHER, MERGER, COORDINATOR)))

    def _story(self) -> list[Step]:
        random = self._random
        story = [self._put() for _ in range(random.randint(1, 4))]
        if random.random() < 0.9:
            story.append(START)
        for _ in range(random.choice((0, 1, 1, 1, 2))):
            story += [*self._wait(), *self._news(), *self._misfortune()]
        return [*story, *self._wait(), *self._news()]

    def _put(self) -> Step:
        random, path = self._random, self._path()
        self._named.append(path)
        rows = random.choice((0, 1, 2, 3, 5, 8))
        if random.random() < 0.08:
            return file(path, rows=rows, bad_row=random.randint(0, rows))
        if rows and random.random() < 0.15:
            return file(path, rows=rows, bad=sorted(random.sample(range(rows), random.randint(1, min(3, rows)))))
        if random.random() < 0.04 and self._killers < _MOST_KILLERS and rows:
            self._killers += 1
            return file(path, rows=rows, kills=random.choice(("fetch", "spark")))
        return file(path, rows=rows)

    def _path(self) -> str:
        if self._named and self._random.random() < 0.3:
            return self._random.choice(self._named)
        name = self._random.choice(_PATHS)
        return name if len(self._sources) == 1 else f"{self._random.choice(self._sources)}/{name}"

    def _wait(self) -> list[Step]:
        random = self._random
        kind = random.random()
        if kind < 0.15:
            return []
        if kind < 0.3:
            return [BARRIER]
        if kind < 0.35:
            return [SECONDS(random.choice((0.5, 2, 5)))]
        if kind < 0.45:
            return [CAUGHT_UP]
        return [EVENTS(random.choice((5, 10, 20, 40, 80)))]

    def _news(self) -> list[Step]:
        """What happens to the bucket."""
        random = self._random
        kind = random.random()
        if kind < 0.4:
            return [self._put()]
        if kind < 0.48:
            return [vanish(random.choice(self._named))]
        if kind < 0.5:
            return [back(random.choice(self._named))]
        if kind < 0.6:
            path = random.choice(self._named)
            return [vanish(path), *self._wait(), *self._crash(), back(path)]
        if kind < 0.65:
            return [refuse(random.choice((1, 2, 6)))]
        return []

    def _misfortune(self) -> list[Step]:
        random = self._random
        kind = random.random()
        if kind < 0.35:
            return self._crash()
        if kind < 0.5:
            return [self._sometime(KILL), *self._wait(), START]
        if kind < 0.62:
            return [self._sometime(FREEZE), *self._wait(), START, *self._wait(), THAW]
        if kind < 0.67:
            return [START]
        if kind < 0.79:
            silence = [SILENCE(random.randint(1, 3))] if random.random() < 0.4 else []
            return [COMMIT(random.choice(("lost", "unanswered", "late"))), *silence]
        if kind < 0.84:
            return [VIEW_COMMIT(random.choice(("lost", "unanswered")))]
        if kind < 0.88:
            return [SILENCE(random.randint(1, 3))]
        if kind < 0.91:
            return [CLOCK(random.choice((-3600, 3600)))]
        if kind < 0.96:
            return [PAUSE, *self._wait(), *self._misfortune(), RESUME]
        return [STOP, *self._wait(), *self._misfortune(), STOPPED]

    def _crash(self) -> list[Step]:
        return [self._sometime(CRASH(self._random.choice(self._actors)))]

    def _sometime(self, step: Step) -> Step:
        """At once, or in the middle of something."""
        random = self._random
        kind = random.random()
        if kind < 0.45:
            return step
        if kind < 0.8:
            return AT(f"{random.choice(('before', 'after'))} {random.choice(_AT_ROOT)}", step)
        if kind < 0.85:
            return AT("before read", step)
        return AT(f"{random.choice(self._actors)} collects", step)


def _is_death(step: Step) -> bool:
    """True for a death that does not ask whether rows were committed since the last one."""
    return "CRASH(" in repr(step)
