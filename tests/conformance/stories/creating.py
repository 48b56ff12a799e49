"""Creation: names, generated names, what a client may not set, dry run, bodies that are no objects."""

from tests.conformance.play import Ask, story
from tests.conformance.stories.manifests import claim, config_map, pod, service


@story
async def create_and_read(ask: Ask) -> None:
    await ask.create("configmaps", config_map(key="value"))
    await ask.get("configmaps/a")
    await ask.get("configmaps/b")
    await ask.create("configmaps", config_map(key="other"))
    await ask.get("configmaps?fieldSelector=metadata.name%3Da")


@story
async def names_are_generated(ask: Ask) -> None:
    await ask.create("configmaps", {"metadata": {"generateName": "generated-"}, "data": {"a": "b"}})
    await ask.create("configmaps", {"metadata": {"name": "", "generateName": "generated-"}})
    await ask.create("configmaps", {"metadata": {"name": "given", "generateName": "generated-"}})
    await ask.create("configmaps", {"metadata": {"generateName": "Not Valid-"}})
    await ask.create("configmaps", {"metadata": {}})


@story
async def names_have_rules(ask: Ask) -> None:
    for name in ("Upper", "under_score", "-a", "a" * 254, "a..b", "a/b", "."):
        await ask.create("configmaps?dryRun=All", config_map(name))
    await ask.create("services?dryRun=All", service("1a"))
    await ask.create("services?dryRun=All", service("a.b"))
    await ask.create("services?dryRun=All", service("a" * 64))
    await ask.create("pods?dryRun=All", pod("a" * 64), see="metadata.name")
    await ask.create("/api/v1/namespaces?dryRun=All", {"metadata": {"name": "a.b"}})
    await ask.create("persistentvolumeclaims?dryRun=All", claim("A"))


@story
async def labels_and_annotations_have_rules(ask: Ask) -> None:
    for labels in ({"a/b/c": "x"}, {"": "x"}, {"a": "not valid"}, {"a": "x" * 64}, {"/a": "x"}, {"A.b/": "y"}):
        await ask.create("configmaps?dryRun=All", config_map(labels=labels))
    for annotations in ({"not valid": "x"}, {"a": "x" * 262145}):
        manifest = config_map()
        manifest["metadata"]["annotations"] = annotations
        await ask.create("configmaps?dryRun=All", manifest)


@story
async def what_the_server_sets(ask: Ask) -> None:
    metadata = {
        "name": "a", "uid": "11111111-2222-3333-4444-555555555555", "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30, "generation": 7,
        "selfLink": "/somewhere",
    }  # fmt: skip
    await ask.create("configmaps", {"metadata": metadata})
    await ask.create("pods", pod("b", metadata={"generation": 7}), see="metadata")
    await ask.create("configmaps", {"metadata": {"name": "c", "resourceVersion": "5"}})
    await ask.create("pods", {**pod("c"), "status": {"phase": "Running"}}, see="status")


@story
async def dry_run_stores_nothing(ask: Ask) -> None:
    await ask.create("configmaps?dryRun=All", config_map())
    await ask.get("configmaps/a")
    await ask.create("configmaps?dryRun=Some", config_map())
    await ask.create("configmaps", config_map())
    await ask.create("configmaps?dryRun=All", config_map())
    await ask.patch("configmaps/a?dryRun=All", {"data": {"k": "v"}}, see="data")
    await ask("PUT", "configmaps/a?dryRun=All", config_map(x="y"), see="data")
    await ask.delete("configmaps/a?dryRun=All")
    await ask.delete("configmaps/a", {"dryRun": ["All"]})
    await ask.get("configmaps/a", see="data")


@story
async def a_namespace_that_is_not_there(ask: Ask) -> None:
    await ask.create("/api/v1/namespaces/conformance-nowhere/configmaps", config_map())
    await ask.create("/api/v1/namespaces/conformance-nowhere/pods", pod())
    await ask.get("/api/v1/namespaces/conformance-nowhere/configmaps/a")
    await ask.get("/api/v1/namespaces/conformance-nowhere/configmaps", see="items")
    await ask.create("configmaps", {"metadata": {"name": "a", "namespace": "default"}})


