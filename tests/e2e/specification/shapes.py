"""What the specification shows of each answer: its fields and their types, and no others.

An answer may hold more. A field that is shown must be there, and is null only where the specification lets it be.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Amount = Annotated[str, Meta(pattern=r"^-?[0-9]+(\.[0-9]+)?$")]
Units = Annotated[str, Meta(pattern=r"^[0-9]+$")]
Moment = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")]
Secret = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, Meta(min_length=1)]
Number = int | float
Object = dict[str, Any]
PaymentStatus = Literal[
    "pending", "detected", "confirming", "paid", "underpaid", "overpaid", "expired", "failed", "refunded"
]
ExchangeStatus = Literal["pending", "succeeded", "failed"]


class Shown(Struct, frozen=True, kw_only=True, rename="camel"):
    """Some fields of something."""


class Success(Shown, frozen=True, kw_only=True):
    """What every successful answer has."""

    success: Literal[True]


class Failure(Shown, frozen=True, kw_only=True):
    """2.11 and 7: every error. The name of the field with the code is not shown: it is ``code``."""

    success: Literal[False]
    error: Text
    code: Annotated[str, Meta(pattern=r"^[A-Z_]+$")]


class PublicPayment(Shown, frozen=True, kw_only=True):
    """2.1: what everybody may see of a payment."""

    public_id: Text
    chain: Text
    token: Text
    deposit_address: Text
    expected_amount: Amount
    received_amount: Amount
    status: PaymentStatus
    expires_at: Moment
    order_id: str | None
    deposits: list[Object]


class Payment(Shown, frozen=True, kw_only=True):
    """2.1, without what only the reading of a single payment shows."""

    payment_id: Text
    public_id: Text
    chain: Text
    token: Text
    deposit_address: Text
    expected_amount: Amount
    received_amount: Amount
    exchange_rate: Amount | UnsetType = UNSET  # there where the price is in fiat
    status: PaymentStatus
    expires_at: Moment
    order_id: str | None
    success_url: str | None
    cancel_url: str | None
    tx_hash: str | None
    metadata: Object | None


class PaymentInFull(Payment, frozen=True, kw_only=True):
    """2.1, with the customer's data."""

    customer_name: str | None
    customer_email: str | None


class Quoted(Success, frozen=True, kw_only=True):
    """2.2."""

    rate: Amount | None
    expected_amount: Amount
    expected_amount_raw: Units
    decimals: int
    source: Text
    valid_until: Moment


class PaymentMade(Success, frozen=True, kw_only=True):
    payment: Payment
    checkout_url: Text


class PaymentRead(Success, frozen=True, kw_only=True):
    payment: PaymentInFull


class PublicPaymentRead(Success, frozen=True, kw_only=True):
    payment: PublicPayment


class Paged(Success, frozen=True, kw_only=True):
    page: int
    limit: int


class Payments(Paged, frozen=True, kw_only=True):
    payments: list[Payment]


class ReceiptLinks(Success, frozen=True, kw_only=True):
    payment_id: Text
    public_id: Text
    status: PaymentStatus
    receipt_url: Text
    checkout_url: Text


class Refunds(Paged, frozen=True, kw_only=True):
    refunds: list[Object]


class Chain(Shown, frozen=True, kw_only=True):
    """2.3."""

    chain: Text
    name: Text
    native_symbol: Text
    chain_id_num: int | None
    is_evm: bool
    default_confirmations: int


class Chains(Success, frozen=True, kw_only=True):
    chains: list[Chain]


class Token(Shown, frozen=True, kw_only=True):
    """2.4."""

    chain: Text
    symbol: Text
    contract_address: str | None
    decimals: int
    is_native: bool
    label: Text


class Tokens(Success, frozen=True, kw_only=True):
    tokens: list[Token]


class CalculatorChain(Shown, frozen=True, kw_only=True):
    chain: Text
    name: Text
    native_symbol: str | None


class Tier(Shown, frozen=True, kw_only=True):
    name: Text
    min_cpt: int
    max_cpt: int | None
    price: Amount = field(name="pricePer10kUsd")


class CalculatorConfig(Success, frozen=True, kw_only=True):
    """2.11."""

    chains: list[CalculatorChain]
    weights: Object
    tiers: list[Tier]
    packs: list[Object]


class Balance(Success, frozen=True, kw_only=True):
    balance: Object


class Wallet(Success, frozen=True, kw_only=True):
    balances: list[Object]
    system_credit: Object


class Addresses(Success, frozen=True, kw_only=True):
    addresses: list[Object]


class Transactions(Success, frozen=True, kw_only=True):
    transactions: list[Object]


class Payout(Shown, frozen=True, kw_only=True):
    """2.5."""

    payout_id: Text
    status: Text
    amount: Amount
    to_address: Text


