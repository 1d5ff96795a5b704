"""Checks of what a run changes outside its root: files of users, and tables that follow views.

    each version of the store ──► PublicationChecker: the rows of the published views
                             └──► KeptFileChecker: the time at which each file was finished
    each commit of a table ─────► PublicationChecker ◄── the last commits ── KeptFileChecker
    each request to remove a file ──────────────────────────────────────────────┘

Invariants: a file is checked when the request is sent, since nobody can call it back; the bucket compares its version
when the request arrives.

Face: `kept_file_checker.KeptFileChecker` (promise `kept`), `publication_checker.PublicationChecker` (`published`).
"""
