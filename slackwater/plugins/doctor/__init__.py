"""`slackwater doctor`: faults of a machine, an installation, a root or a source, found before a run finds them.

    checks_for(root, pipeline) ──► Check ... ──► examine: side by side ──► Finding ..., in the order of the checks

Invariants:

* A finding that is not `ok` says what to do (`remedy`).
* An examination never fails: an error of a check is a finding of this check.
* Nothing is left behind: the one object that is written to a root, to test conditional writes, is deleted.
* No finding contains a secret.
* Ray and Spark, which may hang or end their process, are tried in a child process with a time limit (`probe`).

Face: `examination.checks_for` and `examination.examine`; `finding.Finding`.
"""
