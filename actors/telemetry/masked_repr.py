"""Repr of a dataclass whose fields may contain secrets."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from actors.telemetry.logging import REDACTED, redact

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def masked_repr(value: DataclassInstance, **shown: Any) -> str:
    """The repr as dataclasses have it, with secrets masked as in the log.

    Args:
        value: an instance of a dataclass.
        shown: field → the content that the repr shows in place of its value.
    """
    parts = []
    for field in fields(value):
        if field.repr:
            content = shown.get(field.name, getattr(value, field.name))
            masked = redact(content)
            parts.append(f"{field.name}={tuple(masked) if isinstance(content, tuple) else masked!r}")
    return f"{type(value).__qualname__}({', '.join(parts)})"


def masked_url(url: str) -> str:
    """The scheme and the host of a URL whose path is a secret, such as the URL of a webhook."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}/{REDACTED}" if parts.path.strip("/") or parts.query else f"{parts.scheme}://{host}"
