"""Age of staged rows: a commit refuses rows that are too old.

Lance's clean-up deletes files that no version names when they are seven days old.  So a commit refuses rows that were
staged six days ago, as by a machine that was frozen meanwhile: their files may go at any moment.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from state.errors import CommitRefusedError

CLEAN_UP_AGE = timedelta(days=7)
_MOST_AGE = timedelta(days=6)


def require_fresh(staged_at: datetime, now: datetime) -> None:
    """Refuses staged rows whose files may be deleted.

    Args:
        staged_at: the time of their staging.
        now: the present time; it may differ by a day from the clock of the staging process.

    Raises:
        CommitRefusedError: they are too old.
    """
    age = now - staged_at
    if age > _MOST_AGE:
        raise CommitRefusedError(
            f"rows that were staged at {staged_at:%Y-%m-%d %H:%M} UTC, {age / timedelta(days=1):.1f} days ago: "
            f"Lance deletes files without a commit after {CLEAN_UP_AGE.days} days; recover from the committed state"
        )
