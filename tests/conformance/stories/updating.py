"""PUT and its conflicts, generation, immutable fields, the status subresource."""

from tests.conformance.play import Ask, story
from tests.conformance.stories.manifests import config_map, pod, service


@story
async def put_and_conflict(ask: Ask) -> None:
    made = await ask.create("configmaps", config_map(k="1"))
    await ask("PUT", "configmaps/a", {**made, "data": {"k": "2"}})
    await ask("PUT", "configmaps/a", {**made, "data": {"k": "3"}})
    await ask("PUT", "configmaps/a", config_map(k="4"))
    await ask("PUT", "configmaps/a", config_map("b", k="5"))
    await ask("PUT", "configmaps/b", config_map("b", k="6"))
    await ask("PUT", "configmaps/a", {**made, "metadata": {"name": "a", "uid": "11111111-2222-3333-4444-555555555555"}})
    await ask("PUT", "configmaps/a", {**made, "metadata": {"name": "a", "resourceVersion": "x"}})
    await ask("PUT", "configmaps/a", {**made, "metadata": {**made["metadata"], "resourceVersion": "", "labels": {}}})


@story
async def a_write_that_changes_nothing(ask: Ask) -> None:
    made = await ask.create("configmaps", config_map(k="1"))
    await ask("PUT", "configmaps/a", made, see="metadata")
    await ask.patch("configmaps/a", {"data": {"k": "1"}}, see="metadata")
    await ask.patch("configmaps/a", {}, see="metadata")
    await ask.get("configmaps/a", see="metadata")


@story
async def generation_counts_the_spec(ask: Ask) -> None:
    await ask.create("pods", pod(), see="metadata")
    await ask.patch("pods/a", {"metadata": {"labels": {"a": "b"}}}, see="metadata")
    await ask.patch("pods/a", {"spec": {"activeDeadlineSeconds": 60}}, see="metadata")
    await ask.patch("pods/a/status", {"status": {"phase": "Running"}}, see="metadata")
    await ask.create("services", service(), see="metadata")
    await ask.patch("services/peers", {"spec": {"selector": {"a": "c"}}}, see="metadata")


@story
async def pods_hardly_change(ask: Ask) -> None:
    await ask.create("pods", pod(), see="metadata.name")
    changed = [{"name": "trainer", "image": "trainer:2"}]
    await ask.patch("pods/a", {"spec": {"containers": changed}}, "strategic", see="spec.containers")
    await ask.patch("pods/a", {"spec": {"hostname": "x"}})
    await ask.patch("pods/a", {"spec": {"containers": [{"name": "other", "image": "x"}]}}, "strategic")
    await ask.patch("pods/a", {"spec": {"activeDeadlineSeconds": 60}}, see="spec.activeDeadlineSeconds")
    await ask.patch("pods/a", {"spec": {"activeDeadlineSeconds": 90}})
    await ask.patch("pods/a", {"spec": {"activeDeadlineSeconds": None}})
    await ask.patch("pods/a", {"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}})
    await ask.patch("pods/a", {"spec": {"terminationGracePeriodSeconds": 5}})
    await ask.patch("pods/a", {"spec": {"nodeName": "n1"}})
    await ask.patch("pods/a", {"metadata": {"name": "b"}})
    await ask.patch("pods/a", {"metadata": {"namespace": "default"}})


@story
async def status_is_written_alone(ask: Ask) -> None:
    made = await ask.create("pods", pod(), see="status")
    changed = {**made, "spec": {**made["spec"], "activeDeadlineSeconds": 5}, "status": {"phase": "Running"}}
    changed["metadata"] = {**made["metadata"], "labels": {"from": "status"}}
    await ask("PUT", "pods/a/status", changed)
    await ask.get("pods/a/status", see="status")
    await ask.patch("pods/a", {"status": {"phase": "Failed"}}, see="status")
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T12:00:00Z"}
    await ask.patch("pods/a/status", {"status": {"conditions": [condition]}}, "strategic", see="status")
    await ask.patch(
        "pods/a/status", {"status": {"conditions": [{**condition, "type": "Mine"}]}}, "strategic", see="status"
    )
    await ask.patch("pods/a/status", {"status": {"conditions": [condition]}}, see="status")
    await ask.patch("pods/a/status", {"status": {"containerStatuses": [{"name": "nobody"}]}}, "strategic")
    await ask.patch("pods/b/status", {"status": {"phase": "Failed"}})


@story
async def things_that_never_change(ask: Ask) -> None:
    await ask.create("configmaps", {**config_map(k="v"), "immutable": True})
    await ask.patch("configmaps/a", {"data": {"k": "w"}})
    await ask.patch("configmaps/a", {"immutable": False})
    await ask.patch("configmaps/a", {"metadata": {"labels": {"a": "b"}}}, see="metadata.labels")
    await ask.create("secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    await ask.patch("secrets/s", {"type": "mine/other"})
    await ask.create("services", service(), see="spec")
    await ask.patch("services/peers", {"spec": {"clusterIP": "10.96.7.7"}})
