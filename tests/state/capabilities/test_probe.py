"""The probe of a store: honest stores pass, and each missing capability is named."""

from __future__ import annotations

import json
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import obstore
import pytest

from slackwater.testing.servers.s3_server import S3Server
from state.capabilities.probe import Capability, probe
from state.capabilities.store_record import NAME, read_record, require_capable, root_identity
from state.clock import ManualClock, SystemClock
from state.errors import AccessDeniedError, BucketNotFoundError, RemovalRefusedError, StoreCapabilityError
from state.location import Location
from state.objects.object_client import object_client

UNIQUE = "probe-1"


def keys(s3: S3Server, bucket: str) -> list[str]:
    return [each["Key"] for each in s3.client().list_objects_v2(Bucket=bucket).get("Contents", [])]


def test_an_s3_server_has_all_capabilities_and_the_probe_leaves_nothing(s3: S3Server, bucket: str) -> None:
    assert probe(s3.location(bucket, "root"), UNIQUE).violations == {}
    assert keys(s3, bucket) == []


def test_a_local_directory_has_all_capabilities_and_the_probe_leaves_nothing(tmp_path: Path) -> None:
    assert probe(Location(str(tmp_path / "lake" / "root")), UNIQUE).violations == {}
    assert list(tmp_path.iterdir()) == []


