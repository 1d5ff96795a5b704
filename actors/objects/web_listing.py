"""Listing of a directory on a web server, by WebDAV."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import IO, Any
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

import pyarrow as pa

from actors.files import microseconds_of
from actors.objects.listing_page import LISTED, PAGE_NAMES, ListingPage, SkippedName
from actors.objects.store_errors import bucket_not_found
from actors.objects.web_client import WebClient
from actors.objects.web_options import RedirectRefused
from state.errors import AccessDeniedError, SettingsError, StorageUnavailableError
from state.objects.etag import normal_etag

_HELD_BYTES = 8 << 20
_STEP_BYTES = 1 << 16
_MOST_BYTES_OF_ENTRY = 1 << 20
_MOST_BYTES = 4 << 30
_INCOMPLETE = "the server returns no size or no time of it; correct the server"


def web_pages(client: WebClient, max_attempts: int) -> Iterator[ListingPage]:
    """Lists all files, a page at a time.  The server answers all of them at once, to one request.

    Args:
        client: the client of the location.
        max_attempts: answers that may break off before the server counts as unavailable.

    Raises:
        BucketNotFoundError: the directory does not exist.
        AccessDeniedError: the server refuses the listing, or redirects it to a host that is not allowed.
        StorageUnavailableError: the server does not answer, or its answer is not a listing.
    """
    with tempfile.SpooledTemporaryFile(_HELD_BYTES) as answer:
        requests = 0
        while True:
            requests += 1
            try:
                _fetch(client, answer)
                break
            except StorageUnavailableError:
                if requests == max_attempts:
                    raise
        answer.seek(0)
        yield from _pages(_entries(client, answer), requests)


def _fetch(client: WebClient, file: IO[bytes]) -> None:
    """Writes the server's answer into a file."""
    file.seek(0)
    file.truncate()
    location = client.location
    try:
        answer = client.request("PROPFIND", "", {"Depth": "infinity", "Content-Length": "0"})
    except RedirectRefused as refused:
        raise AccessDeniedError(f"{location}: {refused.reason}") from None
    try:
        if answer.status == HTTPStatus.NOT_FOUND:
            raise bucket_not_found(location)
        client.require(answer, str(location), HTTPStatus.MULTI_STATUS)
        nbytes = 0
        while part := client.content(answer, str(location), _STEP_BYTES):
            nbytes += file.write(part)
            if nbytes > _MOST_BYTES:
                raise SettingsError(
                    f"{location}: its listing has more than {_MOST_BYTES >> 30} GiB; divide it into several sources"
                )
    finally:
        answer.close()


def _pages(entries: Iterator[tuple[str, str, int, int] | SkippedName], requests: int) -> Iterator[ListingPage]:
    rows: list[tuple[str, str, int, int]] = []
    skipped: list[SkippedName] = []
    for entry in entries:
        if len(rows) + len(skipped) == PAGE_NAMES:
            yield _page(rows, skipped, requests, is_last=False)
            rows, skipped, requests = [], [], 0
        if isinstance(entry, SkippedName):
            skipped.append(entry)
        else:
            rows.append(entry)
    yield _page(rows, skipped, requests, is_last=True)


def _page(
    rows: list[tuple[str, str, int, int]], skipped: list[SkippedName], requests: int, *, is_last: bool
) -> ListingPage:
    columns = [[row[at] for row in rows] for at in range(len(LISTED))]
    return ListingPage(pa.table(columns, schema=LISTED), requests, tuple(skipped), is_last)


def _entries(client: WebClient, file: IO[bytes]) -> Iterator[tuple[str, str, int, int] | SkippedName]:
    """The row of each file of an answer (https://www.rfc-editor.org/rfc/rfc4918#section-14.24)."""
    location = client.location
    above = f"/{location.below_host}"
    parser: Any = XMLPullParser(("start", "end"))
    parents: list[Element] = []
    held = 0
    while True:
        chunk = file.read(_STEP_BYTES)
        try:
            parser.feed(chunk) if chunk else parser.close()
            events = list(parser.read_events())
        except ParseError:
            raise StorageUnavailableError(
                f"{location}: the answer of the server is not a listing by WebDAV; correct the URL"
            ) from None
        held += len(chunk)
        for event, element in events:
            if event == "start":
                parents.append(element)
                continue
            parents.pop()
            if element.tag == "{DAV:}response":
                held = 0
                if (entry := _entry(element, above)) is not None:
                    yield entry
                for parent in parents:
                    parent.clear()
        if held > _MOST_BYTES_OF_ENTRY:
            raise StorageUnavailableError(f"{location}: an entry of its listing is too long; correct the server")
        if not chunk:
            return


def _entry(response: Element, above: str) -> tuple[str, str, int, int] | SkippedName | None:
    """The row of one file; None for a directory, and for a name outside of the location."""
    path = unquote(urlsplit((response.findtext("{DAV:}href") or "").strip()).path)
    found = [each for each in response.iterfind("{DAV:}propstat") if " 200" in (each.findtext("{DAV:}status") or "")]
    if any(each.find("{DAV:}prop/{DAV:}resourcetype/{DAV:}collection") is not None for each in found):
        return None
    name = path.removeprefix(above)
    if not name or not path.startswith(above):
        return None
    size, modified = _first(found, "getcontentlength"), _time(_first(found, "getlastmodified"))
    if not size.isdecimal() or modified is None:
        return SkippedName(name, _INCOMPLETE)
    return name, normal_etag(_first(found, "getetag")), int(size), microseconds_of(modified)


def _first(propstats: list[Element], name: str) -> str:
    texts = (each.findtext(f"{{DAV:}}prop/{{DAV:}}{name}") for each in propstats)
    return next((text.strip() for text in texts if text), "")


def _time(text: str) -> datetime | None:
    try:
        time = parsedate_to_datetime(text)
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
