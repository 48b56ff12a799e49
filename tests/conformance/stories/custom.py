"""Custom kinds: schema, CEL rules, pruning, status, and the definition itself."""

from typing import Any

from tests.conformance.play import Ask, story
from tests.conformance.stories.manifests import job
from tests.local.training import definition

Json = dict[str, Any]

TRAININGS = "test.dtj.dev/v1:trainings"
JOBS = "dtj.dev/v1alpha1:distributedtrainingjobs"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def training(name: str = "t", /, **spec: Any) -> Json:
    return {"apiVersion": "test.dtj.dev/v1", "kind": "Training", "metadata": {"name": name}, "spec": spec}


@story
async def schemas_refuse(ask: Ask) -> None:
    spec: Json
    for spec in (
        {}, {"replicas": 0}, {"replicas": 11}, {"replicas": "3"}, {"replicas": 1.5}, {"replicas": True},
        {"replicas": None},
        {"replicas": 1.0}, {"replicas": 1, "strategy": "Other"}, {"replicas": 1, "label": "toolong"},
        {"replicas": 1, "label": "AB"}, {"replicas": 1, "label": "TOOLONG"}, {"replicas": 1, "rate": 0},
        {"replicas": 1, "rate": 5}, {"replicas": 1, "tags": ["a", "a"]}, {"replicas": 1, "tags": ["a", "b", "c", "d"]},
        {"replicas": 1, "tags": "a"}, {"replicas": 1, "rules": [{}]},
        {"replicas": 1, "rules": [{"name": "a"}, {"name": "a"}]},
        {"replicas": 1, "rules": [{"name": "a", "codes": ["x"]}]}, {"replicas": 1, "rules": {}},
        {"replicas": 1, "limits": {"a": "1", "b": 2}}, {"replicas": 1, "limits": {"a": 1.5}},
        {"replicas": 1, "template": []},
        {"replicas": 3, "strategy": "None"}, {"replicas": 3, "strategy": "None", "rate": 3},
        {"replicas": 0, "label": "AB"},
    ):  # fmt: skip
        await ask.create(f"{TRAININGS}?dryRun=All", training(**spec), see="spec")
    await ask.create(f"{TRAININGS}?dryRun=All", {**training(), "spec": None})
    await ask.create(
        f"{TRAININGS}?dryRun=All", {"apiVersion": "test.dtj.dev/v1", "kind": "Training", "metadata": {"name": "t"}}
    )
    await ask.create(
        f"{TRAININGS}?dryRun=All", {"apiVersion": "test.dtj.dev/v1", "kind": "Training", "spec": {"replicas": 0}}
    )
    await ask.create(
        f"{TRAININGS}?dryRun=All", {"kind": "Training", "metadata": {"name": "t"}, "spec": {"replicas": 1}}
    )
    await ask.create(f"{TRAININGS}?dryRun=All", {"metadata": {"name": "t"}, "spec": {"replicas": 1}})
    await ask.create(f"{TRAININGS}?dryRun=All", {**training(replicas=1), "apiVersion": "test.dtj.dev/v2"})
    await ask.create(f"{TRAININGS}?dryRun=All", {**training(replicas=1), "kind": "Other"})
    await ask.create(f"{TRAININGS}?dryRun=All", training("Not_Valid", replicas=1))
    await ask.create(f"{TRAININGS}?dryRun=All", {**training(replicas=1), "metadata": {"name": "t", "labels": {"a": 1}}})
    await ask.create(f"{TRAININGS}?dryRun=All", {**training(replicas=1), "metadata": {"name": "t", "labels": "x"}})
    await ask.create(f"{TRAININGS}?dryRun=All", b'{"spec":')


@story
async def what_a_schema_does_not_know(ask: Ask) -> None:
    known = {"replicas": 1, "template": {"spec": {"any": [1, {"thing": True}]}}, "rules": [{"name": "a"}]}
    extra = {**training(**known, typo=1), "more": {"x": 1}}
    extra["spec"]["rules"][0]["wrong"] = 1
    extra["metadata"]["nothing"] = "x"
    for validation in ("Strict", "Warn", "Ignore"):
        await ask.create(f"{TRAININGS}?dryRun=All&fieldValidation={validation}", extra, see="spec")
    await ask.create(TRAININGS, training(**known))
    await ask.patch(f"{TRAININGS}/t?fieldValidation=Strict", {"spec": {"typo": 1}})
    await ask.patch(f"{TRAININGS}/t", {"spec": {"typo": 1}}, see="metadata")
    await ask("PUT", f"{TRAININGS}/t", training(**known))
    twice = (
        b'{"apiVersion":"test.dtj.dev/v1","kind":"Training","metadata":{"name":"u"},"spec":{"replicas":1,"replicas":2}}'
    )
    await ask.create(f"{TRAININGS}?dryRun=All&fieldValidation=Strict", twice)
    await ask.create(f"{TRAININGS}?dryRun=All", twice, see="spec")


