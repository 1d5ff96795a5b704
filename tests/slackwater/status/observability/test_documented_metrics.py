"""The guide has the metrics that are declared."""

from __future__ import annotations

from tests.slackwater.status.observability.metric_table import PAGE, page_with_table


def test_the_table_in_the_guide_is_that_of_the_declarations() -> None:
    assert PAGE.read_text() == page_with_table(), "run: python -m tests.slackwater.status.observability.metric_table"
