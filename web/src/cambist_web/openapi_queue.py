"""What the API's description says of the operators' queue: errors, and values of fields, a stake's too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .openapi_values import MOMENT

QUEUE_ERRORS: Sequence[tuple[str, str, Mapping[int, Sequence[str]]]] = (
    (r"\{intentId\}", "", {404: ["INTENT_NOT_FOUND"]}),
    (r"\{intentId\}/cancel$", "post", {409: ["NOT_CANCELLABLE"]}),
    (r"\{intentId\}/(retry|raise-fee)$", "post", {409: ["ALREADY_ENDED"]}),
    (r"/admin/stakes$", "post", {400: ["UNSUPPORTED_CHAIN", "INVALID_AMOUNT"], 503: ["CHAIN_UNAVAILABLE"]}),
    (r"/admin/stakes$", "post", {400: ["CHAIN_WITHOUT_STAKES", "STAKE_OUT_OF_RANGE"], 409: ["STAKE_CHANGING"]}),
    (r"/raise-fee$", "post", {400: ["INVALID_AMOUNT"], 409: ["FEE_NOT_RAISABLE", "ALREADY_MINED"]}),
)

QUEUE_VALUES: Mapping[str, Any] = {
    "FeeRaiseView.asked_at": None,
    "FeeRaiseView.max_fee": "0.02",
    "FeeRaiseView.refusal": None,
    "OutboundTxView.fee": None,
    "OutboundTxView.height": None,
    "OutboundTxView.max_fee": "0.0021",
    "OutboundTxView.nonce": 17,
    "OutboundTxView.role": "main",
    "OutboundTxView.sent_at": MOMENT,
    "OutboundTxView.state": "sent",
    "OutboundTxView.tried_at": MOMENT,
    "OutboundTxView.tries": 3,
    "OutboundView.age_seconds": 340,
    "OutboundView.asked_by": "key",
    "OutboundView.behind": None,
    "OutboundView.cancel_asked_at": None,
    "OutboundView.intent_id": "int_5d41402abc4b2a76b9719d911017c592",
    "OutboundView.nonce": 17,
    "OutboundView.state": "sending",
    "OutboundView.to_tag": None,
    "RaiseFee.max_fee": "0.02",
    "StakeBody.action": "stake",
    "StakeBody.amount": "5000",
    "StakeBody.chain": "tron",
    "WaitsForView.code": "pending",
    "WaitsForView.text": "It is sent, and no block has it yet.",
    "WaitsForView.until": None,
}
