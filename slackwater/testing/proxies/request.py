"""One request, as a proxy in front of an S3 server saw it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Request:
    """One request as it reached the proxy.

    Args:
        query: each parameter's first value.
        status: what the server answered; 0 while, or if, it never saw the request.
        fault: what the proxy did to it instead of passing both ways; None for an honest answer.
    """

    method: str
    bucket: str
    key: str
    query: dict[str, str]
    range: str | None
    status: int = 0
    fault: str | None = None

    @property
    def is_list(self) -> bool:
        """Whether it lists a page of a bucket."""
        return self.method == "GET" and not self.key and "list-type" in self.query
