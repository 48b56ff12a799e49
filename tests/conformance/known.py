"""The differences that are known and stay, each with its reason; a part of the docs is made of it.

`python -m tests.conformance --docs` makes it.
"""

import functools
import re
from pathlib import Path

import msgspec

from tests.conformance.compare import Difference

PAGE = Path(__file__).parents[2] / "docs" / "embedded-differences.md"
HEADLINE = "## What the conformance stories show\n"

CODE = ("code",)
WORDS = ("answer.message", "answer.details.causes*.message", "answer.err*")


class Known(msgspec.Struct, frozen=True):
    """In `places` (`topic/story/step`) and `paths`, an asterisk stands for anything."""

    places: tuple[str, ...]
    paths: tuple[str, ...]
    real: str
    here: str
    why: str

    def covers(self, one: Difference) -> bool:
        return any(_fits(place, one.place) for place in self.places) and any(
            _fits(path, one.path) for path in self.paths
        )


def _steps(story: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{story}/{number}" for number in numbers)


KNOWN: tuple[Known, ...] = (
    Known(
        (
            "creating/bodies-that-are-no-such-objects/*",
            "applying/apply-is-refused/*",
            "creating/unknown-fields/11",
            "reading/label-selectors/*",
            "reading/pages/10",
            "deleting/collections/6",
        ),
        WORDS,
        "a body, selector or token that cannot be read is told in the words of Go's parsers",
        "in those of Python's, behind the same beginning",
        "no parser of Go is here",
    ),
    Known(
        ("updating/pods-hardly-change/*", "scheduling/gates/*", "kubectl/*", "defaulting/claims/*"),
        WORDS,
        "a refused update of a spec ends in a Go dump of the difference",
        "in the names of what changed",
        "the names say more",
    ),
    Known(
        ("creating/unknown-fields/6", "creating/unknown-fields/7", "custom/what-a-schema-does-not-know/*"),
        ("code", "warnings*", "answer", "answer.*"),
        "a key that is there twice is refused, or warned of",
        "the last one counts",
        "the JSON reader does not tell",
    ),
    Known(
        ("creating/names-have-rules/11", "deleting/owners-have-rules/9", "refusing/*", "defaulting/*"),
        ("warnings", "answer.ownerReferences*"),
        "warns of a pod's name that is no DNS label, of fractional bytes, of owners named twice and the like",
        "warns of unknown fields alone",
        "warnings change nothing",
    ),
    Known(
        ("updating/put-and-conflict/7", "updating/things-that-never-change/8"),
        WORDS,
        "some sentences hold what lies in etcd or in Go's memory",
        "those say the same without it",
        "there is neither",
    ),
    Known(
        (
            "patching/strategic-patches-of-pods/5",
            "patching/strategic-patches-of-pods/10",
            "patching/strategic-patches-of-pods/11",
        ),
        ("code", "answer", "answer.labels", "answer.resourceVersion"),
        "a `$patch: replace` of what is not there leaves nothing, an unknown directive is a fault",
        "the patch's own content is left, an unknown directive is passed over",
        "no client of ours sends them",
    ),
    Known(
        (
            "applying/apply-creates-and-owns/9",
            "applying/apply-is-refused/7",
            "applying/apply-merges-lists-by-their-keys/5",
            "applying/an-object-of-before-apply/*",
            "custom/rules-see-the-old-object/6",
        ),
        (
            "answer.metadata.managedFields*",
            "answer.metadata.resourceVersion",
            "answer.status.conditions*.lastProbeTime",
            "answer.message",
            "answer.details.causes*",
        ),
        "every write is tracked, empty maps have owners, an applied status gets Go's zero values",
        "tracked from the first write that names its manager; until then `before-first-apply` owns what is there",
        "tracking costs more than the write itself",
    ),
    Known(
        ("creating/paths-that-are-not-served/4",),
        ("answer",),
        "knows groups that are not served here (`apps`)",
        "a 404 without a Status",
        "see: what is served",
    ),
    Known(
        ("watching/a-watch-goes-on-from-a-version/4",),
        ("code",),
        "still serves `/api/v1/watch/…`",
        "404",
        "deprecated since 1.11",
    ),
    Known(
        ("watching/*", "telling/tables*"),
        ("*columnDefinitions*.description", "answer*.object.rows*"),
        "a table's columns are described at length; a bookmark has a row of its own",
        "described shortly; it has none",
        "kubectl prints neither",
    ),
    Known(
        ("deleting/what-deletion-answers/*", "defaulting/claims/*", "defaulting/leases-and-the-rest/10"),
        ("answer.metadata.finalizers", "answer.metadata.deletion*"),
        "claims and volumes get finalizers that protect them",
        "none",
        "claims are folders, and go after their pods",
    ),
    Known(
        ("deleting/what-deletion-answers/10", "defaulting/leases-and-the-rest/*"),
        ("answer.spec*", "answer.status*", "answer.endpoints*", "answer.ports*", "answer.metadata.generation"),
        "writes zero values of quotas, nodes, volumes and endpoint slices; taints new nodes until they are ready",
        "left out, and not tainted",
        "nobody reads them",
    ),
    Known(
        ("scheduling/eviction/8",),
        CODE,
        "a failed precondition of an eviction still uses up what the budget allows, until it is counted anew",
        "it does not",
        "a flaw, and a rare one",
    ),
    Known(
        ("scheduling/priority/7", "scheduling/priority/8", "scheduling/priority/9"),
        CODE,
        "priority classes have names and values that are kept free, and never change",
        "unchecked",
        "they order the pods of one person",
    ),
    Known(
        (
            *_steps("refusing/pods-that-are-wrong", 23, 24, 26, 27, 28, 29, 30, 31),
            *_steps("refusing/containers-that-are-wrong", 13, 14, 15, 16, 25, 26, 27, 28, 29, 30, 31, 32, 33, 36, 37),
            *_steps("refusing/volumes-that-are-wrong", 5, 6, 10, 11, 12, 13, 14, 15, 16, 18),
            *_steps("refusing/services-that-are-wrong", 1, 2, 6, 7, 8, 11, 12, 13, 14, 16, 17),
            *_steps("refusing/the-other-kinds", 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18, 21, 22, 24, 25, 26),
            *_steps("refusing/the-other-kinds", 29, 30, 31, 33, 34, 36, 37, 38, 39, 41),
        ),
        ("code", "answer.message", "answer.details*", "answer.metadata.uid", "answer.ports*"),
        "checks every field of pods, services, claims, policies, budgets, leases, secrets, events and quotas",
        "checks those that the operator and training jobs set; a wrong probe, lifecycle hook, security context, "
        "volume path or policy peer is taken as it is",
        "what runs here has neither probes' consequences nor isolation; the cluster's own checks come with the cluster",
    ),
    Known(
        ("telling/events/*",),
        ("code", "answer.deprecated*", "answer.first*", "answer.last*", "answer.reporting*", "answer.source"),
        "an Event's namespace has to be that of what it is about; empty fields of its other form are written",
        "any namespace; left out",
        "kubectl and our clients do not read them",
    ),
    Known(
        (*_steps("custom/schemas-refuse", 5, 8, 30, 33), *_steps("custom/status-and-generation", 7, 12)),
        ("answer.message", "answer.details*", "answer.replicas", "warnings"),
        "some faults of custom objects are told twice, some warnings beside a refusal; `1.0` becomes `1`",
        "once, and without the warnings; `1.0` stays",
        "the fault is the same",
    ),
    Known(
        ("custom/definitions/3", "custom/definitions/7", "custom/definitions-that-are-wrong/*"),
        ("code", "answer.message", "answer.details*", "answer*.storageVersionHash"),
        "a definition's names, columns, defaults, CEL types and costs are checked, too",
        "its structure, versions and whether CEL parses",
        "a definition is judged by the cluster that it is made for",
    ),
    Known(
        ("custom/a-definition-goes-with-its-objects/2",),
        ("answer",),
        "a definition waits for its objects by a finalizer",
        "goes with them at once",
        "see: custom resources",
    ),
    Known(
        ("telling/discovery*",),
        ("answer.resources*", "answer.items*.subresources*", "answer.apiVersion", "answer"),
        "offers `proxy`, `token`, `resize`, `ephemeralcontainers`, and lists subresources in its own order",
        "does not",
        "containers are local processes",
    ),
    Known(
        ("telling/openapi/*",),
        ("answer", "answer.*"),
        "every list's merge rules, formats and query parameters, fields of alpha features",
        "those of what training jobs write",
        "the client library keeps no more of them",
    ),
    Known(
        ("telling/tables*",),
        ("answer.columnDefinitions*.type", "answer.rows*.object*", "answer.items", "answer.metadata.continue", "code"),
        "an `Accept` header that cannot be met is 406, a wrong `includeObject` 400, an empty list of metadata null",
        "the object itself, the whole table, an empty list",
        "no client of ours asks so",
    ),
    Known(
        ("telling/who-may/*",),
        CODE,
        "an empty review is refused",
        "granted, as everything is",
        "one token may do everything",
    ),
    Known(
        ("defaulting/a-plain-pod/1",),
        ("answer.spec.*",),
        "a pod gets a volume `kube-api-access-…`",
        "none",
        "there are no tokens to mount",
    ),
    Known(
        ("defaulting/quantities-are-written-one-way/10",),
        ("answer.*",),
        "amounts below a thousandth are rounded up",
        "kept",
        "nobody asks for less than a byte",
    ),
    Known(
        ("defaulting/services-of-all-types/*",),
        ("answer.sessionAffinityConfig", "answer.clusterIP", "answer.internalTrafficPolicy"),
        "services with session affinity or an external name have defaults of their own",
        "those of all",
        "a job's service is headless",
    ),
    Known(
        ("defaulting/claims/4",),
        CODE,
        "only a bound claim may ask for more",
        "any",
        "claims are folders",
    ),
    Known(
        ("kubectl/kubectl-applies/20",),
        ("answer*",),
        "server-side apply by kubectl keeps `last-applied-configuration` in step",
        "leaves it",
        "it is needed only to go back to client-side apply",
    ),
    Known(
        ("kubectl/kubectl-describes/*",),
        ("answer.out*",),
        "a described claim shows its finalizer, a service its slices' endpoints",
        "has none",
        "see above",
    ),
    Known(
        _steps("kubectl/kubectl-explains", 6, 7, 9, 13),
        ("answer.out*",),
        "`kubectl explain` describes shared types, too (`Quantity`, `FieldsV1`, `IntOrString`)",
        "names them",
        "the client library has no text for them",
    ),
)


def unknown(found: list[Difference]) -> list[Difference]:
    return [one for one in found if not any(known.covers(one) for known in KNOWN)]


def section() -> str:
    """The part of the page that is made from the table."""
    rows = [f"| {known.real} | {known.here} | {known.why} |" for known in KNOWN]
    told = (
        "The same requests were played against both, and their answers compared field by field (`tests/conformance`). "
        "What differed and stays:\n"
    )
    return "\n".join([HEADLINE, told, "| kube-apiserver | here | why |", "| --- | --- | --- |", *rows, ""])


def page() -> str:
    """The whole page with this part in it."""
    return PAGE.read_text().partition(HEADLINE)[0] + section()


def _fits(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")))
