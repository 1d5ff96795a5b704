"""The demo, as `make demo` runs it."""

from __future__ import annotations

import pytest

from tests.slackwater.cli.command import slackwater

pytestmark = [pytest.mark.ray, pytest.mark.long]


@pytest.mark.parametrize("place", [(), ("--local",)], ids=["s3", "local"])
def test_the_demo_survives_its_crash_with_all_views_equal(place: tuple[str, ...]) -> None:
    ended = slackwater("demo", *place, timeout_s=500)
    assert ended.code == 0, ended.out + ended.err
    assert "all views equal: no row lost, none twice" in ended.out
    assert ended.out.count("equal") >= 28
    at_the_end = ended.out.partition("at the end: by_carrier, as others read it")[2]
    assert [line.split()[0] for line in at_the_end.splitlines() if line.endswith("equal")][:2] == ["Delta", "Iceberg"]