class PayoutMade(Success, frozen=True, kw_only=True):
    payout: Payout


class Batch(Shown, frozen=True, kw_only=True):
    total_amount: Amount
    accepted_rows: int
    rejected_rows: int


class BatchMade(Success, frozen=True, kw_only=True):
    batch: Batch
    payouts: list[Payout]


class Payouts(Success, frozen=True, kw_only=True):
    payouts: list[Payout]


class ExchangeQuote(Shown, frozen=True, kw_only=True):
    dst_amount: Amount


class BridgeQuote(ExchangeQuote, frozen=True, kw_only=True):
    fees: list[Object]
    fill_deadline: Moment


class SwapQuoted(Success, frozen=True, kw_only=True):
    quote: ExchangeQuote


class BridgeQuoted(Success, frozen=True, kw_only=True):
    quote: BridgeQuote


class ExchangeMade(SwapQuoted, frozen=True, kw_only=True):
    txn_id: Text


class Exchange(Shown, frozen=True, kw_only=True):
    """2.6."""

    txn_id: Text
    mode: Literal["manual", "auto", "payout"]
    kind: Literal["swap", "bridge"]
    source_chain: Text
    dest_chain: Text
    status: ExchangeStatus


class Exchanges(Paged, frozen=True, kw_only=True):
    exchanges: list[Exchange]


class PlatformFees(Success, frozen=True, kw_only=True):
    """2.11."""

    swap_fee_percent: Number
    bridge_fee_percent: Number
    default_slippage: Number
    auto_convert_markup_percent: Number
    payout_swap_enabled: bool


class SecretRotated(Success, frozen=True, kw_only=True):
    message: Text
    webhook_secret: Secret
    rotated_at: Moment


class TestDelivered(Success, frozen=True, kw_only=True):
    __test__ = False  # no class of tests

    delivered: bool
    status_code: int | None
    duration_ms: int
    signature: str
    timestamp: Units
    payload: Object
    response_body: Annotated[str, Meta(max_length=500)] | None


class Project(Shown, frozen=True, kw_only=True):
    """2.8."""

    project_id: Text
    payment_webhook_url: str | None


class ProjectMade(Success, frozen=True, kw_only=True):
    project: Project
    webhook_secret: Secret


class Tracker(Shown, frozen=True, kw_only=True):
    """2.7, as it is read."""

    webhook_id: Text
    url: Text
    name: Text
    chain: Text
    start_block: int
    max_addresses: Annotated[int, Meta(ge=1)]
    is_active: bool
    metadata: Object | None


class NewTracker(Shown, frozen=True, kw_only=True):
    webhook_id: Text
    auth_token: Text
    secret_key: Text
    url: Text
    name: Text
    chain: Text
    start_block: int


class TrackerMade(Success, frozen=True, kw_only=True):
    webhook: NewTracker
    warning: Text


class TrackerRead(Success, frozen=True, kw_only=True):
    webhook: Tracker


class ListedTracker(Tracker, frozen=True, kw_only=True):
    auth_token: Text


class Trackers(Success, frozen=True, kw_only=True):
    webhooks: list[ListedTracker]


class NewCredentials(Shown, frozen=True, kw_only=True):
    auth_token: Text
    secret_key: Text


class CredentialsMade(Success, frozen=True, kw_only=True):
    webhook: NewCredentials


class AccountAddress(Shown, frozen=True, kw_only=True):
    chain: Text
    address: Text


class Account(Shown, frozen=True, kw_only=True):
    """2.9."""

    account_id: Text
    external_id: Text
    addresses: list[AccountAddress]


class AccountMade(Success, frozen=True, kw_only=True):
    account: Account


class Event(Shown, frozen=True, kw_only=True):
    """6: the body of every delivery."""

    event: Text
    webhook_id: Text
    data: Object


class PaymentData(Shown, frozen=True, kw_only=True):
    """6: what events of payments say."""

    resource: Literal["payment"]
    payment_id: Text
    public_id: Text
    chain: Text
    token: Text
    status: PaymentStatus
    expected_amount: Amount
    received_amount: Amount
    tx_hash: str | None
    timestamp: Moment


class PayoutData(Shown, frozen=True, kw_only=True):
    resource: Literal["payout"]
    payout_id: Text


class WithdrawalData(Shown, frozen=True, kw_only=True):
    resource: Literal["withdrawal"]
    withdrawal_id: Text


class AccountDepositData(Shown, frozen=True, kw_only=True):
    resource: Literal["account_deposit"]
    status: Literal["detected", "confirmed"]


DATA: dict[str, type[Shown]] = {
    "payment": PaymentData,
    "payout": PayoutData,
    "withdrawal": WithdrawalData,
    "account_deposit": AccountDepositData,
}
