"""What the body of each webhook holds, for the API's description: one Struct for the ``data`` of each event.

The use cases write the bodies; every event that any test of ours enqueues is compared with these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from cambist.domain import exchanges, payments, payouts
from cambist.domain.failures import Failure
from cambist.domain.payments import HeldReason
from cambist.domain.webhooks import TEST_EVENT

Amount = Annotated[str, Meta(pattern=r"^-?[0-9]+(\.[0-9]+)?$", description="A decimal number as text.")]
TxHash = Annotated[str, Meta(description="A transaction, as its chain spells it.")]


class _Data(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What every event has. `timestamp` is when it happened, `isTest` is there on test deliveries alone."""

    timestamp: datetime
    is_test: bool | UnsetType = UNSET


class PaymentData(_Data, frozen=True, kw_only=True):
    """A payment at this moment. `txHash` is of the deposit that came last; `orderId` is there where you gave one."""

    resource: Literal["payment"]
    payment_id: str
    public_id: str
    chain: str
    token: str
    status: payments.Status
    expected_amount: Amount
    received_amount: Amount
    tx_hash: TxHash | None
    order_id: str | UnsetType = UNSET


class PaymentRefundedData(PaymentData, frozen=True, kw_only=True):
    """A payment, and the refund that was sent: `amount` of it, and `refundedAmount` with those before."""

    refund_id: str
    amount: Amount
    refunded_amount: Amount
    to_address: str
    to_tag: str | UnsetType = UNSET


class PaymentRecalculatedData(PaymentData, frozen=True, kw_only=True):
    """A payment with its fresh rate: `amount` in `fiatCurrency` at `exchangeRate`, payable until `expiresAt`."""

    amount: Amount
    fiat_currency: str
    exchange_rate: Amount
    rate_source: str
    expires_at: datetime


class DepositData(_Data, frozen=True, kw_only=True):
    """A deposit to a payment's address; `status` is the payment's."""

    resource: Literal["deposit"]
    deposit_id: str
    payment_id: str
    public_id: str
    status: payments.Status
    chain: str
    token: str
    amount: Amount
    tx_hash: TxHash
    order_id: str | UnsetType = UNSET


class PartialDepositData(DepositData, frozen=True, kw_only=True):
    """A deposit after which the payment waits for more."""

    expected_amount: Amount
    received_amount: Amount


class HeldDepositData(DepositData, frozen=True, kw_only=True):
    """A deposit of which `heldAmount` waits for your decision."""

    held_amount: Amount
    reason: HeldReason


