"""Promises: the checks of a simulated store at each of its versions, against the bucket and models of the views.

    each version of the store ──► Promises
        epoch_checker.py          EpochChecker         terms, epochs, their records and retention           G2 G3 G5
               │ the new epoch record
        quarantine_checker.py     QuarantineChecker    bad records                                          G6
        command_checker.py        CommandChecker       the effects of commands, and their answers              G1 G3 G4
        transition_checker.py     TransitionChecker    ledger and queue, compared with the last version     G3 G4
        removal_checker.py        RemovalChecker       files that count as deleted, against the bucket          G4
        change_checker.py         ChangeChecker        files that must not change                               G4
        file_checker.py           FileChecker          ledger, queue and `seen`                             G1 G4
        reading_order_checker.py  ReadingOrderChecker  the files of sources with an order                   order
        watermark_checker.py      WatermarkChecker     the watermarks of sources with an event time          time
               │ the ingested rows of each file
        view_checker.py           ViewChecker          views, backfills, stored rows, tags                  G1 G2 G3
        closing_checker.py        ClosingChecker       windows that close, and late rows                    time G1
        expiry_checker.py         ExpiryChecker        joins whose rows expire                              time G1
        gate_checker.py           GateChecker          expectations, releases, and the tag that follows     gate
    each report of a run ───────► Promises
        run_checker.py            RunChecker           its state and totals, caught up, deleted messages    G3 G4 G6
    each write of `owner.json`
        owner_checker.py          OwnerChecker         one owner after the other, each by right             G5 owner

    backfill_history.py                 history_of: the rows that were ingested before a backfill
    backlog.py                          Backlog: differences between bucket and store, for the end of a story

The ids of the promises stand in `docs/design/simulation.md`.

Invariants: each version of the store is checked once; a report of a run is compared with the store.  The state of a
checker is private; data flows from epochs to files to views, as arguments.

Face: `Promises`, `Backlog`, `history_of`.
"""
