"""What the API's description says of the operators' queue: errors, and values of fields, a stake's too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .openapi_values import MOMENT

_TOO_SMALL = "It is worth less than the least amount that is collected before its time."

QUEUE_ERRORS: Sequence[tuple[str, str, Mapping[int, Sequence[str]]]] = (
    (r"\{intentId\}", "", {404: ["INTENT_NOT_FOUND"]}),
    (r"\{intentId\}/cancel$", "post", {409: ["NOT_CANCELLABLE"]}),
    (r"\{intentId\}/(retry|raise-fee)$", "post", {409: ["ALREADY_ENDED"]}),
    (r"/admin/stakes$", "post", {400: ["UNSUPPORTED_CHAIN", "INVALID_AMOUNT"], 503: ["CHAIN_UNAVAILABLE"]}),
    (r"/admin/stakes$", "post", {400: ["CHAIN_WITHOUT_STAKES", "STAKE_OUT_OF_RANGE"], 409: ["STAKE_CHANGING"]}),
    (r"\{uncollectedId\}", "", {404: ["UNCOLLECTED_NOT_FOUND"]}),
    (r"/admin/collections/addresses/\{address\}$", "", {404: ["ADDRESS_NOT_FOUND"]}),
    (r"/raise-fee$", "post", {400: ["INVALID_AMOUNT"], 409: ["FEE_NOT_RAISABLE", "ALREADY_MINED"]}),
)

QUEUE_VALUES: Mapping[str, Any] = {
    "AtAddressView.code": "below_minimum",
    "AtAddressView.deposits": 1,
    "AtAddressView.intent_id": None,
    "AtAddressView.purpose": "payment",
    "AtAddressView.state": "uncollected",
    "AtAddressView.text": _TOO_SMALL,
    "AtAddressView.uncollected_id": "unc_5q2w8e7r4t1y3u6i9o0p5a2s4d",
    "CollectNow.max_fee_share_bps": 5_000,
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
    "UncollectedView.account_id": None,
    "UncollectedView.amount": "3.5",
    "UncollectedView.asked_at": None,
    "UncollectedView.fee_usd": "0.84",
    "UncollectedView.judged_at": MOMENT,
    "UncollectedView.max_fee_share_bps": None,
    "UncollectedView.purpose": "payment",
    "UncollectedView.refusal": None,
    "UncollectedView.refused_at": None,
    "UncollectedView.reason": "below_minimum",
    "UncollectedView.text": _TOO_SMALL,
    "UncollectedView.uncollected_id": "unc_5q2w8e7r4t1y3u6i9o0p5a2s4d",
    "UncollectedView.until": None,
    "UncollectedView.value_usd": "3.5",
    "WaitsForView.code": "pending",
    "WaitsForView.text": "It is sent, and no block has it yet.",
    "WaitsForView.until": None,
}
