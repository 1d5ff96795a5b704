from __future__ import annotations

import json
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from slackwater.testing.servers.s3_server import S3Server
from state.errors import CommitRefusedError, FencedError, NotFoundError
from state.lance.lance_access import lance_options, open_dataset
from state.lance.view_dataset import create, restore, tag_committed
from state.location import Location
from state.tables.records import ViewVersion

PATH, STATE_PATH = "views/totals-1.lance", "view_state/totals-1.lance"


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    if request.param == "local":
        return Location(str(tmp_path))
    server: S3Server = request.getfixturevalue("s3")
    return Location(f"s3://{request.getfixturevalue('bucket')}/root", server.storage_options)


def totals(n: int) -> pa.Table:
    return pa.table({"user": ["a"], "n": [n]})


def upserted(dataset: lance.LanceDataset, n: int) -> lance.LanceDataset:
    """The dataset one version later."""
    merge = dataset.merge_insert("user").when_matched_update_all().when_not_matched_insert_all()
    transaction, _ = merge.execute_uncommitted(totals(n))
    return lance.LanceDataset.commit(dataset, transaction, max_retries=0)


def content(root: Location, path: str, version: int | str) -> list[int]:
    values: list[int] = open_dataset(root.child(path), version).to_table()["n"].to_pylist()
    return values


def test_a_restored_view_holds_the_recorded_rows_and_refuses_what_was_in_flight(root: Location) -> None:
    recorded = create(root.child(PATH), totals(1))
    ahead = upserted(recorded, 2)  # committed for an epoch that never was
    in_flight = upserted(ahead, 3)
    merge = ahead.merge_insert("user").when_matched_update_all().when_not_matched_insert_all()
    transaction, _ = merge.execute_uncommitted(totals(4))
    restored = restore(root, ViewVersion("totals", PATH, 1), term=2)
    assert restored == ViewVersion("totals", PATH, in_flight.version + 1)
    assert content(root, PATH, restored.version) == [1]
    with pytest.raises(OSError, match="conflict"):
        lance.LanceDataset.commit(ahead, transaction, max_retries=0)
    assert upserted(open_dataset(root.child(PATH)), 5).version == restored.version + 1


def test_the_state_of_a_view_is_restored_with_it(root: Location) -> None:
    create(root.child(PATH), totals(1))
    upserted(create(root.child(STATE_PATH), totals(10)), 20)
    restored = restore(root, ViewVersion("totals", PATH, 1, STATE_PATH, 1), term=1)
    assert restored == ViewVersion("totals", PATH, 2, STATE_PATH, 3)
    assert content(root, STATE_PATH, 3) == [10]


def test_the_fence_is_tagged_with_its_term_alone(root: Location) -> None:
    dataset = create(root.child(PATH), totals(1))
    view = restore(root, ViewVersion("totals", PATH, 1), term=1)
    view = restore(root, view, term=4)
    tags = open_dataset(root.child(PATH)).tags.list()
    assert {tag: each["version"] for tag, each in tags.items()} == {"term-4": view.version}
    with pytest.raises(FencedError, match="fenced by term 4, ours is 3"):
        restore(root, view, term=3)
    assert dataset.version == 1


@pytest.mark.more_after(1)
def test_a_plain_lance_reader_opens_the_committed_tag(root: Location) -> None:
    dataset = create(root.child(PATH), totals(1))
    tag_committed(root, ViewVersion("totals", PATH, 1))
    dataset = upserted(dataset, 2)
    tag_committed(root, ViewVersion("totals", PATH, 2))
    tag_committed(root, ViewVersion("totals", PATH, 1))  # by a process that was frozen: the tag never goes back
    upserted(dataset, 3)  # a later version that no epoch names yet
    location = root.child(PATH)
    program = (
        "import json, sys, lance; uri, options = json.loads(sys.argv[1]);"
        "print(lance.dataset(uri, version='committed', storage_options=options).to_table()['n'].to_pylist());"
        "assert not any(name.split('.')[0] in ('state', 'slackwater') for name in sys.modules)"
    )
    arguments = json.dumps([location.lance_uri, lance_options(location)])
    done = subprocess.run([sys.executable, "-c", program, arguments], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[2]", done.stderr


def test_a_version_that_is_not_there_is_named(root: Location) -> None:
    create(root.child(PATH), totals(1))
    for attempt in (
        lambda: restore(root, ViewVersion("totals", PATH, 9), term=1),
        lambda: tag_committed(root, ViewVersion("totals", PATH, 9)),
    ):
        with pytest.raises(NotFoundError, match="totals-1"):
            attempt()


def test_a_view_is_created_once(root: Location) -> None:
    create(root.child(PATH), totals(1))
    with pytest.raises(CommitRefusedError):
        create(root.child(PATH), totals(2))
    assert content(root, PATH, 1) == [1]


def test_a_tag_whose_answer_was_lost_is_there_all_the_same(s3: S3Server, bucket: str) -> None:
    direct = Location(f"s3://{bucket}/root", s3.storage_options)
    view = ViewVersion("totals", PATH, create(direct.child(PATH), totals(1)).version)
    with closing(s3.fault_proxy(random.Random(1))) as proxy:
        lossy = Location(f"s3://{bucket}/root", proxy.storage_options)
        proxy.on("PUT", f"root/{PATH}/_refs/tags/*", times=2).refuse(applied=True)
        restored = restore(lossy, view, term=1)
        tag_committed(lossy, restored)
        assert len([request for request in proxy.requests if request.fault]) == 2
    assert content(direct, PATH, "committed") == content(direct, PATH, "term-1") == [1]
