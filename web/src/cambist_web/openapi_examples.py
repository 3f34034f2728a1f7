"""Examples of bodies and answers for the API's description, made from the Structs that are read and answered.

A field has the value that is here under its name, or under its Struct's name and its own where those of others would
not fit. Whatever a Struct gets a field for fails until there is a value for it, so no example goes stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar.handlers import BaseRouteHandler
from litestar.response import Stream
from msgspec import inspect

from cambist.services.accounting.statements.export import COLUMNS

from .schemas import with_moments

ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"
CONTRACT = "0xdac17f958d2ee523a2206206994597c13d831ec7"
TX_HASH = "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060"
MOMENT = "2026-01-31T12:00:00.000Z"

VALUES: Mapping[str, Any] = {
    "accepted_rows": 1,
    "access_token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzZXNfNGsifQ.c2ln",
    "address": ADDRESS,
    "allowed_ips": ["203.0.113.7"],
    "amount": "12.5",
    "api_key": "ck_live_4k2m7qvx4d6bz2c5n7y3wq4a9r8t6e5w3q2z1x0c9v8b7n6m5h4g",
    "api_method": 0,
    "approval_id": "apa_7q2m4k",
    "auto_convert_dest_chain": None,
    "auto_convert_dest_token": None,
    "auto_convert_enabled": False,
    "autopayout_address": ADDRESS,
    "autopayout_minimum_usd": "5",
    "autopayout_policy": "limit",
    "autopayout_threshold": "1000",
    "autopayout_waits_for": [],
    "available": "80",
    "batch_id": "bat_6n5h3g",
    "block_hash": TX_HASH,
    "cancel_url": "https://shop.example/cart",
    "chain": "ethereum",
    "chain_id_num": 1,
    "chain_name": "Ethereum",
    "checkout_url": "https://pay.example.com/pay/pub_8t6e5w",
    "checks": {"database": "ok", "redis": "ok"},
    "collection_id": "col_3w9q2z",
    "confirmations": 12,
    "contract_address": CONTRACT,
    "cpt": 10_000,
    "currency": "CPT",
    "current_password": "correct horse battery staple",
    "customer_email": "carol@example.com",
    "customer_name": "Carol",
    "decimals": 6,
    "default_confirmations": 12,
    "delivery_id": "evt_2x8c4v",
    "deposit_address": ADDRESS,
    "deposit_id": "dep_9b7n6m",
    "deposits_left_out": 0,
    "depth": 1,
    "derived_minimums": {
        "ethereum/USDT": {
            "minimum": "1.05",
            "fee": "0.00042",
            "nativePrice": "2500",
            "tokenPrice": "1",
            "derivedAt": MOMENT,
        }
    },
    "duration_ms": 87,
    "email": "owner@shop.example",
    "error": None,
    "event": "payment.paid",
    "expected_amount": "12.5",
    "expected_amount_raw": "12500000",
    "expires_in": 900,
    "expires_in_minutes": 60,
    "family": "evm",
    "fiat_currency": "usd",
    "floor": 0,
    "from_address": ADDRESS,
    "grace_hours": 24,
    "height": 24_000_000,
    "held": "0",
    "held_amount": "2.5",
    "hint": "ck_live_4k2m",
    "id": "led_3k5h2m7qvx4d6bz2c5n7y3wq4a",
    "ip": "203.0.113.7",
    "is_low": False,
    "key_id": "key_5w3q2z",
    "kind": "payout",
    "label": "Tether USD",
    "leaving": "0",
    "lendable": "3000",
    "lent": "1000",
    "limit": 25,
    "limits": {"ethereum/USDT": {"perTransaction": "10000", "perDay": "50000"}},
    "link": "https://pay.example.com/set-password#8t6e5w3q2z1x0c9v",
    "max_cpt": None,
    "merchant_id": "mer_1x0c9v",
    "message": "Done.",
    "metadata": {"basket": 42},
    "min_cpt": 0,
    "mode": "live",
    "name": "Ada's Shop",
    "native_symbol": "ETH",
    "new_password": "every staple needs a horse",
    "next_cursor": "AQhCPSECAVfYDqu8MC2VNz4IUsovJjyLIXJvB34LbKWaONAH5f8ME_Q",
    "number": 1,
    "operation": "payout",
    "order_id": "A-1001",
    "otpauth_uri": "otpauth://totp/Cambist:ada%40shop.example?secret=JBSWY3DPEHPK3PXP&issuer=Cambist",
    "page": 1,
    "password": "correct horse battery staple",
    "payload": {"event": "payment.paid", "data": {"paymentId": "pay_4g6h8j"}},
    "payment_id": "pay_4g6h8j",
    "payment_status": "overpaid",
    "payment_webhook_url": "https://shop.example/webhooks",
    "payout_enabled": True,
    "payout_id": "po_8q2b4d",
    "pending": "20",
    "price_per_10k_usd": "10",
    "price_usd": "10",
    "pricing_mode": "direct_crypto",
    "project_id": "prj_2z1x0c",
    "public_id": "pub_8t6e5w",
    "qr_code": "data:image/svg+xml,%3Csvg/%3E",
    "rate": "0.9998",
    "reason": "surplus",
    "received_amount": "12.5",
    "receipt_url": "https://pay.example.com/receipt/pub_8t6e5w",
    "recovery_codes": ["4k2m7-qvx4d", "6bz2c-5n7y3"],
    "recovery_codes_left": 10,
    "reference": "po_8q2b4d",
    "refund_id": "ref_6h5g4f",
    "refunded_amount": "0",
    "rejected_rows": 1,
    "remaining_amount": "0",
    "replayed_rows": 0,
    "required_confirmations": 12,
    "resource_id": "pay_4g6h8j",
    "response_body": "ok",
    "row": 1,
    "scopes": ["read", "payments"],
    "seconds": 3600,
    "secret": "JBSWY3DPEHPK3PXP",
    "session_id": "ses_0c9v8b",
    "shop_name": "Ada's Shop",
    "signature": "3f1c5a",
    "source": "prices",
    "staked": "5000",
    "status": "completed",
    "status_code": 200,
    "success_url": "https://shop.example/thanks",
    "symbol": "USDT",
    "target": "available",
    "timestamp": "1769860800000",
    "to_address": ADDRESS,
    "token": "USDT",
    "token_label": "USDT (ERC-20)",
    "total": 1,
    "total_amount": "12.5",
    "totp_code": "123456",
    "tracker": 5,
    "tx_hash": TX_HASH,
    "type": "allocation",
    "underpayment_tolerance_percent": 0.5,
    "url": "https://shop.example/webhooks",
    "usd": "12.5",
    "user_agent": "Mozilla/5.0",
    "waiting": 0,
    "waits_for": None,
    "webhook_delivery": 1,
    "webhook_secret": "5c" * 32,
    "webhook_url": None,
    "withdrawable": "0",
    "withdrawal_id": "wd_7n6m5h",
    # What has the same name elsewhere, and means something else.
    "ApprovalRequest.label": "Cold wallet",
    "ApprovedAddress.label": "Cold wallet",
    "Ask.pricing_mode": "fiat",
    "CalculatorChain.name": "Ethereum",
    "CalculatorWeights.chains": {"ethereum": {}},
    "ChainView.name": "Ethereum",
    "Cost.amount": "0.0004",
    "Cost.token": "ETH",
    "CollectionView.deposits": 1,
    "CollectionView.status": "done",
    "FeeView.amount": "0.0004",
    "FeeView.token": "ETH",
    "GasStationView.balance": "1.5",
    "GasStationView.symbol": "ETH",
    "GrantCredits.amount": 10_000,
    "GrantCredits.reference": "invoice-7",
    "KeyView.name": "Till",
    "Live.status": "live",
    "NewKey.name": "Till",
    "Pack.name": "Small",
    "PaymentDetail.status": "paid",
    "PaymentView.status": "paid",
    "DeliveryAnswer.status": "delivered",
    "DepositView.status": "confirmed",
    "PublicPayment.status": "paid",
    "ReceiptLinks.status": "paid",
    "Ready.status": "ready",
    "RefundRequest.reason": "The customer changed their mind.",
    "RefundView.reason": "The customer changed their mind.",
    "RefundView.deposit_id": None,
    "Rejected.amount": "1",
    "Rejected.code": "INVALID_ADDRESS",
    "Rejected.error": "toAddress is no address of this chain",
    "Rejected.to_address": "nowhere",
    "ResetConfirm.token": "8t6e5w3q2z1x0c9v8b7n6m5h4g3f2d1s",
    "ResetIssued.token": "8t6e5w3q2z1x0c9v8b7n6m5h4g3f2d1s",
    "ResolutionView.resolution": None,
    "StakeBody.action": "stake",
    "StakeBody.chain": "tron",
    "StakeBody.amount": "5000",
    "StakeView.amount": "5000",
    "StakeView.chain": "tron",
    "StakeView.stake_id": "stake:stk_0f2d1s",
    "StakeView.status": "done",
    "StakeView.token": "TRX",
    "SteppedUp.expires_in": 300,
    "SystemCredit.balance": 9_990,
    "Tier.name": "Starter",
    "TokenView.is_native": False,
    "TransactionView.source": "held",
    "UsageView.amount": 5,
    "WalletAddress.chains": ["ethereum"],
}
SHOWN: Mapping[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "Ask": "fiat_currency",
        "ApprovalRequest": "label totp_code",
        "ChangeProject": "payment_webhook_url grace_hours",
        "CoinPatch": "autopayout_policy autopayout_threshold autopayout_address",
        "CreatePayment": "order_id success_url cancel_url customer_email metadata",
        "CreateProject": "payment_webhook_url",
        "Deposit": "payment_id",
        "GasStationView": "stake",
        "Login": "totp_code",
        "NewKey": "name scopes allowed_ips",
        "PayoutRequest": "amount",
        "PlatformPatch": "payout_enabled limits",
        "Recalculate": "expires_in_minutes",
        "RefundRequest": "amount reason",
        "StakeBody": "amount",
        "TransactionView": "payment_id deposit_id",
        "WithdrawalRequest": "totp_code",
    }.items()
}
"""The fields that examples have though they could be left out. Answers have all that are never left out besides."""


def answered_by(handler: BaseRouteHandler) -> Any:  # noqa: ANN401  any type
    """Return the type of what a handler answers, out of the ``Response`` that it may be in."""
    field = handler.parsed_fn_signature.return_type
    return field.inner_types[0].annotation if field.inner_types else field.annotation


def body_example(kind: Any) -> Any:  # noqa: ANN401  a handler's type, and JSON
    """Return a body as a merchant would send it. Raises LookupError for a field without a value."""
    return _example("", "", inspect.type_info(kind))


def answer_example(kind: Any) -> Any:  # noqa: ANN401  as above
    """Return an answer as it would be sent. Raises LookupError, and msgspec.ValidationError for a value of no use."""
    if kind is Stream:
        return ",".join(COLUMNS)  # the statement as a file
    return msgspec.to_builtins(with_moments(msgspec.convert(body_example(kind), kind)))


def _example(owner: str, name: str, kind: inspect.Type) -> Any:  # noqa: ANN401  one for each kind of type
    for key in (f"{owner}.{name}", name):
        if key in VALUES:
            return VALUES[key]
    match _plain(kind):
        case inspect.StructType(cls=cls, fields=fields):
            shown = SHOWN.get(cls.__name__, frozenset())
            wanted = [field for field in fields if field.required or field.name in shown]
            return {field.encode_name: _example(cls.__name__, field.name, field.type) for field in wanted}
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return [_example(owner, name, item)]
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.EnumType(cls=cls):
            return next(iter(cls)).value
        case inspect.BoolType():
            return True
        case inspect.DateTimeType():
            return MOMENT
    raise LookupError(f"{owner}.{name} has no example in VALUES")


def _plain(kind: inspect.Type) -> inspect.Type:
    """Return the type without its bounds and without None."""
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        return _plain(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
    return kind
