"""Front of the endpoint: sessions in worker processes, and limits that hold even if a worker is hostile.

    client ──► SqlServer ──► Conversation ──► RemoteSession ──frames──► worker (`slackwater.plugins.serve.worker`)
                               deadlines         │
                                                 └── Worker in a WorkerPool: memory, death, replacement

Invariants:

* The front relays messages of PostgreSQL's protocol. It neither parses nor runs SQL.
* A session stays in its worker. When a worker ends, its sessions end with an error, and a spare worker takes its place.
* A statement has one group of messages and one part of its answers on the way, so a slow client holds no memory.
* Time counts while a part is awaited. Beyond the limit the statement is interrupted, and at 1.5 times the limit its
  worker is killed. A worker whose memory exceeds the limit by half is killed, too.

Face: `worker_pool.WorkerPool`, `conversation.Conversation`, `serving_limits.ServingLimits`.
"""