@story
async def bodies_that_are_no_such_objects(ask: Ask) -> None:
    for body in (b"", b"{", b"[]", b'"text"', b"null", b"not json", b'{"metadata": []}', b'{"kind": 3}'):
        await ask.create("configmaps", body)
    await ask.create("configmaps", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    await ask.create("configmaps", {"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}})
    await ask.create("configmaps", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}})
    await ask.create("configmaps", {"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "a"}})
    await ask.create("configmaps", b"a=b", media="application/x-www-form-urlencoded")
    await ask.create("configmaps", b"a", media="text/plain")
    await ask.create(
        "configmaps", b"kind: ConfigMap\nmetadata:\n  name: yaml\ndata: {a: b}\n", media="application/yaml"
    )
    await ask.create("configmaps", b"kind: [\n", media="application/yaml")


@story
async def types_of_values(ask: Ask) -> None:
    await ask.create("configmaps", {"metadata": {"name": "a"}, "data": {"k": 1}})
    await ask.create("configmaps", {"metadata": {"name": "a"}, "data": []})
    await ask.create("configmaps", {"metadata": {"name": 5}})
    await ask.create("configmaps", {"metadata": {"name": "a", "labels": {"a": True}}})
    await ask.create("pods", pod(terminationGracePeriodSeconds="30"))
    await ask.create("pods", pod(containers={"name": "a"}))
    await ask.create("pods", pod(hostNetwork="yes"))
    await ask.create("pods", pod(priority=1.5))
    await ask.create("pods", pod(containers=[{"name": "a", "image": "b", "resources": {"limits": {"cpu": "many"}}}]))
    await ask.create("secrets", {"metadata": {"name": "a"}, "data": {"k": "not base64!"}})


@story
async def unknown_fields(ask: Ask) -> None:
    typo = pod(
        containers=[{"name": "trainer", "image": "trainer:1", "imagePullPolice": "Always"}], restartPolice="Never"
    )
    for validation in ("Strict", "Warn", "Ignore", "Sometimes"):
        await ask.create(f"pods?dryRun=All&fieldValidation={validation}", typo, see="spec.containers")
    await ask.create("pods?dryRun=All", typo, see="spec.containers")
    twice = b'{"metadata": {"name": "a"}, "data": {"a": "b"}, "data": {"c": "d"}}'
    await ask.create("configmaps?dryRun=All&fieldValidation=Strict", twice)
    await ask.create("configmaps?dryRun=All", twice, see="data")
    await ask.create("configmaps", config_map(), see="data")
    await ask.patch("configmaps/a?dryRun=All&fieldValidation=Strict", {"dataa": {"a": "b"}})
    await ask.patch("configmaps/a?dryRun=All", {"dataa": {"a": "b"}}, see="metadata.name")
    await ask.patch("configmaps/a?dryRun=All&fieldValidation=Strict", {"dataa": {"a": "b"}}, "strategic")
    await ask.patch(
        "configmaps/a?dryRun=All&fieldValidation=Strict", [{"op": "add", "path": "/dataa", "value": {"a": "b"}}], "json"
    )
    await ask.apply(
        "configmaps/a?dryRun=All&fieldValidation=Strict",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dataa": {}},
    )


@story
async def paths_that_are_not_served(ask: Ask) -> None:
    await ask.get("nothings")
    await ask.get("nothings/a")
    await ask.get("/apis/none.dev/v1/namespaces/{ns}/things")
    await ask.get("/apis/apps/v9/namespaces/{ns}/deployments")
    await ask.get("/nothing")
    await ask.create("configmaps/a", config_map())
    await ask("PUT", "configmaps", config_map())
    await ask("PATCH", "configmaps", {}, media="application/merge-patch+json")
    await ask.get("configmaps/a/status")
    await ask.get("pods/a/nothing")
    await ask.create("/api/v1/configmaps", config_map())
    await ask.delete("/api/v1/namespaces")
