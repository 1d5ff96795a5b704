"""Shells: they perform the instructions of executors, on Ray and in the simulator alike.

    messages, timers, answers ──► shell ──► executor ──► instructions ──► shell.perform ──► Runtime, collaborators

An executor computes and returns instructions.  Its shell performs them: it sends envelopes, sets timers, reads pages
and files, and brings each answer back to the executor as the next event.  A shell is written once.  Its `Runtime`
reaches the world: Ray and asyncio in production (`actors/hosting`), events of a schedule in the simulator.  Its
collaborators (pages of a listing, files, blocks, a queue of events, the root) are passed in.

    runtime.py            Runtime, Actor, Event, Timer      the world as a shell sees it
    shell.py              Shell                             one guard, timers, work in the background
    actor_shell.py        ActorShell                        edges, reports, staging; the flow's instructions
    exchange_shells.py    DispatcherShell, MergerShell
    list_shell.py         ListShell
    name_shell.py         NameShell
    fetch_shell.py        FetchShell
    coordinator_shell.py  CoordinatorShell                  one attempt: commits, tags, watches
    actor_group.py        ActorGroup                        the actors of one attempt, connected
    owned_store.py        OwnedStore                        one change of the store at a time, upkeep between two

Invariants:

* No module here imports Ray, asyncio, threads or Lance.
* A handler is never interrupted except where it awaits.
* Every handler, timer and piece of work runs in the shell's guard: an error ends the actor or the attempt.
* A shell that misses an instruction of its step is an error of mypy.
"""
