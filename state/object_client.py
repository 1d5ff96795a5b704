"""An obstore client for a location, for the few small objects that are not Lance's."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from obstore.store import LocalStore, ObjectStore, from_url

from state.location import Location

_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_RETRY: Any = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}


def object_client(location: Location) -> ObjectStore:
    """A client whose paths are relative to the location; a local directory is made when something is written."""
    if location.is_local:
        return LocalStore(location.path, mkdir=True)
    options = dict(location.storage_options)
    # With options for the client, obstore no longer looks at AWS_ALLOW_HTTP; an http endpoint says it anyway.
    endpoint = options.get("endpoint") or next(filter(None, map(os.environ.get, _ENDPOINT_VARIABLES)), "")
    insecure = options.pop("allow_http", "false") == "true" or endpoint.startswith("http://")
    if "endpoint" in options:
        options.setdefault("region", "us-east-1")
    client_options: Any = {"allow_http": insecure, "timeout": timedelta(seconds=10)}
    config: Any = options
    return from_url(location.url, config=config, client_options=client_options, retry_config=_RETRY)
