"""What is wrong with a machine, an installation or a store, found before a run finds it.

Data flow: `checks_for` (what is asked about: a root, an application) → each `Check` gives `Finding`s → `examine` runs
them side by side, and gives their findings in the order of the checks.

Invariants:

* A finding that is not `ok` says what to do.
* Examining never fails: a check that does is a finding itself.
* Nothing is left behind: the one object that is written to a root, to see whether conditional writes work, is deleted.
* No secret is in a finding.
* What may hang, or end its process, runs in a process of its own, with a limit of time: Ray and Spark.

    examination.py   examine, and which checks there are
    finding.py       Finding, State; check.py: the protocol
    packages.py      Python and the packages: versions, and whether their modules are theirs
    java.py          Java
    machine.py       memory, shared memory, open files
    disk_space.py    room for temporary files, for Ray's, for a root on a disk
    ray_cluster.py   Ray, by ray_probe.py; local_spark.py: Spark, by spark_probe.py; probe.py: such a process
    store_access.py  a root: listing, reading, conditional writes, the clock
    source_access.py a source: listing, reading, its queue
    storage_error.py what to do about an error of a store
"""
