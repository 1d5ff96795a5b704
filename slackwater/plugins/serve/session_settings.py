"""Settings of a session: the settings that clients request, and the epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slackwater.plugins.serve.sql_error import TOO_MUCH, SqlError
from state.tables.expectations import PUBLISHED

EPOCH = "slackwater.epoch"
SERVER_VERSION = "16.0"
_MOST, _LONGEST = 100, 10_000
_REPORTED = {
    "server_version": "server_version",
    "server_encoding": "server_encoding",
    "client_encoding": "client_encoding",
    "application_name": "application_name",
    "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby",
    "is_superuser": "is_superuser",
    "session_authorization": "session_authorization",
    "datestyle": "DateStyle",
    "intervalstyle": "IntervalStyle",
    "timezone": "TimeZone",
    "integer_datetimes": "integer_datetimes",
    "standard_conforming_strings": "standard_conforming_strings",
}
_FIXED = {
    "server_version": SERVER_VERSION,
    "server_version_num": "160000",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "default_transaction_read_only": "on",
    "transaction_read_only": "on",
    "in_hot_standby": "off",
    "is_superuser": "off",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "transaction_isolation": "repeatable read",
    "default_transaction_isolation": "repeatable read",
    "search_path": "public",
    "max_index_keys": "32",
    "max_identifier_length": "63",
    "lc_collate": "C",
    "bytea_output": "hex",
}
"""Settings with one value here: another value has no effect, as the page for clients states."""


class SessionSettings:
    """The settings of one session.

    Args:
        startup: the parameters of the client's first message.

    Raises:
        SqlError: the encoding is not UTF-8.
    """

    def __init__(self, startup: Mapping[str, str]) -> None:
        self.user = startup.get("user") or "slackwater"
        self.database = startup.get("database") or self.user
        self._first = {
            **_FIXED,
            EPOCH: PUBLISHED,
            "application_name": startup.get("application_name", ""),
            "session_authorization": self.user,
            "extra_float_digits": "1",
        }
        self._values = dict(self._first)
        for _ in self.set("client_encoding", startup.get("client_encoding")):
            pass

    @property
    def epoch(self) -> str:
        """The epoch of the next statement or transaction: `published`, `latest`, or a fixed one."""
        return self._values[EPOCH]

    def get(self, name: str) -> str:
        """The value of a setting.

        Raises:
            SqlError: there is no such setting.
        """
        value = self._values.get(name.lower())
        if value is None:
            raise SqlError("42704", f"there is no setting {name!r}; SHOW ALL lists them")
        return value

    def set(self, name: str, value: str | None) -> Iterator[tuple[str, str]]:
        """Sets a new value, or the first value for None; yields the notices for the client.

        Raises:
            SqlError: the value is not possible.
        """
        name = name.lower()
        if name == "all" and value is None:
            self.reset()
            return
        if name == "client_encoding" and value and value.upper().replace("-", "") not in ("UTF8", "UNICODE", "AUTO"):
            raise SqlError("22023", f"client_encoding {value!r} is not served: set it to UTF8")
        if name.startswith("slackwater.") and name != EPOCH:
            raise SqlError("42704", f"there is no setting {name!r}; the one of Slackwater is {EPOCH}")
        if name not in self._values and len(self._values) >= _MOST:
            raise SqlError(TOO_MUCH, f"there are {_MOST} settings in this session: RESET ALL removes your own settings")
        if max(len(name), len(value or "")) > _LONGEST:
            raise SqlError(TOO_MUCH, f"a setting has at most {_LONGEST:,} characters")
        if name not in _FIXED:
            self._values[name] = self._first.get(name, "") if value is None else value
        if name in _REPORTED:
            yield _REPORTED[name], self._values[name]

    def reset(self) -> None:
        """Every setting has its first value again."""
        self._values = dict(self._first)

    def reported(self) -> Iterator[tuple[str, str]]:
        """The settings that a client receives at its start."""
        for name, shown in _REPORTED.items():
            yield shown, self._values[name]

    def all(self) -> Mapping[str, str]:
        """Every setting."""
        return dict(sorted(self._values.items()))
