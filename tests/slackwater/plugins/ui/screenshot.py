"""Takes the picture for the guide: `python -m tests.slackwater.plugins.ui.screenshot docs/images/ui.png`."""

from __future__ import annotations

import json
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from random import Random

from playwright.sync_api import Route, sync_playwright

from state.location import Location
from tests.slackwater.plugins.ui.living_root import busy_status, commit_epochs, running
from tests.slackwater.plugins.ui.served_page import served
from tests.slackwater.reading.written_root import write_root

_SIZE = {"width": 1120, "height": 960}


def main(picture: Path) -> None:
    """Serves a root that looks busy, opens it, and writes what Chromium shows; names of this machine are replaced."""
    place = Path(tempfile.mkdtemp())
    written = write_root(Location(str(place / "root")), Location(str(place / "raw")))
    epochs = commit_epochs(written.root, 120, Random(8))
    names = {written.raw.url: "s3://raw/flights", written.root.url: "s3://lake/flights"}

    def renamed(route: Route) -> None:
        response = route.fetch()
        text = response.text()
        for name, shown in names.items():
            text = text.replace(json.dumps(name)[1:-1], shown)
        route.fulfill(response=response, body=text.replace(json.dumps(socket.gethostname()), '"node-1"'))

    with running(written.root, busy_status(epochs[-1])), served(written.root.url) as server, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=_SIZE, color_scheme="light", reduced_motion="reduce")  # type: ignore[arg-type]
        page.route("**/api/*", renamed)
        page.goto(server.url)
        page.wait_for_selector("#bad-records > *")
        page.screenshot(path=picture)
        browser.close()
    shutil.rmtree(place)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
