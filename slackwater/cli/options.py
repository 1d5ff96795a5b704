"""The options and arguments that several CLI commands share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from actors.telemetry.logging import redact
from slackwater.cli.terminal.quick_arrow import load_arrow
from state.errors import UsageError
from state.location import is_secret

if TYPE_CHECKING:
    from slackwater.reading.store import Store

# The environment variables that obstore and Lance read; an option with a prefix has its own name in capitals.
_VARIABLES = {
    "access_key_id": "AWS_ACCESS_KEY_ID",
    "secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
    "token": "AWS_SESSION_TOKEN",
    "sse_customer_key_base64": "AWS_SSE_CUSTOMER_KEY_BASE64",
    "access_key": "AZURE_STORAGE_ACCOUNT_KEY",
    "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
    "master_key": "AZURE_STORAGE_ACCOUNT_KEY",
    "bearer_token": "AZURE_STORAGE_TOKEN",
    "client_secret": "AZURE_CLIENT_SECRET",
    "sas_key": "AZURE_STORAGE_SAS_KEY",
    "sas_token": "AZURE_STORAGE_SAS_TOKEN",
    "service_account_key": "GOOGLE_SERVICE_ACCOUNT_KEY",
    "proxy_url": "HTTPS_PROXY",
}
_PREFIXES = ("aws_", "azure_", "google_")

Root = Annotated[str, typer.Argument(help="the root of the pipeline: a directory or a URL")]
Source = Annotated[str | None, typer.Option("--source", help="only files of this source")]
Timeout = Annotated[float, typer.Option("--timeout", min=0, help="seconds to wait for an answer of the pipeline")]
StorageOptions = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--storage-option",
        metavar="KEY=VALUE",
        help="access to the root, e.g. -o endpoint=http://127.0.0.1:8333 -o allow_http=true; repeatable",
    ),
]
AtEpoch = Annotated[
    str | None,
    typer.Option("--epoch", help="an epoch, `latest`, -1 for the one before, #57, a tag, or an ISO time"),
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document, for programs")]
Wide = Annotated[bool, typer.Option("--wide", help="print all columns on a terminal, too")]
Takeover = Annotated[bool, typer.Option("--takeover", help="take the root over from a living process")]
LogLevel = Annotated[str, typer.Option("--log-level", help="debug, info, warning or error")]
LogJson = Annotated[bool, typer.Option("--log-json", help="write logs as JSON lines")]


def storage_options(pairs: Sequence[str] | None) -> dict[str, str]:
    """The storage options in `-o key=value -o ...`.

    Raises:
        UsageError: a pair is not `key=value`, a key is given twice, or a key or value is a secret, which only the
            environment may hold.
    """
    options: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        key = key.strip().lower()
        # The messages have no value: errors end up in logs.
        if is_secret(key):
            raise UsageError(
                f"-o {key} is refused: secrets are not taken from the command line, where every user of the machine "
                f"can read them; {_elsewhere(key)}"
            )
        if not key or not equals:
            raise UsageError("-o takes KEY=VALUE, for example -o region=eu-central-1")
        if redact(value) != value:
            raise UsageError(
                f"-o {key} is refused: its value has a secret in it, as a signed URL or one with a user has, and every "
                "user of the machine can read the command line; give the URL without it"
            )
        if key in options:
            raise UsageError(f"-o {key} is given twice; give it once")
        options[key] = value
    return options


def _elsewhere(key: str) -> str:
    """The place for a secret."""
    variable = key.upper() if key.startswith(_PREFIXES) else _VARIABLES.get(key)
    if variable is None:
        return "give it to Python, in storage_options"
    return f"set the environment variable {variable} instead"


def opened_store(root: str, option: Sequence[str] | None) -> Store:
    """Opens the store of a root, for reading; a user's code is loaded before, if at all (`quick_arrow`).

    Raises:
        UsageError: as `storage_options`.
        StoreNotFoundError, StorageError: as `slackwater.open`.
    """
    return open_store(root, storage_options(option))


def open_store(root: str, options: Mapping[str, str]) -> Store:
    """The same with the options as a mapping."""
    load_arrow()
    # Imports Lance, which `--help` must not wait for.
    from slackwater.reading.store import open as open_root

    return open_root(root, storage_options=options or None)