class PayoutSwapData(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The swap or bridge that the payout was paid out of."""

    txn_id: str
    kind: exchanges.Kind
    src_chain: str
    src_token: str
    src_amount: Amount
    tx_hash: TxHash | None


class _SentData(_Data, frozen=True, kw_only=True):
    """Money that was sent. `error` and `errorCode` are there where it failed."""

    kind: Literal["payout", "auto_payout", "withdrawal"]
    chain: str
    token: str
    amount: Amount
    to_address: str
    to_tag: str | UnsetType = UNSET
    status: payouts.Status
    tx_hash: TxHash | None
    batch_id: str | UnsetType = UNSET
    swap: PayoutSwapData | UnsetType = UNSET
    error: str | UnsetType = UNSET
    error_code: Failure | UnsetType = UNSET


class PayoutData(_SentData, frozen=True, kw_only=True):
    """A payout that has ended. `error` and `errorCode` are there where it failed, `batchId` in a batch."""

    resource: Literal["payout"]
    payout_id: str


class WithdrawalData(_SentData, frozen=True, kw_only=True):
    """A withdrawal that has ended. `error` and `errorCode` are there where it failed."""

    resource: Literal["withdrawal"]
    withdrawal_id: str


class FiatData(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the deposit was worth in one currency when it was first seen."""

    currency: str
    amount: Amount
    rate: Amount
    source: str
    observed_at: datetime


class AccountDepositData(_Data, frozen=True, kw_only=True):
    """A deposit to an end user's account."""

    resource: Literal["account_deposit"]
    account_id: str
    external_id: str
    deposit_id: str
    chain: str
    token: str
    amount: Amount
    address: str
    tx_hash: TxHash
    status: Literal["detected", "confirmed", "orphaned"]
    confirmations: int
    required_confirmations: int
    incarnation: int
    fiat: Sequence[FiatData]
    fiat_reason: str | None


class HeldAccountDepositData(AccountDepositData, frozen=True, kw_only=True):
    """A deposit to an end user's account of which `heldAmount` waits for your decision."""

    held_amount: Amount
    reason: HeldReason


class RefundData(_Data, frozen=True, kw_only=True):
    """One refund. `error` and `errorCode` are there where it failed; `depositId` where it sends one deposit back."""

    resource: Literal["refund"]
    refund_id: str
    payment_id: str | None
    chain: str
    token: str
    amount: Amount
    to_address: str
    to_tag: str | UnsetType = UNSET
    status: payouts.Status
    tx_hash: TxHash | None
    deposit_id: str | UnsetType = UNSET
    order_id: str | UnsetType = UNSET
    error: str | UnsetType = UNSET
    error_code: Failure | UnsetType = UNSET


class ExchangeData(_Data, frozen=True, kw_only=True):
    """A swap or bridge that has ended. `error` and `errorCode` are there where it failed."""

    resource: Literal["exchange"]
    txn_id: str
    kind: exchanges.Kind
    mode: exchanges.MadeFor
    status: exchanges.Status
    source_chain: str
    source_token: str
    source_amount: Amount
    dest_chain: str
    dest_token: str
    dest_amount: Amount | None
    tx_hash: TxHash | None
    dest_tx_hash: TxHash | None
    error: str | UnsetType = UNSET
    error_code: Failure | UnsetType = UNSET


class TransactionData(_Data, frozen=True, kw_only=True):
    """A transfer from or to an address of a tracker. `label` is there where the address has one."""

    resource: Literal["transaction"]
    transaction_id: str
    chain: str
    tx_hash: TxHash
    direction: Literal["in", "out"]
    address: str
    label: str | UnsetType = UNSET
    sender: str | None = field(name="from")
    recipient: str = field(name="to")
    token: str
    contract_address: str | None
    amount: Amount
    block_number: int
    block_hash: str
    block_time: datetime
    confirmations: int
    required_confirmations: int
    status: Literal["detected", "confirmed", "orphaned"]


class SignatureTestData(_Data, frozen=True, kw_only=True):
    """Nothing that happened: what a check of signatures sends twice, signed rightly (`genuine`) and wrongly (`forged`).

    Answer the first one with 2xx, and refuse the second one, which a secret has signed that nobody has, with 4xx.
    """

    resource: Literal["webhook"]
    signature: Literal["genuine", "forged"]
    message: str


PAYLOADS: Mapping[str, type[Any]] = MappingProxyType(
    {
        **dict.fromkeys(
            (f"payment.{one}" for one in ("detected", "confirming", "paid", "overpaid", "expired")), PaymentData
        ),
        "payment.underpaid": PaymentData,
        "payment.failed": PaymentData,
        "payment.refunded": PaymentRefundedData,
        "payment.rate_recalculated": PaymentRecalculatedData,
        "payment.partial": PartialDepositData,
        "payment.held": HeldDepositData,
        "payout.completed": PayoutData,
        "payout.failed": PayoutData,
        "withdrawal.completed": WithdrawalData,
        "withdrawal.failed": WithdrawalData,
        "account.deposit.received": AccountDepositData,
        "account.deposit.confirmed": AccountDepositData,
        "account.deposit.orphaned": AccountDepositData,
        "account.deposit.held": HeldAccountDepositData,
        "refund.sent": RefundData,
        "refund.completed": RefundData,
        "refund.failed": RefundData,
        "exchange.succeeded": ExchangeData,
        "exchange.failed": ExchangeData,
        "transaction.detected": TransactionData,
        "transaction.confirmed": TransactionData,
        "transaction.orphaned": TransactionData,
        TEST_EVENT: SignatureTestData,
    }
)
"""The ``data`` of every event, by its name."""
