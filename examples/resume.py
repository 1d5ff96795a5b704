"""A stopped run resumes at its row.  A killed one does the same; `slackwater demo` shows that."""

import sys
import tempfile
from pathlib import Path

import slackwater as sw

FILES, ROWS = 60, 500


def make_pipeline(here: Path) -> sw.Pipeline:
    """Few files wait at a time, so that the stop comes in the middle of the files."""
    settings = sw.Settings(fetch=sw.settings.FetchSettings(max_files_waiting=5))
    pipeline = sw.Pipeline("readings", root=here / "views", settings=settings)
    pipeline.source(
        "readings",
        here / "raw",
        format="csv",
        schema="sensor int, value double",
        discovery=sw.Listing(interval_s=0.2),
    )
    pipeline.view("by_sensor", "SELECT sensor, count(*) AS n, max(value) AS highest FROM readings GROUP BY sensor")
    return pipeline


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        (here / "raw").mkdir()
        for number in range(FILES):
            lines = [f"{row % 10},{number + row / ROWS}" for row in range(ROWS)]
            (here / "raw" / f"{number:03d}.csv").write_text("sensor,value\n" + "\n".join(lines) + "\n")

        with make_pipeline(here).start() as run:
            while run.status().epochs < 2 and not run.wait(timeout_s=0.05):
                pass
            first = run.stop()
        done = sw.open(here / "views").ledger.files(status="done").num_rows
        print(f"stopped after {first.epochs} epochs: {done} of {FILES} files, {first.rows:,} rows")

        second = make_pipeline(here).run(until="caught_up")
        print(f"went on with the other {second.files} files, {second.rows:,} rows")
        print(sw.open(here / "views").snapshot().view("by_sensor").to_pandas().sort_values("sensor"))
        if first.rows + second.rows != FILES * ROWS:
            sys.exit("a row was lost, or read twice")


if __name__ == "__main__":
    main()
