"""Exchange: the edges between the steps, and the two steps that split and join them.

    list actors ──► DispatchExecutor ──► fetch actors ──► MergeExecutor ──► materializer
                    by vnode of path                      by epoch

`edge.py` has the two ends of every edge: the sender numbers messages and takes credit, the receiver puts messages in
order.  `BarrierAligner` reads the inputs of both steps.

Invariants:

* Messages of an edge are taken in the order of their numbers, each once.
* A barrier passes when it has come on all inputs, and no message crosses it; barriers need no credit.
* A file is sent to the owner of its vnode.  Owners change exactly at a barrier.
* The credit of a block is taken when it is emitted and given back when Spark has released its epoch.

Face: `Outlet` and `Inlet` for the shells; `DispatchExecutor`, `MergeExecutor` and its instructions for their hosts.
"""
