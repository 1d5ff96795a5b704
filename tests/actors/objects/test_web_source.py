"""A source over HTTP believes its server nothing that leads elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from actors.file_errors import ObjectChanged, ObjectVanished, UnreadableFile
from actors.files import FileVersion
from actors.objects.object_store import ObjectStore
from actors.objects.web_options import RedirectRefused, WebOptions, allowed_redirect
from actors.settings import RequestSettings
from slackwater.pipeline import Pipeline
from state.errors import AccessDeniedError, BucketNotFoundError, SettingsError, StorageUnavailableError
from state.location import Location
from tests.actors.objects.web_server import Answer, WebServer, entry, listing, redirect, web_server

_AT = datetime(2024, 1, 1, tzinfo=UTC)
_SECRET = b"metadata of a cloud"


def _file(path: str, size: int) -> FileVersion:
    return FileVersion("s", path, b"", "", size, _AT)


def _store(server: WebServer, options: Mapping[str, str] = {}, max_attempts: int = 5) -> ObjectStore:
    location = Location(f"{server.url}/pub", {"allow_http": "true", **options})
    return ObjectStore(
        location, requests=RequestSettings(whole_object_bytes=8, block_bytes=8), max_attempts=max_attempts
    )


def _read(store: ObjectStore, path: str, size: int) -> bytes:
    return bytes(store.open(_file(path, size)).stream().read())


def test_a_file_that_is_redirected_to_another_host_is_refused_and_the_host_never_asked() -> None:
    with web_server({("GET", "/meta"): Answer(_SECRET)}) as inner:
        target = redirect(f"http://localhost:{inner.port}/meta")
        with web_server({("GET", "/pub/a"): target}) as server:
            with pytest.raises(UnreadableFile, match=rf"redirects to localhost:{inner.port}.*redirect_hosts="):
                _read(_store(server), "a", len(_SECRET))
            assert inner.requests == []


def test_an_option_allows_a_host() -> None:
    with (
        web_server({("GET", "/b"): Answer(b"content")}) as other,
        web_server({("GET", "/pub/a"): redirect(f"{other.url}/b")}) as server,
    ):
        store = _store(server, {"redirect_hosts": f"cdn.example.com, 127.0.0.1:{other.port}"})
        assert _read(store, "a", 7) == b"content"


def test_a_listing_that_is_redirected_to_another_host_is_refused() -> None:
    with (
        web_server({("PROPFIND", "/pub/"): listing(entry("/pub/a", 1))}) as other,
        web_server({("PROPFIND", "/pub/"): redirect(f"{other.url}/pub/", 307)}) as server,
    ):
        with pytest.raises(AccessDeniedError, match=r"redirects to 127\.0\.0\.1"):
            _store(server).check()
        assert other.requests == []


def test_redirects_on_the_same_host_are_followed_but_not_for_ever() -> None:
    answers = {
        ("PROPFIND", "/pub/"): redirect("/real/", 301),
        ("PROPFIND", "/real/"): listing(entry("/pub/a", 1)),
        ("GET", "/pub/a"): redirect("b"),
        ("GET", "/pub/b"): Answer(b"1"),
        ("GET", "/pub/round"): redirect("round"),
    }
    with web_server(answers) as server:
        store = _store(server)
        (page,) = store.list_pages()
        assert page.paths == ["a"] and _read(store, "a", 1) == b"1"
        with pytest.raises(StorageUnavailableError, match="without end"):
            _read(store, "round", 1)


@pytest.mark.parametrize(
    ("own", "options", "target", "following"),
    [
        ("http://a/x", {}, "/y", "http://a/y"),
        ("http://a/x", {}, "https://a/y", "https://a/y"),
        ("http://a:80/x", {}, "http://A/y", "http://A/y"),
        ("https://a/x", {"redirect_hosts": "b"}, "https://b:443/y", "https://b:443/y"),
        ("https://a/x", {"redirect_hosts": "B:8443"}, "https://b:8443/y", "https://b:8443/y"),
        ("https://a/x", {"allow_http": "true", "redirect_hosts": "b"}, "http://b/y", "http://b/y"),
        ("https://a/x", {"redirect_hosts": "[::1]:80"}, "https://[::1]:80/y", "https://[::1]:80/y"),
        ("http://a/x", {}, "http://a:9200/y", "a:9200, which is not its own host"),
        ("http://a/x", {"redirect_hosts": "b"}, "http://b:9200/y", "b:9200, which is not its own host"),
        ("http://a/x", {}, "http://a.b/y", "a.b, which is not its own host"),
        ("http://a/x", {}, "//169.254.169.254/latest", "169.254.169.254, which is not its own host"),
        ("https://a/x", {"redirect_hosts": "b"}, "http://b/y", "from https to http"),
        ("http://a/x", {}, "file:///etc/passwd", "an address that is not valid"),
        ("http://a/x", {}, "http://a:x/", "an address that is not valid"),
        ("http://a/x", {}, "http://user@b/", "b, which is not its own host"),
    ],
)
def test_a_redirect_leads_to_known_hosts_only(own: str, options: dict[str, str], target: str, following: str) -> None:
    location = Location(own, options)
    allowed = WebOptions.of(location)
    if following.startswith("http"):
        assert allowed_redirect(location, allowed, own, target) == following
    else:
        with pytest.raises(RedirectRefused, match=following):
            allowed_redirect(location, allowed, own, target)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"redirect_hosts": "https://b/"}, "redirect_hosts has 'https://b/'; give names of hosts"),
        ({"redirect_hosts": ["b"]}, "redirect_hosts has .*; give names of hosts"),
        ({"read_timeout": "soon"}, "read_timeout is 'soon'; give seconds"),
        ({"allow_http": "yes"}, "allow_http is 'yes'; give one of true, false"),
        ({"redirect_host": "b"}, "storage option redirect_host is not known for http://"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_declared(options: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Pipeline("p", root="root").source("s", "http://example.com/in", format="text", storage_options=options)


def test_what_is_no_file_of_the_source_is_left_out_of_its_listing() -> None:
    entries = [
        entry("/pub/", 0, kind="<D:collection/>"),
        entry("/pub/day=1/", 0, kind="<D:collection/>"),
        entry("/pub/day=1/a%20b.csv", 3),
        entry("http://other.example/pub/c.csv", 5),
        entry("/public/d.csv", 3),
        entry("/etc/passwd", 3),
        entry("/pub/no_size", ""),
        entry("/pub/no_time", 3, written="soon"),
    ]
    with web_server({("PROPFIND", "/pub/"): listing(*entries)}) as server:
        (page,) = _store(server).list_pages()
        assert list(zip(page.paths, page.sizes, page.last_modified, strict=True)) == [
            ("day=1/a b.csv", 3, _AT),
            ("c.csv", 5, _AT),
        ]
        assert [name.path for name in page.skipped] == ["no_size", "no_time"]
        assert (page.requests, page.is_last) == (1, True)


def test_a_long_listing_comes_in_pages_of_one_request() -> None:
    entries = [entry(f"/pub/{number:05}", 1) for number in range(2_500)]
    with web_server({("PROPFIND", "/pub/"): listing(*entries)}) as server:
        pages = list(_store(server).list_pages())
        assert [(len(page.paths), page.requests, page.is_last) for page in pages] == [
            (1_000, 1, False),
            (1_000, 0, False),
            (500, 0, True),
        ]


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "./a", "a//b"])
def test_no_path_leaves_the_source(path: str) -> None:
    with web_server({}) as server:
        with pytest.raises(UnreadableFile, match="its name has"):
            _read(_store(server), path, 3)
        assert server.requests == []


def test_a_listing_that_breaks_off_is_asked_for_again() -> None:
    whole = listing(entry("/pub/a", 1))
    broken = Answer(whole.body[:50], 207, length=len(whole.body))
    with web_server({("PROPFIND", "/pub/"): [broken, Answer(status=503), whole]}) as server:
        (page,) = _store(server).list_pages()
        assert (page.paths, page.requests) == (["a"], 2), "a 503 is repeated by the client"


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (Answer(status=404), BucketNotFoundError, "there is no such"),
        (Answer(status=403), AccessDeniedError, "access is denied"),
        (Answer(b"<html>"), StorageUnavailableError, "answered 200"),
        (Answer(b"<html>", 207), StorageUnavailableError, "not a listing by WebDAV"),
        (Answer(b'<D:x xmlns:D="DAV:">' + b"x" * (2 << 20), 207), StorageUnavailableError, "an entry .* is too long"),
        (
            Answer(
                b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
                + b"".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">'.encode() for n in range(9))
                + b"]><x>&j;</x>",
                207,
            ),
            StorageUnavailableError,
            "not a listing by WebDAV",
        ),
    ],
)
def test_an_answer_that_is_no_listing_is_refused(answer: Answer, error: type[Exception], message: str) -> None:
    with web_server({("PROPFIND", "/pub/"): answer}) as server, pytest.raises(error, match=message):
        _store(server, max_attempts=1).check()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=404), ObjectVanished),
        (Answer(status=412), ObjectChanged),
        (Answer(b"12345"), ObjectChanged),
        (Answer(b"1"), ObjectChanged),
        (Answer(b"1" * 10_000_000), ObjectChanged),
        (Answer(b"123", headers={"Last-Modified": "Mon, 01 Jan 2024 00:00:01 GMT"}), ObjectChanged),
        (Answer(status=401), AccessDeniedError),
        (Answer(status=500), StorageUnavailableError),
        (Answer(b"1", length=3), StorageUnavailableError),
    ],
)
def test_another_content_than_the_listed_one_is_refused(answer: Answer, error: type[Exception]) -> None:
    with web_server({("GET", "/pub/a"): answer}) as server, pytest.raises(error):
        _read(_store(server, max_attempts=1), "a", 3)


def test_parts_are_asked_for_as_ranges_and_a_server_without_ranges_is_named() -> None:
    part = Answer(b"12345678", 206, {"Content-Range": "bytes 0-7/16"})
    with web_server({("GET", "/pub/a"): part, ("GET", "/pub/b"): Answer(b"x" * 16)}) as server:
        assert _store(server).open(_file("a", 16)).head(8) == b"12345678"
        assert server.headers[0]["Range"] == "bytes=0-7"
        assert server.headers[0]["If-Unmodified-Since"] == "Mon, 01 Jan 2024 00:00:00 GMT"
        with pytest.raises(UnreadableFile, match="whole_object_bytes"):
            _store(server).open(_file("b", 16)).head(8)


def test_a_connection_is_used_again() -> None:
    with web_server({("GET", "/pub/a"): Answer(b"123")}) as server:
        store = _store(server)
        assert [_read(store, "a", 3) for _ in range(3)] == [b"123"] * 3
        assert len(server.clients) == 1


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with web_server({}) as server:
        pass
    with pytest.raises(StorageUnavailableError, match="no connection could be made"):
        _store(server, max_attempts=1).check()
