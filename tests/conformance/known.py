"""The differences that are known and stay, each with its reason; a part of the docs is made of it by `page.py`.

An entry that covers no difference any more fails the tests, as one fails them that is not here.
"""

import msgspec

from tests.conformance.excuses import Excuse, at, code, faults, words


class Known(msgspec.Struct, frozen=True):
    """One row of the page, and where it shows in the stories."""

    real: str
    here: str
    why: str
    excuses: tuple[Excuse, ...]


KNOWN: tuple[Known, ...] = (
    Known(
        "a body, pattern, rule or token that cannot be read is told in the words of Go's parsers",
        "in those of Python's, behind the same beginning",
        "no parser of Go is here",
        words("applying/apply-is-refused", 5, until="yaml: ")
        + words("creating/bodies-that-are-no-such-objects", 6, until="json parse error: ")
        + words("creating/bodies-that-are-no-such-objects", 11, until="cannot be handled as a ConfigMap: ")
        + words("creating/bodies-that-are-no-such-objects", 16, until="yaml: ")
        + faults("creating/unknown-fields", 11, until="Invalid value: ")
        + words("reading/pages", 10, until="continue key is not valid: ")
        + faults("custom/definitions-that-are-wrong", 17, until="but isn't: ")
        + faults("custom/definitions-that-are-wrong", 18, until="Invalid value: "),
    ),
    Known(
        "a refused update of a spec ends in a Go dump of the difference",
        "in the names of what changed",
        "the names say more",
        faults("updating/pods-hardly-change", (3, 9, 10), until="\n@@")
        + faults("scheduling/gates", (6, 14), until="\n@@")
        + faults("defaulting/claims", (3, 4), until="\n@@")
        + at("kubectl/kubectl-applies", 15, "answer.err[1:11]")
        + at("kubectl/kubectl-changes", 11, "answer.err[1:11]"),
    ),
    Known(
        "a key that is there twice is refused, or warned of",
        "the last one counts",
        "the JSON reader does not tell",
        code(400, 201, "creating/unknown-fields", 6)
        + at("creating/unknown-fields", 7, "warnings", "answer.a")
        + code(400, 201, "custom/what-a-schema-does-not-know", 8)
        + at("custom/what-a-schema-does-not-know", 9, "warnings"),
    ),
    Known(
        "a conflict names the key in etcd",
        "says the same without it",
        "there is none",
        words("updating/put-and-conflict", 7, until="StorageError"),
    ),
    Known(
        "a `$patch: replace` of what is not there leaves nothing",
        "the patch's own content is left",
        "no client of ours sends it",
        at("patching/strategic-patches-of-pods", 5, "answer")
        + at("patching/strategic-patches-of-pods", 10, "answer.labels", "answer.resourceVersion"),
    ),
    Known(
        "every write is tracked, empty maps have owners, an applied status gets Go's zero values",
        "tracked from the first write that names its manager; until then `before-first-apply` owns what is there",
        "tracking costs more than the write itself",
        at("applying/apply-creates-and-owns", 9, "answer.metadata.managedFields")
        + at("applying/apply-is-refused", 7, "answer.metadata.managedFields[one]")
        + at("applying/apply-merges-lists-by-their-keys", 5, "answer.status.conditions[Mine].lastProbeTime")
        + at("applying/an-object-of-before-apply", (2, 3), "answer.metadata.resourceVersion")
        + at(
            "applying/an-object-of-before-apply",
            3,
            "answer.metadata.managedFields[before-first-apply].fieldsV1.f:data..",
            "answer.metadata.managedFields[one].time",
        )
        + faults("custom/rules-see-the-old-object", 6, until='"conformance"'),
    ),
    Known(
        "knows groups that are not served here (`apps`)",
        "a 404 without a Status",
        "see: what is served",
        at("creating/paths-that-are-not-served", 4, "answer"),
    ),
    Known(
        "still serves `/api/v1/watch/…`",
        "404",
        "deprecated since 1.11",
        code(200, 404, "watching/a-watch-goes-on-from-a-version", 4),
    ),
    Known(
        "still serves `v1` Endpoints, with a warning",
        "slices of them alone",
        "deprecated since 1.33",
        at("kubectl/kubectl-changes", 26, "answer.err[0:2]"),
    ),
    Known(
        "a table's columns are described at length; a bookmark has a row of its own",
        "described shortly; it has none",
        "kubectl prints neither",
        at("telling/tables", tuple(range(1, 14)), "answer.columnDefinitions[*].description")
        + at("telling/tables-of-lists", (1, 2, 16), "answer.columnDefinitions[*].description")
        + at("telling/tables-of-lists", 14, "answer[0].object.columnDefinitions[*].description")
        + at(
            "watching/initial-events-end-with-a-bookmark",
            3,
            "answer[0].object.columnDefinitions[*].description",
            "answer[2].object.rows[0:1]",
        ),
    ),
    Known(
        "claims and volumes get finalizers that protect them, and `kubectl describe` shows them",
        "none",
        "claims are folders, and go after their pods",
        at("defaulting/claims", 1, "answer.metadata.finalizers")
        + at("defaulting/leases-and-the-rest", 10, "answer.metadata.finalizers")
        + at("deleting/what-deletion-answers", 5, "answer.metadata.finalizers", "answer.metadata.deletion*")
        + at("telling/tables", 5, "answer.rows[0].object.metadata.finalizers")
        + at("kubectl/kubectl-describes", 5, "answer.out[7:8]"),
    ),
    Known(
        "writes zero values of quotas, nodes, volumes and endpoint slices; taints new nodes until they are ready",
        "left out, and not tainted",
        "nobody reads them",
        at("defaulting/leases-and-the-rest", 5, "answer.status")
        + at("defaulting/leases-and-the-rest", 8, "answer.spec", "answer.status")
        + at("defaulting/leases-and-the-rest", 10, "answer.spec.hostPath.type", "answer.status.lastPhaseTransitionTime")
        + at(
            "defaulting/leases-and-the-rest",
            12,
            "answer.metadata.generation",
            "answer.ports[0].name",
            "answer.ports[0].protocol",
        )
        + at("deleting/what-deletion-answers", 10, "answer.spec", "answer.status.hard", "answer.status.used"),
    ),
    Known(
        "a failed precondition of an eviction still uses up what the budget allows, until it is counted anew",
        "it does not",
        "a flaw, and a rare one",
        code(429, 409, "scheduling/eviction", 8)
        + at("scheduling/eviction", 8, "answer.message", "answer.reason", "answer.code", "answer.details.*"),
    ),
    Known(
        "knows which resource claims and runtime classes there are and which addresses a service may have, and checks "
        "quota resources, times and contradictions of privilege, too",
        "takes them as they are",
        "nothing here runs by them; the cluster's own checks come with the cluster",
        code(403, 201, "refusing/pods-that-are-wrong", 27)
        + code(422, 201, "refusing/containers-that-are-wrong", 26, 32)
        + code(422, 201, "refusing/services-that-are-wrong", 17)
        + code(422, 201, "refusing/the-other-kinds", 39, 41)
        + code(400, 201, "refusing/the-other-kinds", 30)
        + faults("refusing/the-other-kinds", 22, until="Invalid value: ")
        # An object that was taken has a uid, and those of a story are counted.
        + at("refusing/pods-that-are-wrong", 28, "answer.metadata.uid")
        + at("refusing/the-other-kinds", 31, "answer.metadata.uid"),
    ),
    Known(
        "some faults of custom objects are told twice, and an object of another version gets its warnings, too",
        "once, and without the warnings",
        "the fault is the same",
        at("custom/schemas-refuse", 5, "answer.message", "answer.details.causes[0:1]")
        + at("custom/schemas-refuse", 30, "answer.message", "answer.details.causes[<nil>]")
        + at("custom/schemas-refuse", 33, "warnings"),
    ),
    Known(
        "the scale of a kind that has none is not found by the object's name",
        "by its path",
        "both say that it is not there",
        at("custom/status-and-generation", 12, "answer.message", "answer.details.*"),
    ),
    Known(
        "CEL's types and costs are checked when a definition is made; its faults show Go's view of the versions",
        "whether CEL parses; they show the versions' names",
        "a definition is judged by the cluster that it is made for",
        code(422, 201, "custom/definitions-that-are-wrong", 19)
        + faults("custom/definitions-that-are-wrong", 7, until='{"Name"')
        + at("custom/definitions-that-are-wrong", 9, "answer.message", "answer.details.causes[0:3]"),
    ),
    Known(
        "discovery tells a hash of how a custom kind is stored",
        "does not",
        "nothing is stored in another version",
        at("custom/definitions", 3, "answer[trainings].storageVersionHash"),
    ),
    Known(
        "a definition waits for its objects by a finalizer",
        "goes with them at once",
        "see: custom resources",
        at("custom/a-definition-goes-with-its-objects", 2, "answer"),
    ),
    Known(
        "offers `proxy`, `token`, `resize` and `ephemeralcontainers`",
        "does not",
        "containers are local processes",
        at(
            "telling/discovery",
            1,
            "answer.resources[nodes/proxy]",
            "answer.resources[pods/ephemeralcontainers]",
            "answer.resources[pods/proxy]",
            "answer.resources[pods/resize]",
            "answer.resources[serviceaccounts/token]",
            "answer.resources[services/proxy]",
        )
        + at(
            "telling/discovery-aggregated",
            1,
            "answer.items[0].versions[0].resources[nodes].subresources[proxy]",
            "answer.items[0].versions[0].resources[pods].subresources[ephemeralcontainers]",
            "answer.items[0].versions[0].resources[pods].subresources[proxy]",
            "answer.items[0].versions[0].resources[pods].subresources[resize]",
            "answer.items[0].versions[0].resources[serviceaccounts].subresources",
            "answer.items[0].versions[0].resources[services].subresources[proxy]",
        ),
    ),
    Known(
        "a set that only the status of an alpha feature has",
        "a plain list",
        "nobody writes it here",
        at(
            "telling/openapi",
            3,
            "answer.properties.status.properties.nodeAllocatableResourceClaimStatuses.items.properties.containers"
            ".x-kubernetes-list-type",
        ),
    ),
    Known(
        "an empty list of custom objects' metadata is null",
        "an empty list",
        "clients go through it",
        at("telling/tables-of-lists", 13, "answer.items"),
    ),
    Known(
        "an empty review is refused",
        "granted, as everything is",
        "one token may do everything",
        code(422, 201, "telling/who-may", 3),
    ),
    Known(
        "a pod gets a volume `kube-api-access-…`",
        "none",
        "there are no tokens to mount",
        at("defaulting/a-plain-pod", 1, "answer.spec.volumes", "answer.spec.containers[a].volumeMounts"),
    ),
    Known(
        "server-side apply by kubectl keeps `last-applied-configuration` in step",
        "leaves it",
        "it is needed only to go back to client-side apply",
        at("kubectl/kubectl-applies", 20, "answer.out[1:2]", "answer.out[4:4]"),
    ),
    Known(
        "a described service shows its slices' endpoints",
        "has none",
        "no slices are made here",
        at("kubectl/kubectl-describes", 4, "answer.out[12:13]"),
    ),
    Known(
        "`kubectl explain` tells how a `Quantity` is written",
        "names it",
        "the client library has no text for it",
        at("kubectl/kubectl-explains", 7, "answer.out[9:67]") + at("kubectl/kubectl-explains", 13, "answer.out[13:71]"),
    ),
)

EXCUSES: tuple[Excuse, ...] = tuple(excuse for known in KNOWN for excuse in known.excuses)