@story
async def defaults_and_nulls(ask: Ask) -> None:
    await ask.create(
        TRAININGS, training(replicas=1, rules=[{"name": "a"}, {"name": "b", "action": "x", "codes": []}], strategy=None)
    )
    await ask.patch(f"{TRAININGS}/t", {"spec": {"rules": None, "label": ""}}, see="spec")
    await ask.patch(f"{TRAININGS}/t", {"spec": {"template": {"a": None, "b": {}, "c": []}}}, see="spec")
    await ask.patch(
        f"{TRAININGS}/t", [{"op": "add", "path": "/spec/template", "value": {"a": None}}], "json", see="spec"
    )
    await ask.patch(f"{TRAININGS}/t", [{"op": "add", "path": "/spec/label", "value": None}], "json", see="spec")


@story
async def status_and_generation(ask: Ask) -> None:
    made = await ask.create(TRAININGS, {**training(replicas=1), "status": {"phase": "Running"}})
    await ask.patch(f"{TRAININGS}/t/status", {"status": {"phase": "Running"}, "spec": {"replicas": 9}})
    await ask.patch(f"{TRAININGS}/t", {"status": {"phase": "Failed"}, "spec": {"replicas": 2}})
    await ask.patch(f"{TRAININGS}/t", {"metadata": {"labels": {"a": "b"}}}, see="metadata")
    await ask.patch(
        f"{TRAININGS}/t/status", {"metadata": {"labels": {"c": "d"}, "annotations": {"e": "f"}}}, see="metadata"
    )
    await ask.patch(f"{TRAININGS}/t/status", {"status": {"phase": 5}})
    await ask.patch(f"{TRAININGS}/t/status", {"status": {"step": "x", "unknown": 1}})
    await ask.patch(f"{TRAININGS}/t/status?fieldValidation=Strict", {"status": {"unknown": 1}})
    await ask("PUT", f"{TRAININGS}/t/status", {**made, "status": {"step": 1}})
    now = await ask.get(f"{TRAININGS}/t/status", see="status")
    await ask("PUT", f"{TRAININGS}/t/status", {**now, "status": {"step": 1}}, see="status")
    await ask.get(f"{TRAININGS}/t/scale")


@story
async def rules_see_the_old_object(ask: Ask) -> None:
    await ask.create(TRAININGS, training(replicas=1), see="spec")
    await ask.patch(f"{TRAININGS}/t", {"spec": {"strategy": "None"}})
    await ask.patch(f"{TRAININGS}/t", {"spec": {"strategy": "None", "replicas": 2}})
    await ask.patch(f"{TRAININGS}/t", {"spec": {"rate": 1.5}}, see="spec")
    await ask.patch(f"{TRAININGS}/t", {"spec": {"rate": 2.5}})
    await ask.apply(f"{TRAININGS}/t?dryRun=All", training(replicas=1, strategy="None"), managed=False)


@story
async def training_jobs_that_are_wrong(ask: Ask) -> None:
    """The refusals of our own resource, as its users read them."""
    template = {"spec": {"containers": [{"name": "trainer", "image": "t"}]}}
    spec: Json
    for spec in (
        {"roles": {}}, {"roles": None}, {"roles": {"worker": {"replicas": 0}}},
        {"roles": {"worker": {"replicas": "two"}}},
        {"roles": {"worker": {"replicas": 100000}}}, {"roles": {"ps": {"replicas": 1}}}, {"strategy": "Other"},
        {"strategy": "MultiWorkerMirrored", "roles": {"worker": {"replicas": 1}, "ps": {"replicas": 1}}},
        {"strategy": "None"}, {"strategy": "ParameterServer"},
        {"roles": {"chief": {"replicas": 2}, "worker": {"replicas": 1}}},
        {"roles": {"evaluator": {"replicas": 2}, "worker": {"replicas": 1}}}, {"roles": {"trainer": {"replicas": 1}}},
        {"template": {}}, {"template": {"spec": {}}}, {"template": {"spec": {"containers": []}}}, {"template": None},
        {"gang": {"scheduler": "Mine"}}, {"gang": {"minAvailable": 99}}, {"recovery": {"maxFailures": -1}},
        {"checkpoint": {}}, {"checkpoint": {"persistentVolumeClaim": ""}}, {"network": {"port": 0}},
        {"network": {"port": 2280}}, {"suspend": "yes"}, {"ttlSecondsAfterFinished": -5}, {"cleanPodPolicy": "Some"},
        {"nothing": 1},
    ):  # fmt: skip
        manifest = job(template=template)
        manifest["spec"] |= spec
        await ask.create(f"{JOBS}?dryRun=All&fieldValidation=Strict", manifest, see="spec.strategy")
    manifest = job(template=template)
    manifest["spec"] |= {"roles": {"worker": {"replicas": 0}}, "strategy": "Other", "recovery": {"maxFailures": -1}}
    await ask.create(f"{JOBS}?dryRun=All", manifest)
    long = job("a" * 80)
    await ask.create(f"{JOBS}?dryRun=All", long, see="metadata.name")


