"""Protocol: the values that actors exchange, and their base classes.

    Message        from actor to actor      messages.py, barrier.py, blocks.py
    Instruction    from executor to shell   instructions.py; a step declares its own beside its executor
    Report         to the coordinator       reports.py
    Counters       of an actor              counters.py, with the description of each
    RunState       to the run's process     run_state.py

`vnode_mapping.py` is the mapping of vnodes to fetch actors that several of them carry.

Invariants: all values are frozen.  They hold no handle of Ray except where a field says so.  Rows travel as references,
never inside.

Face: everything.
"""
