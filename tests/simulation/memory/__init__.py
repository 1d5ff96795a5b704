"""The store and its root in memory, for the simulator and for tests.

A `MemoryDisk` survives its handles, as a disk survives a process; `MemoryStateStore` and `MemoryRoot` are the handles.
They keep the contracts of `state.store`, and the same tests check them and the store on Lance.  `FileTables` has the
rows about files at one version of a disk.

Face: `memory_root.MemoryRoot`, `memory_disk.MemoryDisk`, `file_tables.FileTables`.
"""
