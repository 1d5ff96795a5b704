"""Notifications: a queue of events of a bucket, from a message to the paths that the list step looks at.

    SQS ──MessageQueue──► QueueMessage ──EventWatch──► LookAt(paths) ──► on_looked ──► settle(path, epoch)
                                         EventFeed        messages to delete ◄── MessageTracker ◄── on_committed

An event is a hint, and the bucket is the truth: `bucket_event` reads the name of an object from a message, and the
state of the object in the bucket counts.

Invariants:

* A message is deleted when every path that it names is in a committed epoch, and never before.
* A look settles the messages that came before it began, and none that came later.
* One look is under way at a time; a path that was handed on meanwhile is looked at again.
* A message that no bucket writes is quarantined, and deleted with the commit of that epoch.
* Each queue has one reader: its root is written into a tag of the queue.

Face: `EventWatch` with `EventFeed` for the list step, its `instructions` for a shell, `MessageQueue` for a shell and
for the doctor, `QueueMessage` and `QueueDepth`.
"""
