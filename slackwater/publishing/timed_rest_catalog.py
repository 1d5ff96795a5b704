"""REST catalog of Iceberg whose requests end.

PyIceberg 0.12 sets no time-out: a server or a load balancer that drops a connection without a word would stop a
publication, or the start of a run, for ever.
"""

from __future__ import annotations

from functools import partial

from pyiceberg.catalog.rest import RestCatalog
from requests import Session

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0


class TimedRestCatalog(RestCatalog):
    """A REST catalog whose requests raise an OSError if the server does not answer.

    A commit without an answer may be carried out all the same: the table is read again before the next commit.
    """

    def _config_headers(self, session: Session) -> None:
        """Prepares a session.  PyIceberg calls it before the session sends its first request."""
        super()._config_headers(session)
        request = partial(session.request, timeout=(CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S))
        session.request = request  # type: ignore[method-assign]
