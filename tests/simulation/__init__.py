"""The simulator: production's executors and shells, in a world that is made of events.

                 Scenario (a story, and settings)          a seed
                           └────────────► Simulation ◄───────┘
                                              │ turns: a step of the story, or an event of the schedule
       ┌──────────────────────────────────────┴──────────────────────────────────────┐
    Bucket ◄── SimulatedProcess ── SimulatedAttempt ── shells on SimulatedRuntime ──► SimulatedRoot ──► MemoryDisk
    files, 503   RecoveryPolicy     one coordinator     messages out of order         lost, late, unanswered │
                                                                                      Promises ◄─────────────┘

Simulated: Ray (`hosting/simulated_runtime.py`), Spark (`model_views/model_materializer.py`), the bucket, the disk, the
clock, and the process around an attempt.  Real: every executor and every shell of `actors`, both ends of every edge,
recovery, the policy after a failure, the commit protocol, upkeep, deltas, the tables, the materializer's loop,
backfills, commands with their loop, the work on files after the commit, and the loops of publications.

Invariants:

* One seed is one story and one order of events: no clock, no hash order, no thread decides anything.  A call that
  waits has a thread, and one thread runs at a time.
* Everything that may happen next is an event; chance picks one.  Time passes when nothing is under way, and seldom
  before.
* A crash can come between any two events, at every `await` of a shell, between an actor's report and its passing the
  barrier on, and between any two operations on the root.  Messages that were sent before may still arrive.
* An error that shows a bug ends the story, in whatever guard it is caught.
* The promises are checked on the disk, at every version of the store; reports of runs are compared with it.
* At the end of a story its faults end, and then the pipeline must catch up and stop, in bounded time.

    simulation.py, campaign.py, shrink.py, __main__.py    one seed, many seeds, the shortest story that fails
    stories/                                              the words of a story, and stories made out of seeds
    world/                                                bucket, queue, root, clock, schedule
    branching/                                            branches as roots of their own, and their merges
    hosting/                                              the process, its attempts, and the actors of one attempt
    model_views/                                          models of the views, and the materializer over them
    promises/                                             the checks of G1 to G6
    memory/                                               the store and its root in memory
    twin/                                                 the store on Lance, beside the one in memory

Tests: `test_<module>.py` is in the folder of its module.  Stories and random seeds are at the top: `test_stories.py`,
`test_after_commit_stories.py`, `test_replaced_stories.py`, `test_simulation.py`.
"""