def test_a_local_directory_that_exists_stays(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("n\n1\n")
    probe(Location(str(tmp_path)), UNIQUE)
    assert [each.name for each in tmp_path.iterdir()] == ["mine.csv"]


@pytest.mark.parametrize(
    ("ignores", "missing", "shown"),
    [
        (("If-None-Match",), Capability.CREATE_IF_ABSENT, "replaced an existing one"),
        (("If-Match",), Capability.REPLACE_IF_MATCH, "names an old ETag"),
        (("Range",), Capability.RANGED_READS, "with the whole object"),
    ],
)
def test_a_store_that_ignores_a_header_is_refused_with_the_missing_capability(
    s3: S3Server, bucket: str, ignores: Collection[str], missing: Capability, shown: str
) -> None:
    root = Location(f"s3://{bucket}/root", s3.faithless_proxy(ignores).storage_options)
    assert probe(root, UNIQUE).missing == (missing,)
    with pytest.raises(StoreCapabilityError) as refusal:
        require_capable(root, SystemClock(), UNIQUE, lambda: False)
    assert missing.value in str(refusal.value) and shown in str(refusal.value), refusal.value
    assert "nothing was written: use a store that has it" in str(refusal.value)
    assert keys(s3, bucket) == []


def test_a_store_whose_listings_lag_is_refused(s3: S3Server, bucket: str) -> None:
    root = Location(f"s3://{bucket}/root", s3.faithless_proxy(hides=True).storage_options)
    with pytest.raises(StoreCapabilityError, match="listings that show new objects"):
        require_capable(root, SystemClock(), UNIQUE, lambda: False)
    assert keys(s3, bucket) == []


def test_etags_without_quotes_are_accepted(s3: S3Server, bucket: str) -> None:
    proxy = s3.faithless_proxy(strips_quotes=True)
    assert probe(Location(f"s3://{bucket}/root", proxy.storage_options), UNIQUE).violations == {}
    put = obstore.put(object_client(Location(f"s3://{bucket}", proxy.storage_options)), "a", b"1")
    assert '"' not in str(put["e_tag"]), "the proxy has passed quotes on"


@pytest.mark.parametrize("applied", [False, True])
def test_a_lost_answer_is_no_violation_and_the_probe_begins_again(s3: S3Server, bucket: str, applied: bool) -> None:
    proxy = s3.fault_proxy(Random(1))
    proxy.on("PUT", times=1).reset(applied=applied)
    assert probe(Location(f"s3://{bucket}/root", proxy.storage_options), UNIQUE).violations == {}
    assert len(proxy.met("reset")) == 1
    assert keys(s3, bucket) == []


def test_the_second_attempt_of_a_probe_deletes_the_object_of_the_first(s3: S3Server, bucket: str) -> None:
    proxy = s3.fault_proxy(Random(1))
    proxy.on("PUT", times=1).reset(applied=True)
    proxy.on("POST", times=1).reset(applied=False)
    proxy.on("DELETE", times=1).reset(applied=False)
    probed = probe(Location(f"s3://{bucket}/root", proxy.storage_options), UNIQUE)
    assert (probed.violations, probed.left) == ({}, "")
    assert len(proxy.met("reset")) >= 2, "the deletion of the first attempt failed"
    assert keys(s3, bucket) == []


def test_a_store_is_probed_once(s3: S3Server, bucket: str) -> None:
    proxy = s3.proxy()
    root, clock = Location(f"s3://{bucket}/root", proxy.storage_options), ManualClock()
    record = require_capable(root, clock, UNIQUE, lambda: False)
    assert (record.missing, record.probed_at) == ((), clock.now())
    assert json.loads(bytes(obstore.get(object_client(root), NAME).bytes()))["capabilities"] == [
        each.value for each in Capability
    ]
    with proxy.recording() as requests:
        assert require_capable(root, SystemClock(), "probe-2", lambda: True) == record
    assert [(each.method, each.key) for each in requests] == [("GET", "root/store.json")]
    assert keys(s3, bucket) == ["root/store.json"]


def test_an_existing_root_on_such_a_store_is_recorded_and_warns_until_its_store_is_better(
    s3: S3Server, bucket: str
) -> None:
    bad = Location(f"s3://{bucket}/root", s3.faithless_proxy(("If-None-Match",)).storage_options)
    identities = set()
    for _ in range(2):
        record = require_capable(bad, SystemClock(), UNIQUE, lambda: True)
        identities.add(record.identity)
        assert record.missing == (Capability.CREATE_IF_ABSENT.value,)
        assert read_record(bad) == record
        warning = record.warning(bad)
        assert f"s3://{bucket}/root lacks conditional creation" in warning and "copy the root" in warning
    good = require_capable(s3.location(bucket, "root"), SystemClock(), UNIQUE, lambda: True)
    assert good.missing == () and good.warning(bad) == ""
    assert read_record(bad) == good
    assert identities == {good.identity} and good.identity, "each probe writes the record, with the same identity"


def test_runs_that_start_on_a_new_root_at_once_agree_on_its_identity(tmp_path: Path) -> None:
    def start(number: int) -> str:
        return require_capable(
            Location(str(tmp_path / "root")), SystemClock(), f"probe-{number}", lambda: False
        ).identity

    with ThreadPoolExecutor(8) as threads:
        identities = set(threads.map(start, range(8)))
    assert identities == {root_identity(Location(str(tmp_path / "root")))} != {""}


def test_a_linked_directory_of_probes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "users").mkdir()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "probes").symlink_to(tmp_path / "users")
    with pytest.raises(RemovalRefusedError, match="'probes', which is a link"):
        probe(Location(str(tmp_path / "root")), UNIQUE)
    assert list((tmp_path / "users").iterdir()) == []


def test_a_torn_record_is_written_again(tmp_path: Path) -> None:
    root = Location(str(tmp_path))
    (tmp_path / NAME).write_bytes(b'{"probed_at": ')
    assert read_record(root) is None
    assert require_capable(root, SystemClock(), UNIQUE, lambda: True) == read_record(root)


def test_a_denied_or_missing_bucket_is_no_missing_capability(s3: S3Server, bucket: str) -> None:
    denied = Location(f"s3://{bucket}/root", {**s3.storage_options, "secret_access_key": "wrong"})
    with pytest.raises(AccessDeniedError):
        require_capable(denied, SystemClock(), UNIQUE, lambda: False)
    with pytest.raises(BucketNotFoundError):
        require_capable(s3.location("no-such-bucket", "root"), SystemClock(), UNIQUE, lambda: False)
