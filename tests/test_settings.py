"""Tests of the settings: one that is not valid is refused by name when it is made."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import slackwater as sw
from actors.formats.options import Json
from actors.settings import BarrierSettings, FetchSettings, ReadLimits
from actors.sources.discovery import Discovery, Listing, Notifications
from actors.sources.source import SourceDefinition
from slackwater.settings import RaySettings
from state.errors import SettingsError
from state.location import Location

_QUEUE = "https://sqs.eu-central-1.amazonaws.com/111122223333/raw-events"


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        (BarrierSettings, "interval_s", 0),
        (BarrierSettings, "interval_s", float("nan")),
        (BarrierSettings, "max_in_flight", -1),
        (BarrierSettings, "stalled_epoch_s", 0),
        (BarrierSettings, "max_epoch_bytes", "128 MiB"),
        (BarrierSettings, "idle_interval_s", 2.0),
        (FetchSettings, "num_fetchers", 0),
        (FetchSettings, "num_fetchers", 257),
        (FetchSettings, "num_fetchers", True),
        (FetchSettings, "num_fetchers", (4, 2)),
        (FetchSettings, "num_fetchers", (1, 2, 3)),
        (FetchSettings, "concurrency", True),
        (FetchSettings, "max_attempts", None),
        (ReadLimits, "max_nesting", 0),
        (ReadLimits, "max_expansion", float("nan")),
        (RaySettings, "num_cpus", 0),
        (RaySettings, "namespace", ""),
        (sw.Settings, "durability", "none"),
        (sw.Settings, "durability", None),
        (sw.Settings, "backfill_weight", 0),
        (sw.Settings, "backfill_weight", 1.1),
    ],
)
def test_an_impossible_value_is_refused_by_name(kind: type[Any], option: str, value: object) -> None:
    with pytest.raises(SettingsError, match=option):
        kind(**{option: value})


def test_a_cluster_that_runs_already_has_its_own_cpus() -> None:
    with pytest.raises(SettingsError, match="num_cpus"):
        RaySettings(address="auto", num_cpus=2)


def test_settings_are_keyword_only_and_frozen() -> None:
    with pytest.raises(TypeError):
        BarrierSettings(1.0)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        BarrierSettings().interval_s = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"queue_url": "arn:aws:sqs:eu-central-1:111122223333:raw-events"}, "begins with https://"),
        ({"queue_url": "https://sqs.eu-central-1.amazonaws.com/"}, "does not name a queue"),
        ({"queue_url": _QUEUE + ".fifo"}, "FIFO"),
        ({"queue_url": None}, "queue_url"),
        ({"queue_url": "https://[1/q"}, "queue_url"),
        ({"endpoint": "localhost:4566"}, "endpoint"),
        ({"visibility_s": 0}, "visibility_s"),
        ({"visibility_s": 50_000}, "43200 seconds"),
        ({"pollers": 0}, "pollers"),
        ({"name_actors": 0}, "name_actors=0.: give a whole number from 1 to 256"),
        ({"relist_interval_s": float("nan")}, "relist_interval_s"),
        ({"max_requests_per_hour": None}, "max_requests_per_hour"),
    ],
)
def test_a_queue_that_cannot_be_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        Notifications(**{"queue_url": _QUEUE, **options})


@pytest.mark.parametrize("option", ["queue_url", "endpoint"])
@pytest.mark.parametrize("url", ["https://me:PLANTED@host/1/q", "https://host/1/q?X-Amz-Signature=PLANTED"])
def test_credentials_in_a_queues_url_are_refused_and_not_repeated(option: str, url: str) -> None:
    with pytest.raises(SettingsError, match="storage_options") as refused:
        Notifications(**dict[str, Any]({"queue_url": _QUEUE, option: url}))
    assert "PLANTED" not in str(refused.value)


def test_both_kinds_of_discovery_leave_out_the_same_objects() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    made: Discovery
    plain = noon.replace(tzinfo=None)
    for made in (Listing(modified_after=plain), Notifications(queue_url=_QUEUE, modified_after=plain)):
        assert made.not_before(None) == noon
    for made in (Listing(include_existing=False), Notifications(queue_url=_QUEUE, include_existing=False)):
        assert made.not_before(noon) == noon
    assert (Listing(interval_s=3).relist_s, Notifications(queue_url=_QUEUE).relist_s) == (3, 86_400)


@pytest.mark.parametrize("number", [0, 257, 1.0, True, None])
def test_a_number_of_name_actors_is_a_whole_number_of_vnodes(number: Any) -> None:
    with pytest.raises(SettingsError, match=r"Listing\(name_actors=.*\): give a whole number from 1 to 256"):
        Listing(name_actors=number)
    assert Listing(name_actors=256).name_actors == 256


def test_only_a_bucket_of_s3_has_notifications() -> None:
    pipeline = sw.Pipeline("p", "/root")
    for url in ("/data", "gs://raw", "http://host/raw"):
        with pytest.raises(SettingsError, match=r"source a: only an s3:// bucket .*discovery=Listing"):
            pipeline.source("a", url, format="json", discovery=Notifications(queue_url=_QUEUE))
    pipeline.source("a", "s3://raw/in", format="json", discovery=Notifications(queue_url=_QUEUE))


def test_a_queue_has_one_source() -> None:
    pipeline = sw.Pipeline("p", "/root")
    pipeline.source("a", "s3://raw/a", format="json", discovery=Notifications(queue_url=_QUEUE))
    with pytest.raises(SettingsError, match="source b: source a already reads the queue"):
        pipeline.source("b", "s3://raw/b", format="json", discovery=Notifications(queue_url=_QUEUE))
    pipeline.source("b", "s3://raw/b", format="json", discovery=Notifications(queue_url=_QUEUE + "-b"))


def test_how_files_are_found_may_change_over_the_life_of_a_root() -> None:
    def recorded(discovery: Discovery) -> str:
        return SourceDefinition(
            name="a", location=Location("s3://raw/in"), format=Json(), discovery=discovery
        ).to_json()

    assert recorded(Listing()) == recorded(Notifications(queue_url=_QUEUE))


def test_one_number_of_fetch_actors_is_the_fewest_and_the_most() -> None:
    assert FetchSettings(num_fetchers=3).fetcher_bounds == (3, 3)
    assert FetchSettings(num_fetchers=(1, 8)).fetcher_bounds == (1, 8)
