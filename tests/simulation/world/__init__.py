"""World: a bucket, a queue of events, a disk and a clock in memory, and the schedule of everything that happens.

    Schedule: events, picked by chance ──► an action of one Life (process or actor), which may be killed or frozen
    Background: events beside them, by a chance of their own ──► Ownerships: `owner.json`, its claims and its renewals
    SimulatedThreads: calls that wait, one at a time; SimulatedInbox: the commands of users; Pins
    Surroundings: all that roots share
    Bucket · EventQueue · FileRows · SimulatedRoot (a store with faults) · SimulatedClock · Interruptions

Invariants: chance comes from the seed alone; time passes only by the schedule.

Face: every module; `simulated_world` builds a world for a scenario.
"""
