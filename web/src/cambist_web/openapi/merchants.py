"""What is described of operators' errors with merchants, of a suspended merchant's, of versions, and of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MERCHANT_ERRORS: Sequence[tuple[str, str, Mapping[int, Sequence[str]]]] = (
    (r"/auth/(login|password)$", "post", {403: ["MERCHANT_SUSPENDED"]}),
    (r"/payment/public/\{publicId\}$", "get", {403: ["MERCHANT_SUSPENDED"]}),
    (r"/admin/merchants$", "post", {409: ["EMAIL_TAKEN"], 503: ["KEYS_UNAVAILABLE"]}),
    (r"/admin/(merchants/|password-resets$)", "", {404: ["MERCHANT_NOT_FOUND"]}),
    (r"/\{merchantId\}/suspend$", "post", {409: ["MERCHANT_ALREADY_SUSPENDED"]}),
    (r"/\{merchantId\}/reinstate$", "post", {409: ["MERCHANT_NOT_SUSPENDED"]}),
)

_SENT = ("ChangeMember", "ChangePlan", "EnabledCoins", "PlatformPatch", "SetLimits")
_VERSIONED = (*_SENT, "CoinList", "LimitsSet", "MemberView", "PlanView", "PlatformSettingsAnswer")
_READ = "The version that was read: where it is another by now, nothing is changed."

VERSION_WORDS: Mapping[str, str] = {
    **{f"{name}.version": _READ for name in _SENT},
    "CoinList.version": "How often it was said which coins are enabled: it goes along where that is said.",
    "LimitsSet.version": "How often these limits were changed: it goes along where they are set.",
    "MerchantPage.limits_version": "How often these limits were changed: it goes along where they are set.",
    "MemberView.version": "How often role or projects were changed: it goes along where they are.",
    "PlanView.version": "How often the plan was changed: it goes along where it is.",
    "PlatformSettingsAnswer.version": "How often the settings were changed: it goes along where they are.",
}

MERCHANT_VALUES: Mapping[str, Any] = {
    "Pair.kind": "bridge",
    "Rejected.field": "toAddress",
    "DeliveryOfMerchant.endpoint_id": None,
    "DeliveryOfMerchant.event": "payment.paid",
    "DeliveryOfMerchant.status": "delivered",
    "OrphanedDeposit.deposit_id": "dep_3v5k1q",
    **{f"{name}.version": 7 for name in _VERSIONED},
    "MerchantPage.limits_version": 7,
    "Attention.code": "PAYOUTS_WAITING",
    "Attention.count": 3,
    "Attention.message": "Payouts, refunds or withdrawals have waited for more than an hour.",
    "Attention.where": "/api/dashboard/projects/{projectId}/wallet/payouts",
    "MerchantLimit.per_day": "50000",
    "MerchantLimit.per_transaction": "10000",
    "MerchantRow.members": 4,
    "MerchantRow.plan_name": "Business",
    "MerchantRow.projects": 2,
    "OwnFound.account_id": None,
    "OwnFound.id": "pay_9q4m2k",
    "OwnFound.kind": "payments",
    "OwnFound.payment_id": "pay_9q4m2k",
    "OwnFound.status": "paid",
    "OutgoingLimit.minimum": "5",
    "OutgoingLimit.per_day": "50000",
    "OutgoingLimit.per_transaction": "10000",
    "NewLimit.minimum": "5",
    "NewLimit.per_day": "50000",
    "NewLimit.per_transaction": "10000",
    "Suspend.reason": "Chargebacks, ticket 4711.",
}
