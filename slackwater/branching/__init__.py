"""Branches: a root that begins with the files of an epoch of another root, without a copy.

Data flow:

    branch ──► a tag in the root, by its owner ──► manifests that name its files ──► the store of the branch
    Pipeline(root=<branch>).run: views are added, changed, kept up to date, as on any root
    Store.diff: a view of the root beside that of the branch
    merge ──► the same files in both ledgers? ──► copies of the views' datasets ──► one commit at the root
    drop_branch ──► the files of the branch ──► the tag

Invariants:

* The root keeps an epoch before a file of it is referred to, and for as long as one may be.
* A branch opens only when it is whole; every step before may be repeated.
* A merge is one commit, and changes nothing of the branch.

Face: `branch.branch`, `branch.drop_branch`, `merge.merge`; `branch_steps` and `merge_steps` have the order of their
steps.
"""
