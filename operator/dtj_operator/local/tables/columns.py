"""The columns of each built-in kind.

What stands in them for pods is `pods.py`'s, for the others `rows.py`'s business.
"""

import msgspec


class Column(msgspec.Struct, frozen=True):
    """A `wide` column is shown by `kubectl get -o wide` only."""

    name: str
    wide: bool = False
    type: str = "string"
    format: str = ""
    description: str = ""


NAME = Column("Name", format="name", description="Name must be unique within a namespace.")
AGE = Column(
    "Age", description="CreationTimestamp is a timestamp representing the server time when this object was created."
)
CREATED = Column("Created At", type="date", description=AGE.description)


def _wide(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, wide=True) for name in names)


def _plain(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name) for name in names)


COLUMNS: dict[str, tuple[Column, ...]] = {
    "configmaps": (NAME, Column("Data", type="string"), AGE),
    "customresourcedefinitions.apiextensions.k8s.io": (NAME, CREATED),
    "endpointslices.discovery.k8s.io": (NAME, *_plain("AddressType", "Ports", "Endpoints"), AGE),
    "events": (
        *_plain("Last Seen", "Type", "Reason", "Object"), *_wide("Subobject", "Source"), *_plain("Message"),
        *_wide("First Seen", "Count", "Name"),
    ),
    "leases.coordination.k8s.io": (NAME, *_plain("Holder"), AGE),
    "limitranges": (NAME, CREATED),
    "namespaces": (NAME, *_plain("Status"), AGE),
    "networkpolicies.networking.k8s.io": (NAME, *_plain("Pod-Selector"), AGE),
    "nodes": (
        NAME, *_plain("Status", "Roles"), AGE, *_plain("Version"),
        *_wide("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
    ),
    "persistentvolumeclaims": (
        NAME, *_plain("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass"), AGE,
        *_wide("VolumeMode"),
    ),
    "persistentvolumes": (
        NAME,
        *_plain("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass",
                "VolumeAttributesClass", "Reason"),
        AGE, *_wide("VolumeMode"),
    ),
    "poddisruptionbudgets.policy": (
        NAME, *_plain("Min Available", "Max Unavailable"), Column("Allowed Disruptions", type="integer"), AGE,
    ),
    "pods": (
        NAME, *_plain("Ready", "Status", "Restarts"), AGE, *_wide("IP", "Node", "Nominated Node", "Readiness Gates"),
    ),
    "priorityclasses.scheduling.k8s.io": (
        NAME, Column("Value", type="integer"), Column("Global-Default", type="boolean"), AGE,
        *_plain("PreemptionPolicy"),
    ),
    "resourcequotas": (NAME, *_plain("Request", "Limit"), AGE),
    "secrets": (NAME, *_plain("Type"), Column("Data", type="string"), AGE),
    "serviceaccounts": (NAME, AGE),
    "services": (NAME, *_plain("Type", "Cluster-IP", "External-IP", "Port(s)"), AGE, *_wide("Selector")),
}  # fmt: skip