@story
async def training_jobs_change(ask: Ask) -> None:
    """Suspended, and with a status that says that it is over: no operator starts anything of it."""
    await ask.create(JOBS, job(suspend=True), see="metadata.generation")
    await ask.patch(f"{JOBS}/mnist", {"spec": {"strategy": "Mirrored"}}, see="spec.strategy")
    await ask.patch(f"{JOBS}/mnist", {"spec": {"roles": {"worker": {"replicas": 0}}}})
    await ask.patch(f"{JOBS}/mnist", {"spec": {"template": {"spec": {"anything": [1, None]}}}}, see="spec.template")
    await ask.patch(f"{JOBS}/mnist", {"spec": {"template": {"spec": {"anything": None}}}}, "strategic")
    await ask.patch(f"{JOBS}/mnist/status", {"status": {"phase": "Nothing"}})
    await ask.patch(f"{JOBS}/mnist/status", {"status": {"phase": 1}})


@story
async def definitions(ask: Ask) -> None:
    """Everything about a definition itself, with a group of its own."""
    manifest = _definition("conformance.dev")
    path = f"{DEFINITIONS}/trainings.conformance.dev"
    ask.leaves(path)
    await ask.create(DEFINITIONS, manifest, see="spec")
    await ask.until(DEFINITIONS, "trainings.conformance.dev", _established)
    await ask.get(path, see="status")
    await ask.get("/apis/conformance.dev/v1", see="resources")
    await ask.create(DEFINITIONS, manifest)
    changed = {"spec": {"scope": "Cluster"}}
    await ask.patch(path, changed)
    await ask.patch(path, {"spec": {"names": {"kind": "Other"}}}, see="spec.names")
    await ask.patch(path, {"spec": {"group": "other.dev"}})


@story
async def definitions_that_are_wrong(ask: Ask) -> None:
    def variant(**spec: Any) -> Json:
        manifest = _definition("wrong.dev")
        manifest["spec"] |= spec
        return manifest

    version = _definition("wrong.dev")["spec"]["versions"][0]
    names = _definition("wrong.dev")["spec"]["names"]
    spec: Json
    for spec in (
        {"group": ""}, {"group": "nodots"}, {"scope": "Galaxy"}, {"names": {}}, {"names": {**names, "plural": "Upper"}},
        {"versions": []}, {"versions": [{**version, "storage": False}]}, {"versions": [{**version, "schema": None}]},
        {"versions": [version, version]}, {"versions": [{**version, "name": "v1.0"}]},
        {"versions": [{**version, "additionalPrinterColumns": [{"name": "a", "type": "x", "jsonPath": "a"}]}]},
    ):  # fmt: skip
        await ask.create(f"{DEFINITIONS}?dryRun=All", variant(**spec))
    for schema in (
        {"type": "object", "properties": {"spec": {}}},
        {"type": "object", "properties": {"spec": {"type": "thing"}}},
        {"type": "object", "properties": {"spec": {"type": "object", "required": ["x"], "default": {}}}},
        {"type": "object", "properties": {"a": {"type": "string", "default": 5}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}},
        {"type": "object", "x-kubernetes-validations": [{"rule": "self.a =="}]},
        {"type": "object", "x-kubernetes-validations": [{"rule": "self.nothing == 1"}]},
        {"type": "object", "x-kubernetes-validations": [{"rule": ""}]},
        {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "integer"}},
                                                "additionalProperties": {"type": "string"}}}},
    ):  # fmt: skip
        manifest = variant(versions=[{**version, "schema": {"openAPIV3Schema": schema}}])
        await ask.create(f"{DEFINITIONS}?dryRun=All", manifest, see="spec.versions.0.schema")
    await ask.create(f"{DEFINITIONS}?dryRun=All", {**variant(), "metadata": {"name": "other.wrong.dev"}})


@story
async def a_definition_goes_with_its_objects(ask: Ask) -> None:
    manifest = _definition("going.dev")
    path = f"{DEFINITIONS}/trainings.going.dev"
    ask.leaves(path)
    await ask.quietly("POST", DEFINITIONS, manifest)
    await ask.until(DEFINITIONS, "trainings.going.dev", _established)
    thing = {"apiVersion": "going.dev/v1", "kind": "Training", "metadata": {"name": "t"}, "spec": {"replicas": 1}}
    await ask.create("going.dev/v1:trainings", thing, see="metadata.name")
    await ask.delete(path, see="metadata.finalizers")
    await ask.until(DEFINITIONS, "trainings.going.dev", lambda body: body is None)
    await ask.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainings.going.dev")


def _definition(group: str) -> Json:
    manifest = definition()
    names = {**manifest["spec"]["names"], "shortNames": None, "categories": None}
    return {
        **manifest,
        "metadata": {"name": f"trainings.{group}"},
        "spec": {**manifest["spec"], "group": group, "names": {key: value for key, value in names.items() if value}},
    }


def _established(body: Json | None) -> bool:
    conditions = (body or {}).get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
