"""Gate of the web page: the requests that are answered, and the refusals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.plugins.ui.gate import AccessToken, is_loopback
from state.errors import UsageError
from state.location import Location
from tests.slackwater.plugins.ui.served_page import ServedPage, served
from tests.slackwater.reading.written_root import write_root

TOKEN = "0123456789abcdef0123"
QUESTIONS = ("now", "epochs", "sources", "views", "sample?view=late", "files", "why?path=x", "quarantine")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("gate")
    return write_root(Location(str(place / "root")), Location(str(place / "raw"))).root.url


@pytest.fixture(scope="module")
def page(root: str) -> Iterator[ServedPage]:
    """Without a token."""
    with served(root) as page:
        yield page


@pytest.mark.parametrize("path", ["/", "/assets/main.js", "/api/now", "/api/files?status=lost", "/nothing"])
def test_every_answer_forbids_what_the_page_does_not_need(page: ServedPage, path: str) -> None:
    headers = page.ask(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "require-trusted-types-for 'script'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers
    assert headers["Server"] == "slackwater"


def test_the_page_has_no_script_or_style_inside(page: ServedPage) -> None:
    answer = page.ask("/")
    text = answer.body.decode()
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "<style" not in text and "style=" not in text and " on" not in text.partition("<body>")[2].split("</")[0]
    assert text.count("<script") == 1 and "://" not in text


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "192.168.1.7", "", "[::1"]
)
@pytest.mark.parametrize("path", ["/", "/api/now", "/assets/main.js"])
def test_without_a_token_only_names_of_this_machine_are_answered(page: ServedPage, path: str, host: str) -> None:
    assert page.ask(path, headers={"Host": host}).status in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "localhost:1234", "127.0.0.1", "[::1]:80"])
def test_any_name_of_this_machine_will_do(page: ServedPage, host: str) -> None:
    assert page.ask("/api/now", headers={"Host": host}).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_the_page_of_another_site_learns_nothing(page: ServedPage, site: str) -> None:
    for question in QUESTIONS:
        assert page.ask(f"/api/{question}", headers={"Sec-Fetch-Site": site}).status == 403
    assert page.ask("/api/now", headers={"Sec-Fetch-Site": "same-origin"}).status == 200
    assert page.ask("/", headers={"Sec-Fetch-Site": site}).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_there_is_nothing_but_reading(page: ServedPage, method: str) -> None:
    for path in ("/", "/api/now"):
        answer = page.ask(path, method)
        assert answer.status == 405 and "only reads" in answer.document["error"]


def test_with_a_token_every_answer_about_the_root_needs_it(root: str) -> None:
    with served(root, token=AccessToken(TOKEN)) as page:
        for question in QUESTIONS:
            assert refused(page, question, None)
            assert refused(page, question, f"Bearer {TOKEN[:-1]}x")
            assert refused(page, question, f"Basic {TOKEN}")
            assert refused(page, f"{question}{'&' if '?' in question else '?'}token={TOKEN}", None)
            assert not refused(page, question, f"Bearer {TOKEN}")
        for text in (b"Bearer \xff", b"Bearer \xc3\xbc", b"\xed\xb3\xbf", b"Bearer " + TOKEN.encode() + b"\xff"):
            answer = page.send(b"GET /api/now HTTP/1.1\r\nHost: x\r\nAuthorization: " + text + b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 401 ")
        assert page.ask("/", headers={"Host": "lake.example"}).status == 200
        assert page.ask("/assets/style.css").headers["Content-Type"] == "text/css; charset=utf-8"


def refused(page: ServedPage, question: str, authorization: str | None) -> bool:
    headers = {"Host": "lake.example"} if authorization is None else {"Authorization": authorization}
    answer = page.ask(f"/api/{question}", headers=headers)
    assert answer.status in (200, 401) and TOKEN not in answer.body.decode()
    return answer.status == 401


def test_a_token_is_taken_from_a_file_the_environment_or_chance(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    variable = {"SLACKWATER_UI_TOKEN": TOKEN[::-1]}
    assert AccessToken.chosen("127.0.0.1", file, variable) == AccessToken(TOKEN)
    assert AccessToken.chosen("127.0.0.1", None, variable) == AccessToken(TOKEN[::-1])
    assert AccessToken.chosen("127.0.0.1", None, {}) is None
    first, second = (AccessToken.chosen("0.0.0.0", None, {}) for _ in range(2))
    assert first is not None and second is not None and first.is_new
    assert len(first.text) == 48 and first.text != second.text
    assert first.text not in repr(first)


def test_what_is_no_token_is_refused_without_being_repeated(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for text in ("short", "with a space in it, and long", "ü" * 20, ""):
        file.write_text(text)
        with pytest.raises(UsageError, match=r"has no valid token: give 16 or more") as refusal:
            AccessToken.chosen("127.0.0.1", file, {})
        assert not text or text not in str(refusal.value)
    file.write_bytes(b"\xff\xfe" * 20)
    with pytest.raises(UsageError, match="it is not text"):
        AccessToken.chosen("127.0.0.1", file, {})
    with pytest.raises(UsageError, match="No such file"):
        AccessToken.chosen("127.0.0.1", tmp_path / "nothing", {})


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_only_this_machine_reaches_a_loopback_address(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
    assert not is_loopback("localhost.evil.example")
