"""A small kind of its own for tests of custom resources: its definition and an object of it."""

from typing import Any

Json = dict[str, Any]

TRAININGS = "test.dtj.dev/v1/trainings"

SCHEMA: Json = {
    "type": "object",
    "description": "A kind that only tests know.",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["replicas"],
            "properties": {
                "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "description": "How many."},
                "strategy": {"type": "string", "enum": ["Auto", "None"], "default": "Auto"},
                "label": {"type": "string", "maxLength": 5, "pattern": "^[a-z]*$"},
                "rate": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
                "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "limits": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "maxItems": 3},
                "rules": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "action": {"type": "string", "default": "Restart"},
                            "codes": {"type": "array", "items": {"type": "integer"}},
                        },
                    },
                },
            },
            "x-kubernetes-validations": [
                {"rule": "self.strategy != 'None' || self.replicas == 1", "message": "None takes one replica"},
                {
                    "rule": "self.strategy == oldSelf.strategy",
                    "message": "strategy is immutable",
                    "fieldPath": ".strategy",
                    "reason": "FieldValueForbidden",
                },
                {
                    "rule": "!has(self.rate) || self.rate < 2.0",
                    "messageExpression": "'rate is above 2 with ' + self.strategy",
                },
            ],
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}, "step": {"type": "integer"}}},
    },
}


def definition(schema: Json | None = None) -> Json:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema or SCHEMA},
        "additionalPrinterColumns": [
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
            {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }
    names = {
        "plural": "trainings",
        "singular": "training",
        "kind": "Training",
        "shortNames": ["tr"],
        "categories": ["all"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "trainings.test.dtj.dev"},
        "spec": {"group": "test.dtj.dev", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def training(name: str = "t", **spec: Any) -> Json:
    return {
        "apiVersion": "test.dtj.dev/v1",
        "kind": "Training",
        "metadata": {"name": name},
        "spec": {"replicas": 3, **spec},
    }
