"""Tests of the proxy: it follows its rules, records requests, and is honest otherwise."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from typing import Any

import obstore
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store

from slackwater.testing.proxies.fault_proxy import FaultProxy
from slackwater.testing.servers.s3_server import S3Server
from state.clock import SystemClock

_CONTENT = bytes(range(256)) * 400


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    with closing(s3.fault_proxy(random.Random(7))) as proxy:
        yield proxy


def _store(proxy: FaultProxy, bucket: str, max_retries: int = 0) -> Any:
    options = {name: value for name, value in proxy.storage_options.items() if name != "allow_http"}
    return S3Store(
        bucket,
        client_options={"allow_http": True},
        retry_config={"max_retries": max_retries, "retry_timeout": timedelta(seconds=30)},
        **options,  # type: ignore[arg-type]
    )


def _is_there(s3: S3Server, bucket: str, key: str) -> bool:
    return key in [entry["Key"] for entry in s3.client().list_objects_v2(Bucket=bucket).get("Contents", [])]


def test_without_rules_everything_passes(s3: S3Server, bucket: str, proxy: FaultProxy) -> None:
    store = _store(proxy, bucket)
    obstore.put(store, "a", _CONTENT)
    assert bytes(obstore.get(store, "a").bytes()) == _CONTENT
    assert [(request.method, request.status, request.fault) for request in proxy.requests] == [
        ("PUT", 200, None),
        ("GET", 200, None),
    ]


@pytest.mark.parametrize(("applied", "status"), [(False, 0), (True, 200)])
@pytest.mark.parametrize("kind", ["refuse", "reset"])
def test_an_answer_can_be_lost_before_and_after_the_work_was_done(
    s3: S3Server, bucket: str, proxy: FaultProxy, kind: str, applied: bool, status: int
) -> None:
    getattr(proxy.on("PUT"), kind)(applied=applied)
    with pytest.raises(BaseError, match="503" if kind == "refuse" else "error sending request"):
        obstore.put(_store(proxy, bucket), "a", b"1", use_multipart=False)
    assert _is_there(s3, bucket, "a") is applied
    assert [(request.key, request.status) for request in proxy.met(kind)] == [("a", status)]


def test_a_body_is_cut_after_its_length_was_promised(s3: S3Server, bucket: str, proxy: FaultProxy) -> None:
    s3.put(bucket, "a", _CONTENT)
    proxy.on("GET").cut()
    with pytest.raises(BaseError, match="body error"):
        obstore.get(_store(proxy, bucket), "a").bytes()
    assert proxy.met("cut")


def test_an_answer_without_a_body_is_cut_in_its_head(s3: S3Server, bucket: str, proxy: FaultProxy) -> None:
    proxy.on("PUT").cut()
    with pytest.raises(BaseError):
        obstore.put(_store(proxy, bucket), "a", b"1", use_multipart=False)
    assert _is_there(s3, bucket, "a") and proxy.met("cut")


def test_a_slow_answer_is_whole_and_not_early(s3: S3Server, bucket: str, proxy: FaultProxy) -> None:
    s3.put(bucket, "a", _CONTENT)
    proxy.on("GET").slow(0.3)
    clock = SystemClock()
    start_s = clock.monotonic()
    assert bytes(obstore.get(_store(proxy, bucket), "a").bytes()) == _CONTENT
    assert clock.monotonic() - start_s >= 0.3


def test_what_is_frozen_stays_so_until_healed_and_then_happens_late(
    s3: S3Server, bucket: str, proxy: FaultProxy
) -> None:
    proxy.on("PUT").freeze()
    clock = SystemClock()
    with ThreadPoolExecutor(1) as threads:
        put = threads.submit(lambda: obstore.put(_store(proxy, bucket), "a", b"1", use_multipart=False))
        deadline_s = clock.monotonic() + 20
        while not proxy.met("freeze"):
            assert clock.monotonic() < deadline_s
            clock.sleep(0.01)
        assert not put.done() and not _is_there(s3, bucket, "a")
        proxy.heal()
        put.result(timeout=20)
    assert _is_there(s3, bucket, "a")
    obstore.put(_store(proxy, bucket), "b", b"1")  # healed: no rule is left


def test_a_listing_is_no_get_and_is_known_by_its_prefix(s3: S3Server, bucket: str, proxy: FaultProxy) -> None:
    s3.put(bucket, "in/a", b"1")
    proxy.on("LIST", "in/*").refuse()
    store = _store(proxy, bucket)
    assert bytes(obstore.get(store, "in/a").bytes()) == b"1"
    assert len(obstore.list(store, "other").collect()) == 0
    with pytest.raises(BaseError, match="503"):
        obstore.list(store, "in").collect()


def test_a_rule_can_wait_and_can_be_used_up(s3: S3Server, bucket: str, proxy: FaultProxy) -> None:
    s3.put(bucket, "in/a", b"1")
    s3.put(bucket, "a", b"1")
    proxy.on("GET", "in/*", skip=2, times=3).refuse()
    store = _store(proxy, bucket)
    outcomes = []
    for _ in range(7):
        obstore.get(store, "a")
        try:
            obstore.get(store, "in/a")
            outcomes.append("ok")
        except BaseError:
            outcomes.append("503")
    assert outcomes == ["ok", "ok", "503", "503", "503", "ok", "ok"]


def test_chance_comes_from_the_seed(s3: S3Server, bucket: str) -> None:
    s3.put(bucket, "a", b"1")
    outcomes = []
    for seed in (1, 1, 2):
        with closing(s3.fault_proxy(random.Random(seed))) as proxy:
            proxy.on("GET", probability=0.5).refuse()
            store = _store(proxy, bucket)
            for _ in range(30):
                try:
                    obstore.get(store, "a")
                except BaseError:
                    pass
            outcomes.append([request.fault for request in proxy.requests])
    assert outcomes[0] == outcomes[1] != outcomes[2]
    assert 5 < outcomes[0].count("refuse") < 25
