"""What the API's description says of the signer: values of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .values import ADDRESS

SIGNER_VALUES: Mapping[str, Any] = {
    "AnswerApproval.code": "4711 0815",
    "AnswerView.approval_id": "7",
    "AnswerView.asked_by": "opr_5k3j2h",
    "ApprovalView.approval_id": "7",
    "ApprovalView.amount": "25000 USDT",
    "ApprovalView.intent_id": "int_5d41402abc4b2a76b9719d911017c592",
    "ApprovalView.reference": "payout:po_7q2m4k",
    "RefusalView.reason": "25000 USDT to 0x5290… waits for 'cambist signer approve'.",
    "RefusalView.reference": "payout:po_7q2m4k",
    "SignerRule.limit": "20000",
    "SignerRule.used": "1200",
    "SignerRule.name": "ethereum/USDT",
    "SignerView.addresses": {"allowed_addresses": {"ethereum": [ADDRESS]}},
    "VoidView.reference": "payout:po_7q2m4k",
}
