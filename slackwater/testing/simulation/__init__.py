"""The simulator: everything that decides runs as in production, and everything around it is made of events.

                 Scenario (a story, and settings)          a seed
                           └────────────► Simulation ◄───────┘
                                              │ turns: a step of the story, or an event of the schedule
       ┌──────────────────────────────────────┴──────────────────────────────────────┐
    Bucket ◄── SimulatedProcess ── SimulatedAttempt ── hosts of the executors ──► SimulatedRoot ──► MemoryDisk
    files, 503   RecoveryPolicy     recover(), edges    messages out of order       lost, late, unanswered │
                                                                                    Promises ◄─────────────┘

What is simulated: Ray (`host.py` and the hosts), Spark (`materializer.py`), the bucket, the disk, the clock, and the
process around an attempt.  What is real: every executor, both ends of every edge, recovery, what follows a failure, the
commit protocol, deltas, and the tables.

Invariants:

* One seed is one story and one order of events: no clock, no hash order, no thread decides anything.
* Whatever may happen next is an event; chance picks one.  Time passes when nothing is under way, and seldom before.
* A crash can come between any two events, between an actor's report and its passing the barrier on, and between any
  two operations on the root.  What was sent before may still arrive.
* The promises are judged on the disk, at every version of the store, never on what anybody says; what somebody was
  told is compared with that.
* At the end of a story its faults end, and then the pipeline must catch up and stop, in bounded time.

    steps.py            the words of a story               scenario.py       a story with its settings
    simulation.py       tells a story: `simulate`          random_story.py   makes one out of a seed
    schedule.py         what may happen next               simulated_clock.py  time
    interruptions.py    what comes in between              world.py          everything, put together
    bucket.py           files that come and go             file_rows.py      rows that know where they come from
    event_queue.py      what a queue tells of them
    simulated_root.py   commits that are lost or late      model_view.py     views without Spark
    process.py          one attempt after the other        attempt.py        the actors of one attempt
    host.py, hosts.py   the actors of the flow             coordinator.py    the one that commits
    materializer.py     the one that writes views          promises.py       G1 to G5
    backfill.py        one that was declared late
    campaign.py         many seeds                         shrink.py         the shortest story that fails
    __main__.py         the command line
"""
