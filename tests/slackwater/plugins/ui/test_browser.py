"""Tests of the page in a real browser: its content, the keyboard, and its defences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from slackwater.plugins.ui.gate import AccessToken
from slackwater.status.run_status import PublicationStatus, RowsInMemory, SourceStatus, StartupStep
from state.location import Location
from state.tables.catalog import put_source
from state.tables.records import CatalogSource
from tests.slackwater.plugins.ui.hostile_root import LINK, RUN_ME, SCRIPT, write_hostile_root
from tests.slackwater.plugins.ui.living_root import busy_status, commit_epochs, running
from tests.slackwater.plugins.ui.served_page import ServedPage, served
from tests.slackwater.reading.bad_records import BIG, quarantine
from tests.slackwater.reading.failed_views import fail_view, read_view
from tests.slackwater.reading.internal_rows import store_internal_rows
from tests.slackwater.reading.written_root import RootWriter, WrittenRoot, write_root

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

TOKEN = "0123456789abcdef0123"
FOCUSED = "document.activeElement"


@pytest.fixture
def written(tmp_path: Path) -> WrittenRoot:
    (tmp_path / "raw").mkdir()
    return write_root(Location(str(tmp_path / "root")), Location(str(tmp_path / "raw")))


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """The page of a root that does not change."""
    place = tmp_path_factory.mktemp("quiet")
    written = write_root(Location(str(place / "root")), Location(str(place / "raw")))
    quarantine(written, BIG, (41, b"AA;2013-02-30;17", "column day: no date"), table="queue")
    with served(written.root.url) as page:
        yield page


@contextmanager
def opened(browser: Browser, url: str, *, complaints: bool = False, **options: Any) -> Iterator[Page]:
    """The page when it has drawn everything once; nothing may go wrong in the browser unless that is expected."""
    said: list[str] = []
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(30_000)
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        page.goto(url)
        yield page
        assert complaints or not said, said
    finally:
        context.close()


def drawn(page: Page) -> Page:
    page.wait_for_selector("#bad-records > *")
    page.wait_for_selector("#timeline [role=option], #timeline .chart .hint")
    return page


def inside(page: Page) -> int:
    """The room that the picture has in its frame."""
    return int(page.evaluate("document.querySelector('#picture').clientWidth")) - 32


def background(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def test_what_comes_from_files_is_shown_and_never_run(tmp_path: Path, browser: Browser) -> None:
    root = Location(str(tmp_path / "root"))
    write_hostile_root(root, Location(str(tmp_path / "raw")))
    status = busy_status(1)
    with running(root, status, last_error=RUN_ME), served(root.url) as server, opened(browser, server.url) as page:
        drawn(page)
        page.fill("#search-text", "onerror")
        page.click("#found button.link")
        page.wait_for_selector(".history")
        page.click("#view-list summary")
        page.wait_for_selector("#view-list table")
        for place, texts in {
            "#said": [RUN_ME],
            "#sources": [RUN_ME],
            "#found": [f"day=1/{RUN_ME}.csv"],
            "#view-list": [RUN_ME, SCRIPT, LINK, "__proto__", "\\u202egpj.exe"],
            "#bad-files": [SCRIPT, f"row 3: '{RUN_ME}' is no bigint"],
            "#bad-records": [f"{SCRIPT}{RUN_ME}\\x1b[2J\\xff", RUN_ME],
        }.items():
            shown = page.text_content(place) or ""
            assert all(text in shown for text in texts), (place, shown)
        assert page.evaluate("window.executed") is None
        assert page.evaluate("[...document.images].map(each => new URL(each.src).pathname)") == ["/assets/icon.svg"]
        assert page.evaluate("document.querySelectorAll('script').length") == 1
        assert page.evaluate("document.querySelectorAll('main a, main iframe, main object').length") == 0


@pytest.mark.more
def test_a_source_of_a_run_is_shown_before_its_first_commit(written: WrittenRoot, browser: Browser) -> None:
    status = busy_status(written.epochs[-1])
    step = StartupStep("views of the first epoch", 65.0, done=False)
    status = replace(status, sources={"orders": SourceStatus(reading=4, done=2)}, startup=(step,))
    status = replace(status, message="starting; waiting for views of the first epoch")
    with running(written.root, status), served(written.root.url) as server, opened(browser, server.url) as page:
        drawn(page)
        page.wait_for_selector("#sources td")
        rows = page.locator("#sources tbody tr").all_inner_texts()
        (orders,) = [row.split("\t") for row in rows if row.startswith("orders")]
        assert "nothing of it is committed yet" in orders[0]
        assert "6 files in flight" in orders[0], "files that are read are not committed"
        assert "views of the first epoch: 65" in (page.text_content("#said") or "")


@pytest.mark.more
def test_published_tables_show_their_lag_and_their_error_as_text(written: WrittenRoot, browser: Browser) -> None:
    current = PublicationStatus("by_carrier", "delta:/pub/by_carrier", written.epochs[-1], commits=3, rows=12)
    failed = PublicationStatus("late", "parquet:/pub/late", None, 4, 75.0, failures=2, error=f"{RUN_ME}{SCRIPT}")
    status = replace(busy_status(written.epochs[-1]), publications=(current, failed))
    with running(written.root, status), served(written.root.url) as server, opened(browser, server.url) as page:
        drawn(page)
        page.wait_for_selector("#view-list [data-publication=late]")
        shown = page.text_content("#view-list") or ""
        assert "delta:/pub/by_carrier" in shown and "up to date" in shown and "4 epochs, 75 s" in shown
        assert f"late to parquet:/pub/late: {RUN_ME}{SCRIPT}. It is tried again." in shown
        assert page.evaluate("window.executed") is None


@pytest.mark.more
def test_a_failed_view_shows_its_place_and_its_error_as_text(written: WrittenRoot, browser: Browser) -> None:
    fail_view(written.root, "late", written.epochs[2], error=f"{RUN_ME}{SCRIPT}")
    with served(written.root.url) as server, opened(browser, server.url) as page:
        drawn(page)
        told = page.text_content("#view-list [data-failed=late]") or ""
        assert (
            f"late failed: {RUN_ME}{SCRIPT}. It is stale since 2026-01-31 12:00:02 UTC, epoch {written.epochs[2]}."
            in told
        )
        assert f"slackwater retry {written.root} --view late" in told
        assert page.text_content("#view-list [data-view=late] .badge[data-kind=failed]") == "failed"
        assert page.locator("#view-list .badge[data-kind=failed]").count() == 1
        assert page.evaluate("window.executed") is None
        fail_view(written.root, "late", written.epochs[2], error=None, begun="late.next")
        page.wait_for_selector("#view-list li")
        assert page.locator("#view-list [data-failed]").count() == 0
        assert "is rebuilt beside the rows" in (page.text_content("#view-list li") or "")
        assert "rebuilding; until then it is stale since" in (
            page.text_content("#view-list [data-view=late] summary") or ""
        )
        fail_view(written.root, "late", None)
        page.wait_for_selector("#view-list [data-failed=late]")
        assert "It has no rows." in (page.text_content("#view-list [data-failed=late]") or "")


@pytest.mark.more
def test_internal_views_show_their_rows_in_the_memory_of_the_run(written: WrittenRoot, browser: Browser) -> None:
    status = busy_status(written.epochs[-1])
    path = store_internal_rows(written.root)
    with served(written.root.url) as server, opened(browser, server.url) as page:
        drawn(page)
        titles = page.locator("#view-list .kept thead th").all_text_contents()
        assert titles[-2:] == ["rows in memory", "memory"]
        cells = page.locator("#view-list .kept tbody tr").locator("th, td")
        assert cells.all_text_contents()[-2:] == ["–", "–"], "no run is there"
        with running(written.root, replace(status, in_memory={path: RowsInMemory(3, 2048)})):
            page.wait_for_selector("#view-list .kept td:text('2.0 KiB')")
            assert cells.all_text_contents()[-2:] == ["3", "2.0 KiB"]


@pytest.mark.more
def test_the_browser_itself_refuses_markup_and_other_scripts(quiet: ServedPage, browser: Browser) -> None:
    with opened(browser, quiet.url, complaints=True) as page:
        drawn(page)
        attempts = (
            "document.body.innerHTML = '<b>x</b>'",
            "document.body.setAttribute('onclick', 'executed = 1')",
            "document.createElement('script').text = 'executed = 1'",
            "document.write('<b>x</b>')",
        )
        for attempt in attempts:
            refused = page.evaluate(f"() => {{ try {{ {attempt} }} catch (error) {{ return error.name }} }}")
            assert refused == "TypeError", attempt
        assert page.evaluate("window.executed") is None
        assert page.evaluate("() => fetch('https://example.invalid').catch(e => 'refused')") == "refused"


@pytest.mark.more
def test_a_run_is_followed_as_it_goes_and_when_it_ends(written: WrittenRoot, browser: Browser) -> None:
    epochs = commit_epochs(written.root, 5, Random(1))
    wide = "[...document.querySelectorAll('.scroll')].filter(each => each.scrollWidth > each.clientWidth).length"
    size = {"width": 1_400, "height": 900}
    with served(written.root.url) as server, opened(browser, server.url, viewport=size) as page:
        with running(written.root, busy_status(epochs[-1])):
            drawn(page)
            page.wait_for_selector("#state [data-kind=running]")
            picture = page.text_content("#picture svg") or ""
            for text in ("Coordinator", "210 files/s", "4.1 MiB/s", "91.2K rows/s", "39 %", "full", "× 2"):
                assert text.lower() in picture.lower(), picture
            assert "merger waits for materializer" in (page.get_attribute("#picture svg", "aria-label") or "")
            assert page.locator("#picture .full").count() == 1
            assert "3,172" in (page.text_content("#sources") or "")
            assert page.evaluate(wide) == 0, "a table has to be scrolled"
            [new] = commit_epochs(written.root, 1, Random(2))
            page.wait_for_selector(f"#epoch-{new}[aria-selected=true]")
        page.wait_for_selector("#state [data-kind=ended]")
        assert "No pipeline runs on this root" in (page.text_content("#said") or "")
        assert page.locator("#picture svg.idle").count() == 1


@pytest.mark.more
def test_the_page_says_that_it_loads_before_it_knows_the_epochs_and_sources(
    quiet: ServedPage, browser: Browser
) -> None:
    with opened(browser, "about:blank") as page:
        waiting: list[Route] = []
        for document in ("epochs?*", "sources"):
            page.route(f"**/api/{document}", lambda route: waiting.append(route))
        page.goto(quiet.url)
        page.wait_for_selector("#state > *")
        page.wait_for_function("document.querySelector('#foot').textContent")
        places = {"#sources": "#sources table", "#timeline .chart": "#timeline svg"}
        assert {page.text_content(place) for place in places} == {"Loading …"}
        for _ in places:
            while not waiting:
                page.wait_for_timeout(50)
            waiting.pop().continue_()
        for drawn_place in places.values():
            page.wait_for_selector(drawn_place)


@pytest.mark.more
def test_the_timeline_is_gone_through_by_keys_as_far_as_epochs_are_retained(
    written: WrittenRoot, browser: Browser
) -> None:
    epochs = [*written.epochs, *commit_epochs(written.root, 220, Random(1), changing=False)]
    with served(written.root.url) as server, opened(browser, server.url) as page:
        drawn(page)
        chart = page.locator("[role=listbox]")
        chart.focus()

        def chosen() -> int:
            option = page.locator("[role=option][aria-selected=true]")
            assert chart.get_attribute("aria-activedescendant") == option.get_attribute("id")
            return int((option.get_attribute("id") or "").removeprefix("epoch-"))

        assert chosen() == epochs[-1]
        for key, at in (("ArrowLeft", -2), ("ArrowLeft", -3), ("ArrowRight", -2), ("PageUp", -12), ("PageDown", -2)):
            page.keyboard.press(key)
            assert chosen() == epochs[at], key
        for _ in range(20):
            page.keyboard.press("PageUp")
        page.wait_for_selector(f"#epoch-{epochs[-202]}[aria-selected=true]")
        page.keyboard.press("Home")
        page.wait_for_selector(f"#epoch-{epochs[0]}[aria-selected=true]")
        assert str(epochs[0]) in (page.text_content("#timeline .detail") or "")
        page.keyboard.press("End")
        assert chosen() == epochs[-1]


@pytest.mark.more
def test_a_file_is_searched_and_its_history_shown_by_keyboard_alone(quiet: ServedPage, browser: Browser) -> None:
    with opened(browser, quiet.url) as page:
        drawn(page)
        page.keyboard.press("/")
        assert page.evaluate(f"{FOCUSED}.id") == "search-text"
        page.keyboard.type("day=1/b")
        page.wait_for_selector("#found table")
        assert page.input_value("#search-text") == "day=1/b"
        assert page.text_content("#found .badge[data-kind=flawed]") == "done, 1 bad row"
        for _ in range(5):
            page.keyboard.press("Tab")
        assert page.evaluate(f"{FOCUSED}.textContent").endswith("day=1/b.csv")
        assert page.evaluate(f"getComputedStyle({FOCUSED}).outlineStyle") == "solid"
        page.keyboard.press("Enter")
        page.wait_for_selector(".history")
        history = page.text_content(".history") or ""
        assert page.text_content(".history .badge[data-kind=flawed]") == "done, 1 bad row"
        assert "3 rows, 1 of them quarantined" in history and "Views over flights: by_carrier, late." in history
        assert page.get_attribute("#found button.link", "aria-expanded") == "true"


@pytest.mark.more
def test_what_was_never_listed_is_explained(quiet: ServedPage, browser: Browser) -> None:
    with opened(browser, quiet.url) as page:
        drawn(page)
        page.fill("#search-text", "day=9/nothing.csv")
        page.wait_for_selector("#found >> text=Press Enter")
        page.press("#search-text", "Enter")
        page.wait_for_selector(".history")
        assert "was never listed, and it is not there now" in (page.text_content(".history") or "")


@pytest.mark.more
def test_files_beyond_the_first_page_come_when_asked_for(written: WrittenRoot, browser: Browser) -> None:
    writer = RootWriter(Location(f"{written.root.url}-many"), written.raw)
    definition = {"url": written.raw.url, "format": {"name": "csv"}, "pattern": "**"}
    put_source(writer.delta, CatalogSource("flights", json.dumps(definition), None))
    for number in range(60):
        writer.finish(f"{number:03}.csv", rows_read=1)
    writer.commit(60, 60)
    with served(writer.root.url) as server, opened(browser, server.url) as page:
        page.fill("#search-text", "csv")
        page.wait_for_selector("#found table")
        assert "60 files found" in (page.text_content("#found") or "")
        assert page.locator("#found button.link").count() == 50
        page.click("text=More")
        page.locator("#found button.link").nth(59).wait_for()
        assert page.locator("#found button.link").count() == 60
        assert page.locator("text=More").count() == 0


@pytest.mark.more
def test_the_page_fits_every_width(quiet: ServedPage, browser: Browser) -> None:
    with opened(browser, quiet.url) as page:
        drawn(page)
        page.click("#view-list summary")
        for width in (320, 390, 720, 900, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 800})
            page.locator(f"#picture svg[width='{inside(page)}']").wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.more
def test_dark_is_what_the_system_says_or_what_was_chosen_and_that_is_kept(quiet: ServedPage, browser: Browser) -> None:
    with opened(browser, quiet.url, color_scheme="light") as page:
        light = background(page)
        page.emulate_media(color_scheme="dark")
        dark = background(page)
        assert light != dark
        page.click("#theme")
        page.click("#theme")
        assert (page.text_content("#theme"), background(page)) == ("Theme: light", light)
        page.reload()
        assert (page.text_content("#theme"), background(page)) == ("Theme: light", light)
        page.click("#theme")
        assert background(page) == dark


@pytest.mark.more
def test_nothing_moves_for_those_who_do_not_want_that(written: WrittenRoot, browser: Browser) -> None:
    moves = "getComputedStyle(document.querySelector('.edge.moving')).animationName"
    with running(written.root, busy_status(1)), served(written.root.url) as server:
        for wish, name in (("no-preference", "flow"), ("reduce", "none")):
            with opened(browser, server.url, reduced_motion=wish) as page:
                page.wait_for_selector(".edge.moving", state="attached")
                assert page.evaluate(moves) == name


@pytest.mark.more
def test_everything_that_can_be_used_has_a_name(quiet: ServedPage, browser: Browser) -> None:
    nameless = """() => [...document.querySelectorAll('button, input, select, summary, [tabindex="0"], [role=option]')]
        .filter(each => each.checkVisibility())
        .filter(each => !(each.getAttribute('aria-label') || each.textContent.trim() || each.labels?.length))
        .map(each => each.outerHTML)"""
    with opened(browser, quiet.url) as page:
        drawn(page)
        assert page.evaluate(nameless) == []
        assert page.locator("h1").count() == 1 and page.locator("main h2").count() == 5
        page.keyboard.press("Tab")
        assert page.evaluate(f"{FOCUSED}.textContent") == "Skip to the content"


@pytest.mark.more
def test_the_token_of_the_url_is_taken_out_of_it_and_a_missing_one_is_asked_for(
    written: WrittenRoot, browser: Browser
) -> None:
    with served(written.root.url, token=AccessToken(TOKEN)) as server:
        with opened(browser, f"{server.url}#token={TOKEN}") as page:
            drawn(page)
            assert page.url == server.url
            page.reload()
            drawn(page)
        with opened(browser, server.url, complaints=True) as page:
            page.wait_for_selector("#token-text")
            assert not page.is_visible("#content")
            page.fill("#token-text", "x" * 20)
            page.keyboard.press("Enter")
            page.wait_for_selector("#token-text:placeholder-shown, #token-text:invalid")
            page.wait_for_selector("#trouble >> text=token is missing or wrong")
            page.fill("#token-text", TOKEN)
            page.keyboard.press("Enter")
            drawn(page)
            assert page.is_visible("#content") and not page.is_visible("#token")


@pytest.mark.more
def test_a_token_that_is_given_before_the_answer_to_a_wrong_one_is_used(written: WrittenRoot, browser: Browser) -> None:
    held: list[Route] = []

    def hold_the_wrong(route: Route) -> None:
        if route.request.headers["authorization"].endswith(TOKEN):
            route.continue_()
        else:
            held.append(route)

    with (
        served(written.root.url, token=AccessToken(TOKEN)) as server,
        opened(browser, server.url, complaints=True) as page,
    ):
        page.wait_for_selector("#token-text")
        page.route("**/api/now", hold_the_wrong)
        with page.expect_request("**/api/now"):
            page.fill("#token-text", "x" * 20)
            page.keyboard.press("Enter")
        page.fill("#token-text", TOKEN)
        page.keyboard.press("Enter")
        held[0].continue_()
        drawn(page)
        assert page.is_visible("#content") and not page.is_visible("#token")


@pytest.mark.more
def test_a_server_that_is_gone_is_said_and_what_was_read_stays(written: WrittenRoot, browser: Browser) -> None:
    with served(written.root.url) as server, opened(browser, server.url, complaints=True) as page:
        drawn(page)
        page.context.set_offline(True)
        page.wait_for_selector("#trouble >> text=does not answer")
        assert page.locator("#view-list summary").count() == 2
        page.context.set_offline(False)
        page.wait_for_selector("#trouble", state="hidden")


def test_the_graph_of_views_is_drawn_when_a_view_reads_another(written: WrittenRoot, browser: Browser) -> None:
    with served(written.root.url) as server, opened(browser, server.url) as page:
        drawn(page)
        assert page.locator("#view-list svg").count() == 0
        read_view(written.root, "late", "by_carrier")
        page.wait_for_selector("#view-list svg")
        picture = page.locator("#view-list svg")
        assert picture.get_attribute("aria-label") == (
            "The graph of views: by_carrier reads flights; late reads by_carrier"
        )
        places = picture.locator("[data-node]").evaluate_all("all => all.map(each => each.dataset.node)")
        assert sorted(places) == ["by_carrier", "flights", "late"]
        left = [float(picture.locator(f"[data-node={name}] rect").get_attribute("x") or 0) for name in places]
        assert sorted(places, key=dict(zip(places, left, strict=True)).__getitem__) == ["flights", "by_carrier", "late"]
        assert "aggregate, 3 rows" in (picture.text_content() or "")
        page.click("#view-list summary")
        assert "into Spark" in (page.text_content("#view-list [data-view=by_carrier]") or "")
