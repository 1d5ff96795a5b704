"""`python -m tests.slackwater.status.observability.metric_table`: writes the table of metrics into the guide."""

from __future__ import annotations

from actors.telemetry.metrics import Metric
from slackwater.status.observability.run_metrics import METRICS
from tests.repository import REPOSITORY

PAGE = REPOSITORY / "docs" / "guide" / "metrics.md"
_BEGIN, _END = "## The metrics", "Counters begin at"


def metric_table() -> str:
    """One row for each metric, in the order of their declaration."""
    rows = [f"| `{each.name}` | {each.kind} | {each.unit} | {_labels(each)} | {each.description} |" for each in METRICS]
    return "\n".join(["| metric | | unit | labels | |", "|---|---|---|---|---|", *rows])


def _labels(metric: Metric) -> str:
    return ", ".join(f"`{label}`" for label in metric.labels)


def page_with_table() -> str:
    """The page with the table as it should be."""
    text = PAGE.read_text()
    begin, end = text.index(_BEGIN), text.index(_END)
    introduction = text[begin:end].split("\n| metric |")[0].split("\n<!--")[0].rstrip()
    return f"{text[:begin]}{introduction}\n\n{metric_table()}\n\n{text[end:]}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table())
