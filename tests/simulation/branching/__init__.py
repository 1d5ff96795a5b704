"""Branches of a root: users make, merge and drop them, by the steps of production, while runs go on in both.

    branches.py        Branches          all branches of a root, and the users at work on them
    branch_files.py    SimulatedBranch   the files of one branch, and the world of its own root
    merging.py         SimulatedMerge    a user merges, as the owner of the root
    merge_checker.py   check_merge       the result of a merge against both roots

Invariants: the bucket, the clock and the schedule are one for all roots of a story; each root has a disk, an owner,
readers, commands and promises of its own.

Face: `Branches`.
"""
