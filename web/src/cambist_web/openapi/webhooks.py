"""What merchants are told, for the API's description: its ``webhooks`` with headers, body and example, and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import json

from cambist.domain.webhooks import EXTENDED_EVENTS, TEST_EVENT, TRACKER_EVENTS
from cambist.ports import Ids
from cambist.services.trackers import testing
from cambist.services.webhooks import signature_checks
from cambist.services.webhooks.payloads import PAYLOADS
from cambist.services.webhooks.samples import sample

from .fields import classes_in, describe_schemas

_NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
_REFERENCE = "#/components/schemas/{name}"

WEBHOOK_ERRORS: Sequence[tuple[str, str, Mapping[int, Sequence[str]]]] = (
    (r"/test-webhook$", "post", {400: ["INVALID_EVENT", "NO_WEBHOOK_TARGET"]}),
    (r"/check-webhook$", "post", {400: ["NO_WEBHOOK_TARGET"], 409: ["WEBHOOKS_NOT_SIGNED"]}),
    (r"\{deliveryId\}", "", {404: ["DELIVERY_NOT_FOUND"]}),
    (r"\{(deliveryId|eventId)\}/redeliver$", "post", {409: ["DELIVERY_PENDING", "NO_WEBHOOK_TARGET"]}),
    (r"\{deliveryId\}/redeliver$", "post", {409: ["DELIVERY_WAS_TEST"]}),
    (r"(/webhook|\{webhookId\})/redeliver$", "post", {409: ["TRACKER_INACTIVE"]}),
    (r"\{eventId\}", "", {404: ["EVENT_NOT_FOUND"]}),
    (r"/events/(\{eventId\}/)?redeliver$", "post", {404: ["ENDPOINT_NOT_FOUND"]}),
    (r"\{endpointId\}", "", {404: ["ENDPOINT_NOT_FOUND"]}),
    (r"/webhook-endpoints$", "post", {400: ["INVALID_EVENT"], 409: ["TOO_MANY_ENDPOINTS"]}),
    (r"\{endpointId\}$", "patch", {400: ["INVALID_EVENT"]}),
    (r"\{endpointId\}/test$", "post", {400: ["INVALID_EVENT"]}),
    (r"/admin/webhooks/redeliver$", "post", {400: ["INVALID_EVENT"]}),
)

_HEADERS: Mapping[str, tuple[bool, str, Mapping[str, Any]]] = {
    "X-Webhook-Id": (True, "The event's own id, the same in all attempts and at all targets.", {}),
    "X-Webhook-Event": (True, "The event's name, the same as `event` in the body.", {}),
    "X-Webhook-Timestamp": (
        True, "When this attempt was made: milliseconds since 1970 UTC.", {"pattern": "^[0-9]+$"},
    ),
    "X-Webhook-Signature": (
        True,
        "HMAC-SHA256 over timestamp, dot and body, in lower-case hex; empty without a signing secret.",
        {"pattern": "^([0-9a-f]{64})?$"},
    ),
    "X-Webhook-Signature-Previous": (
        False, "The same by the secret before, while a rotation overlaps.", {"pattern": "^[0-9a-f]{64}$"},
    ),
    "X-Webhook-Test": (False, "On test deliveries.", {"const": "true"}),
}  # fmt: skip


def webhooks() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the description's ``webhooks`` by event, and the schemas that they refer to."""
    names = {kind.__name__: kind for kind in PAYLOADS.values()}
    _, schemas = json.schema_components(names.values(), ref_template=_REFERENCE)
    describe_schemas(schemas, classes_in(*names.values()), ())
    return {event: {"post": _webhook(event)} for event in PAYLOADS}, schemas


def _webhook(event: str) -> dict[str, Any]:
    words = event.replace("_", ".").split(".")
    is_tracked = event in TRACKER_EVENTS
    description = (PAYLOADS[event].__doc__ or "").strip()
    if event in EXTENDED_EVENTS:
        description += "\n\nFor projects with `extendedEvents` on."
    return {
        "operationId": "on" + "".join(word.title() for word in words),
        "tags": ["Trackers" if is_tracked else "Webhooks"],
        "summary": " ".join(words).capitalize(),
        "description": description,
        "security": [{}],
        "parameters": [
            {
                "name": name,
                "in": "header",
                "required": required,
                "description": words,
                "schema": {"type": "string", **more},
            }
            for name, (required, words, more) in _HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": _content(event, is_tracked=is_tracked)}},
        "responses": {
            "2XX": {"description": "Taken. The body of the answer is not looked at."},
            "default": {"description": "Refused." if event == TEST_EVENT else "Not taken: it is sent again."},
        },
    }


def _content(event: str, *, is_tracked: bool) -> dict[str, Any]:
    body, whose = example(event), "The tracker's id." if is_tracked else "The project's public id."
    return {
        "schema": {
            "type": "object",
            "required": ["event", "webhookId", "data"],
            "properties": {
                "event": {"type": "string", "const": event, "description": "The event's name.", "examples": [event]},
                "webhookId": {"type": "string", "description": whose, "examples": [body["webhookId"]]},
                "data": {"$ref": _REFERENCE.format(name=PAYLOADS[event].__name__)},
            },
        },
        "example": body,
    }


def example(event: str) -> dict[str, Any]:
    """Return the body of an event, as a test delivery would be."""
    ids = Ids(bytes)
    if event in TRACKER_EVENTS:
        data = testing.sample("ethereum", "ETH", 12, ids, _NOW) | {"status": event.rpartition(".")[2]}
        return {"event": event, "webhookId": ids.new("whk"), "data": data}
    made_up = signature_checks.sample("genuine", _NOW) if event == TEST_EVENT else sample(event, ids, _NOW)
    return {"event": event, "webhookId": ids.new("prj"), "data": made_up}
