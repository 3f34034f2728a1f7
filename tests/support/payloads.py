"""Whether what merchants are told is what the API's description says."""

from __future__ import annotations

from typing import Any

import msgspec

from cambist.services.webhooks import outbox
from cambist.services.webhooks.payloads import PAYLOADS


def as_described(event: str, data: dict[str, Any]) -> None:
    """Raise AssertionError for the ``data`` of an event in which a field is missing, unknown or of another kind."""
    try:
        msgspec.convert(msgspec.json.decode(msgspec.json.encode(data)), PAYLOADS[event])
    except msgspec.ValidationError as error:
        raise AssertionError(f"{event} is not as described: {error}") from None


def compare_all() -> None:
    """Have every event that this process enqueues compared from now on."""
    encode_body = outbox.encode_body

    def compared(event: str, project_id: str, data: dict[str, Any]) -> bytes:
        as_described(event, data)
        return encode_body(event, project_id, data)

    outbox.encode_body = compared
