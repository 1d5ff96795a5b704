"""The fast start of Ray: all uses of Ray's private parts, behind one switch.

    choice           decides between the fast and the plain start, by the settings and by the installed versions
    fast_ray         starts a Ray, and joins a Ray; the workers of a run are forks
    lean_node        Ray's node without needless processes, which waits for no agent; `late_agent` stands in for one
    resting_ray      settings with which a Ray rests while its run does
    fork_server      forks the workers of a run on this node; `forked_worker` is the program that requests a fork
    private_parts    facts of Ray that no public function returns

`actors.hosting.ray_session` has the plain start, by Ray's public functions alone.  `spark_bridge.engine.fast_start` is
the same room for Spark, where also the switch `SparkSettings(fast_start=False)` is evaluated.

Invariants: no other module imports a private module of Ray, or replaces a function of Ray; with the plain start only
`choice` is loaded.
"""
