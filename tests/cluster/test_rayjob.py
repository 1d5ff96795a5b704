"""The example for Kubernetes names fields that a RayJob has, and fits the job that it runs."""

from __future__ import annotations

import copy
import re
from typing import Any

import jsonschema
import pytest
import yaml

import slackwater as sw
from tests.repository import REPOSITORY

_EXAMPLE = REPOSITORY / "examples" / "flights_rayjob.yaml"


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


_TEXT, _WHOLE, _FLAG = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_NAMED = _object("name", name=_TEXT)
_CONTAINER = _object(
    "name image",
    name=_TEXT,
    image=_TEXT,
    env=_list(_object("name", name=_TEXT, value=_TEXT)),
    envFrom=_list(_object(secretRef=_NAMED, configMapRef=_NAMED)),
    ports=_list(_object("containerPort", containerPort=_WHOLE, name=_TEXT)),
    resources=_object(requests=_TEXTS, limits=_TEXTS),
)
_POD = _object("spec", spec=_object("containers", containers=_list(_CONTAINER)))
# What the example uses of the custom resource RayJob of KubeRay 1.7 (ray.io/v1), by the names and types of its fields.
RAY_JOB = _object(
    "apiVersion kind metadata spec",
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayJob"},
    metadata=_NAMED,
    spec=_object(
        entrypoint=_TEXT,
        runtimeEnvYAML=_TEXT,
        backoffLimit=_WHOLE,
        shutdownAfterJobFinishes=_FLAG,
        ttlSecondsAfterFinished=_WHOLE,
        rayClusterSpec=_object(
            "headGroupSpec",
            rayVersion=_TEXT,
            authOptions=_object("mode", mode={"enum": ["disabled", "token"]}, secretName=_TEXT),
            headGroupSpec=_object(
                "template",
                serviceType={"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
                enableIngress=_FLAG,
                rayStartParams=_TEXTS,
                template=_POD,
            ),
            workerGroupSpecs=_list(
                _object(
                    "groupName minReplicas maxReplicas template",
                    groupName=_TEXT,
                    replicas=_WHOLE,
                    minReplicas=_WHOLE,
                    maxReplicas=_WHOLE,
                    rayStartParams=_TEXTS,
                    template=_POD,
                )
            ),
        ),
    ),
)


@pytest.fixture(scope="module")
def ray_job() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(_EXAMPLE.read_text(encoding="utf-8"))
    return loaded


def test_every_field_of_the_example_is_one_of_a_ray_job(ray_job: dict[str, Any]) -> None:
    jsonschema.validate(ray_job, RAY_JOB)


def test_a_misspelt_field_would_be_noticed(ray_job: dict[str, Any]) -> None:
    wrong = copy.deepcopy(ray_job)
    wrong["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]["replica"] = 3
    with pytest.raises(jsonschema.ValidationError, match="replica"):
        jsonschema.validate(wrong, RAY_JOB)


def test_the_job_gets_what_its_script_asks_for(ray_job: dict[str, Any]) -> None:
    spec = ray_job["spec"]
    script = _EXAMPLE.with_name(spec["entrypoint"].rsplit("/", 1)[1]).read_text(encoding="utf-8")
    asked = set(re.findall(r'environ\.get\("(FLIGHTS_\w+)"', script))
    groups = [spec["rayClusterSpec"]["headGroupSpec"], *spec["rayClusterSpec"]["workerGroupSpecs"]]
    assert asked == {"FLIGHTS_RAW", "FLIGHTS_ROOT"}
    for group in groups:
        (container,) = group["template"]["spec"]["containers"]
        assert asked <= {each["name"] for each in container["env"]}
    assert yaml.safe_load(spec["runtimeEnvYAML"])["env_vars"] == {"RAY_JOB_STOP_WAIT_TIME_S": "120"}


def test_the_cluster_has_the_version_of_ray_that_is_tested(ray_job: dict[str, Any]) -> None:
    locked = re.search(r"^ray==(\S+)", (REPOSITORY / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    assert locked is not None
    assert ray_job["spec"]["rayClusterSpec"]["rayVersion"] == locked[1]


def test_the_cluster_asks_for_a_token_and_its_dashboard_is_not_exposed(ray_job: dict[str, Any]) -> None:
    cluster = ray_job["spec"]["rayClusterSpec"]
    head = cluster["headGroupSpec"]
    assert cluster["authOptions"] == {"mode": "token"}
    assert (head["serviceType"], head["enableIngress"]) == ("ClusterIP", False)
    assert "dashboard-host" not in head["rayStartParams"]
    (container,) = head["template"]["spec"]["containers"]
    # Without these two ports KubeRay adds its defaults, among them the port of Ray's client.
    assert {port["name"] for port in container["ports"]} == {"gcs-server", "dashboard"}


def test_the_head_has_room_for_the_driver_of_spark(ray_job: dict[str, Any]) -> None:
    (container,) = ray_job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"]
    gib = int(container["resources"]["limits"]["memory"].removesuffix("Gi"))
    heap_gib = int(sw.settings.SparkSettings().driver_memory.removesuffix("g"))
    # Ray's object store takes three tenths; the actors that control the run, and the processes of Ray, 2 GiB.
    assert 0.7 * gib >= heap_gib + 2
