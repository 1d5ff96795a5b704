"""The flow of a pipeline: from names in a bucket to epochs of rows, cut by barriers.

                    barriers (epoch, mutation, list budget)
      Coordinator ──────────────┬─────────────────────────────────────────────┐
          ▲                     ▼                                             │ grants
          │                 ListActor ──► DispatcherActor ──► FetchActor × N ──► MergerActor ──► materializer
          │                 new files     by vnode of path    blocks of rows     one epoch        (its process)
          └── collect(epoch, delta) from every actor, and from the materializer ◄─────────────────────┘

An *executor* decides: a plain class without Ray, event loop, clock or chance.  Messages go in, instructions come out.
A *shell* hosts each executor, on Ray or in the simulator: it orders the messages, performs the instructions, and reads
the clock.

Invariants:

* An executor seals its epoch, reports it, and only then passes the barrier on; each barrier once.
* A file is marked as seen, and queued by its fetch actor, in one epoch: a crash forgets both or neither.
* The offset of a file moves when its rows are emitted, never when they are read.  Rows that were not emitted before a
  barrier belong to a later epoch.
* The rows of a file that replaces another come in the epoch of its end, behind all other rows of that epoch; no other
  row of the same object comes in it.
* The stored rows of a block are durable before the block arrives at the merger, and the two travel together.
* Every edge numbers its messages; the receiver puts them in order.  Rows travel as references, inside of messages.
* Names are limited by the list budget of each barrier, rows by credit in bytes; barriers by neither.
* The owner of a vnode changes at one barrier.  The next owner takes nothing behind that barrier before the handover of
  the one before.
* Epochs are committed strictly in their order, by the coordinator alone.
* Handles belong to one attempt: an old attempt cannot write into a new one.
* An epoch in flight that makes no progress fails its attempt, with the names of the actors that have not reported it.

The rooms, from the top down; a room imports only rooms below it:

    hosting          Ray: the runtime of the shells, the actors, and the handle of a run
    shells           a shell for each executor, over a `Runtime`: Ray's or the simulator's
    coordination     barriers, epochs, commits, schemas, the number of fetch actors
    recovery         the beginning of an attempt, and the policy after a failure
    listing          new, changed and missing names
    names            the names that were handed on, in one index or in shards
    fetching         reading, buffering and emitting of files
    notifications    names from a queue of events
    exchange         edges between the actors: order, credit, alignment of barriers
    reading          one file, piece by piece
    protocol         messages, instructions and reports of all executors
    sources          the declaration of a pipeline
    formats          files to rows
    objects          the object store: listings and ranges
    schemas          types that survive the way to Spark
    telemetry        logs, metrics, text for people

Beside them: `files.py` (objects and versions), `rows.py`, `file_errors.py` and `settings.py`.
"""
