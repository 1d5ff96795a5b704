"""The options and arguments that several CLI commands share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from state.errors import UsageError
from state.location import SECRET_OPTIONS

if TYPE_CHECKING:
    from slackwater.reading.store import Store

# The environment variables that obstore and Lance read.
_VARIABLES = {
    "access_key_id": "AWS_ACCESS_KEY_ID",
    "secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
    "token": "AWS_SESSION_TOKEN",
    "account_key": "AZURE_STORAGE_ACCOUNT_KEY",
    "sas_token": "AZURE_STORAGE_SAS_TOKEN",
}
_PREFIX = re.compile(r"^(aws|azure_storage|azure|google)_")

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
    typer.Option("--epoch", help="an epoch, `latest`, a tag, or an ISO time; by default the latest"),
]
Json = Annotated[bool, typer.Option("--json", help="print one JSON document, for programs")]
Takeover = Annotated[bool, typer.Option("--takeover", help="take the root over from a living process")]
Debug = Annotated[bool, typer.Option("--debug", help="show the traceback of an error")]
LogLevel = Annotated[str, typer.Option("--log-level", help="debug, info, warning or error")]
LogJson = Annotated[bool, typer.Option("--log-json", help="write logs as JSON lines")]


def storage_options(pairs: Sequence[str] | None) -> dict[str, str]:
    """The storage options in `-o key=value -o ...`.

    Raises:
        UsageError: a pair is not `key=value`, a key is given twice, or a key is a secret, which only the environment
            may hold.
    """
    options: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        key = key.strip().lower()
        bare = _PREFIX.sub("", key)
        secret = next((name for name in (key, bare) if name in SECRET_OPTIONS or name in _VARIABLES), None)
        if secret is not None:
            # Without the value: errors end up in logs.
            raise UsageError(
                f"-o {key} is refused: secrets are not taken from the command line, where every user of the machine "
                f"can read them; set the environment variable {_VARIABLES.get(secret, secret.upper())} instead"
            )
        if not key or not equals:
            raise UsageError("-o takes KEY=VALUE, for example -o region=eu-central-1")
        if key in options:
            raise UsageError(f"-o {key} is given twice; give it once")
        options[key] = value
    return options


def opened_store(root: str, option: Sequence[str] | None) -> Store:
    """Opens the store of a root, for reading.

    Raises:
        UsageError: as `storage_options`.
        StoreNotFoundError, StorageError: as `slackwater.open`.
    """
    options = storage_options(option)  # first: a secret on the command line is refused before any other error
    from slackwater.reading.store import open as open_store

    return open_store(root, storage_options=options or None)
