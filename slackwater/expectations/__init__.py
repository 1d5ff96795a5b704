"""Expectations of views: the rows that violate them, counted with each epoch, and the gate that they close.

    two versions of a view ──► VersionRows ──► RowConditions of Spark ──┐
                       └─────► ViewFacts: number of rows, newest time ──┴─► ViewExpectations, in the commit of the epoch

Invariants:

* The counts cover all rows of the view at the epoch; the cost depends on the rows that its change wrote.
* Only a release accepts a row.  One that leaves counts as accepted if nobody knows: the gate errs on its closed side.
* The epoch, the counts and the tag `published` are one commit.

Face: `expectation_counts.ExpectationCounts`; a `release.Release` outlives it.
"""
