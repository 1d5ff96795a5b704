"""A real browser, where there is one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

MUST = "SLACKWATER_BROWSER_TESTS"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


# Of a module: while it lives, Playwright has an event loop that runs in the thread of the tests.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, that of the machine.  Without one the test is skipped, unless `SLACKWATER_BROWSER_TESTS=must`."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        say = pytest.fail if os.environ.get(MUST) == "must" else pytest.skip
        say(f"there is none of {', '.join(_NAMES)} on this machine: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # As root Chromium has no sandbox of its own; it opens nothing but our page.
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield opened
        opened.close()
