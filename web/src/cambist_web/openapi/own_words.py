"""What single fields and parameters mean, where ``words.txt`` would say something else, and what texts may be.

A line begins with the Struct's name and the field's, or with the operation's and the parameter's as it is sent; for
all parameters of a name, with ``parameter``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from cambist.domain import exchanges, payments, payouts
from cambist.domain.collections import Hindrance
from cambist.domain.intents import AskedBy
from cambist.domain.payments import HeldReason
from cambist.domain.usage import Operation
from cambist.domain.webhooks import EVENTS, EXTENDED_EVENTS, TEST_EVENT, TRACKER_EVENTS
from cambist.services.accounting.statements.kinds import TYPES
from cambist.services.identity.api_keys import SCOPES
from cambist.services.oversight.kinds import Name
from cambist.services.sending.collections.explaining import NOT_LOOKED_AT, PAUSED
from cambist.services.trackers.transactions import Direction, MovementStatus
from cambist_web.permissions import MEMBER_PERMISSIONS, PERMISSIONS

from .merchants import VERSION_WORDS
from .overviews import OVERVIEW_WORDS
from .trail import TRAIL_WORDS
from .words import read

OWN_WORDS: Mapping[str, str] = {
    **read("""
AddressLine.expected          What the address's own deposits leave there.
AddressLine.on_chain          What the address holds.
ChainRun.addresses_asked      How many addresses were asked for.
ChainRun.balances             How many balances were compared.
ChainRun.differences          How many of them differ.
ChainRun.listed               How many of those that differ the run keeps: 100 of each chain at most.
Difference.booked             What the ledger says.
Difference.difference         What is more on the chain; with a minus, what is less.
Difference.explanations       What could explain it, the likeliest first.
Difference.group              The addresses that it is about: deposits, wallet, gas, or between_chains for bridges.
Difference.in_transit         What the ledger will say of blocks that are not deep enough yet.
Difference.on_chain           What the addresses hold.
FailingTarget.failing         How many deliveries wait for it after an attempt that failed.
FailingTarget.project_name    The project's name.
JobView.requested_by          The operator who asked; "operator" for the admin key, "gateway" for the gateway itself.
JobView.worker                The worker that has it, or had it last.
DeliveryOfMerchant.project_name The project's name.
OperatorDelivery.project_name The project's name.
OperatorResolution.can_release Whether anything of it is held, and could be released.
Attention.count               How many there are of it.
Attention.where               Where the merchant's API tells more of it.
MerchantRow.members           How many members it has.
MerchantRow.plan_name         The plan's name.
MerchantRow.projects          How many projects it has.
MerchantRow.suspension_reason Why it was suspended; null where it is not.
ReconcileRun.agrees           Whether nothing differs; null until the run has ended.
ReconcileRun.requested_by     The operator who asked, or "operator" for the admin key.
OrphanedDeposit.confirmed_at  When it had had its confirmations; null where it went before.
OrphanedDeposit.orphaned_at   When a reorg took it away.
RecurringJob.worker           The worker that ran it.
Accept.token                  The token out of the invitation's link.
AccountList.account           The account of the end user who was asked for; null where there is none.
AccountView.addresses         Where the account takes deposits.
CoinPrices.rate               What one whole token costs; null where no price is used.
CoinPrices.refused            Why no price is used; null where one is.
CoinPrices.refused_code       The code of `refused`.
CoinPrices.source             Whose price it is, or the median of whose; null where none is used.
PriceSeen.source              The source.
PriceSeen.observed_at         When the source says that it was so.
PricesView.currency           The currency of all prices.
SourceReason.reason           Why: for the audit log, and whoever wonders.
AddressResult.reason          Why the address was refused; null where it was not.
AssetBalance.deposits         How many deposits there were.
AssetBalance.held             What waits for a decision, in tokens.
AssetBalance.pending          What was seen and waits for confirmations, in tokens.
BalanceView.available         What can be spent now, in tokens.
BridgeFee.name                What the provider calls it.
ChainStatus.name              The chain's name.
ChainView.name                The chain's name.
ChangePlan.name               What the plan is called.
Cost.amount                   What it cost, in the chain's own coin.
Deposit.address               The address that is paid, in the place of an id.
Deposit.confirmations         How many blocks are mined on top of it.
DerivedMinimum.fee            What sending one costs, in the chain's own coin.
ExchangeView.mode             Who wanted it: an order, a payout, or auto-convert.
FeeView.amount                What the chain took, in its own coin.
FiatValue.amount              What it was worth.
FiatData.amount               What it was worth.
GasStationView.balance        What the station holds, in coin; null before it was seen.
GasStationView.symbol         The symbol of the chain's own coin.
GatewayStatus.code            There where it cannot tell: a name for programs.
GatewayStatus.error           There where it cannot tell: a sentence.
GatewayStatus.success         Whether it can tell.
GrantCredits.amount           How many credits are granted; below zero takes them back.
GrantCredits.reference        Your own name for the grant: the same one never counts twice.
NewMerchant.live              Whether the merchant has live mode from the beginning.
NewToken.replaces             Whether it takes the symbol of a disabled token of which nothing is held.
Pack.cpt                      How many credits are in the pack.
PlanUsed.cpt                  How many credits were used in the month.
PlanUsed.month                The calendar month, in UTC.
PublicDeposit.counted         Whether it counts; false where it is held for a decision.
ReadInvitation.token          The token out of the invitation's link.
Ready.success                 Whether requests can be served.
Rejected.field                Which field of the row is wrong; null where it is not one alone.
Rejected.error                Why the row was refused, in a sentence.
ResetConfirm.token            The token out of the link.
ResolutionView.reason         Why the deposit waits for a decision.
StakeView.free_at             When all that is `leaving` can be withdrawn; null where nothing is, or nobody tells.
SystemCredit.currency         `CPT`: usage credits.
Tier.name                     What the tier is called.
Tier.price_per_10k_usd        What 10,000 credits cost, in US dollars.
TokenPatch.merchants          Whether it is enabled, by merchant; null goes back to `defaultEnabled`.
TokenView.is_native           Whether it is the chain's own coin.
TransactionView.from_balance  The balance out of which it went; null for outside of the wallet.
TransactionView.to_balance    The balance to which it went; null for outside of the wallet.
UsageView.amount              How many credits it cost; below zero where they came back.
ChangePlan.is_default         Whether merchants have this plan who were given no other.
TransactionOfSent.nonce       Its sender's nonce; null on chains that have none.
EventTold.deliveries          How many targets it went to, or goes to.
parameter.project             Only what is of this project.
FeeRaiseView.asked_at       Since when a higher fee is wanted; null once that was met or refused.
FeeRaiseView.max_fee        The most that the transaction may cost then; null for the chain's own ceiling.
OutboundTxView.fee          What it has cost; null before it is in a block.
OutboundTxView.max_fee      The most that it may cost.
OutboundTxView.nonce        The nonce under which it is sent; null where the chain has none.
OutboundTxView.sent_at      When a node first took it.
OutboundTxView.tried_at     When it was last broadcast.
OutboundTxView.tries        How often it was broadcast.
OutboundView.behind         The `intentId` of what the same address has to send before it.
OutboundView.cancel_asked_at When somebody asked to cancel it.
OutboundView.intent_id      The transfer's id.
OutboundView.merchant_id    Whose money it is; null for the gateway's own.
OutboundView.nonce          The nonce that it has now; null while it waits.
OutboundView.payout_id      The payout, refund or withdrawal that it is for.
RaiseFee.max_fee            The most that the transaction may cost; the chain's ceiling where left out.
WaitsForView.text           The reason in a sentence.
RefusalView.refused_at      When it was refused last.
RefusalView.first_refused_at When it was refused first since the signer was started.
RefusalView.times           How often it was refused since the signer was started.
AtAddressView.code          What it waits for, in a word.
AtAddressView.deposits      How many deposits there are of it.
AtAddressView.purpose       Whose address it is: of a payment, or of an end user's account.
AtAddressView.text          What it waits for, in a sentence.
AtAddressView.uncollected_id By what it can be collected now; null where nothing has to be asked for.
AtAddressView.value_usd     What it is worth, in US dollars; null where nobody can say.
AtAddressView.fee_usd       What collecting it may cost at most, in US dollars; null where nobody can say.
AtAddressView.max_fee_share_bps The share that the fee may be of it, as it was asked for; null for the rule's own.
AtAddressView.refusal       Why it was not collected when somebody last asked; null where nobody was refused.
CheckedDelivery.delivery_id The test's own delivery, in the log.
SignatureTestData.signature Whether it is signed rightly, or wrongly on purpose.
SignatureCheckView.result   What the server does with signatures.
SignatureCheckView.checked_at When it was asked.
SignatureChecked.result     What the server does with signatures.
SignatureChecked.checked_at When it was asked.
SignatureChecked.kept       Whether it holds for the URL and the secret of now.
UncollectedSumView.reason   Why it stays where it is, in a word.
UncollectedSumView.since    When the oldest of it was confirmed.
UncollectedSumView.text     Why it stays where it is, in a sentence.
UncollectedSumView.value_usd What it is worth, in US dollars, without what nobody can price.
UncollectedSumView.unpriced On how many of the addresses nobody can say what it is worth.
CollectNow.max_fee_share_bps How much of it the fee may be, in hundredths of a percent; the rule's share where left out.
UncollectedView.fee_usd     What collecting it may cost at most, in US dollars; null where nobody can say.
UncollectedView.max_fee_share_bps The share that the fee may be of it, as it was asked for; null for the rule's own.
UncollectedView.purpose     Whose address it is: of a payment, or of an end user's account.
UncollectedView.reason      Why it stays where it is, in a word.
SettlementView.asked_at      Since when the transaction that was named is looked at; null once that is done.
SettlementView.nonce         The nonce for which it was signed last; null where transactions have none.
SettlementView.refusal       Why the last transaction that was named did not end it, or is looked at again; else null.
SettlementView.signed_tx_hash What was signed last, where transactions have no nonce; null elsewhere.
SettlementView.tx_hash       The transaction that was named last; null before.
Settle.tx_hash               The transaction that used the nonce, or where there is none what was signed.
UncollectedView.wish_waits_for Why what somebody wants has no answer yet; null where nobody wants it.
AtAddressView.wish_waits_for Why what somebody wants has no answer yet; null where nobody wants it.
WishWaitsView.code          What it waits for, in a word.
WishWaitsView.since         When it was looked at without an answer; null where nobody has looked.
WishWaitsView.text          What it waits for, in a sentence.
UncollectedView.refusal     Why it was not collected when somebody last asked; null where nobody was refused.
UncollectedView.text        Why it stays where it is, in a sentence.
UncollectedView.until       When the reason ends by itself; null where it does not.
UncollectedView.value_usd   What it is worth, in US dollars; null where no price is known.
listOutbound.olderThanMinutes Only what was asked for at least so many minutes ago.
listReconcileDifferences.group Only what is about these addresses.
parameter.address             Only what concerns this address.
parameter.batchId             Only payouts of this batch.
parameter.chain               Only what is on this chain.
parameter.direction           Only what came, or only what went.
parameter.event               Only this event.
parameter.isActive            Only active ones, or only those that are not.
parameter.isLive              Only those that may use live mode, or only those that may not.
parameter.isSuspended         Only suspended ones, or only those that are not.
listMerchants.plan            Only those that have this plan, by its id.
parameter.kind                Only those of this kind.
parameter.limit               How many there are on a page at most.
parameter.mode                Only those of this mode.
parameter.orderId             Only what belongs to this order of yours.
listRefunds.paymentId         Only what was sent back of this payment.
parameter.page                Which page, from 1, counted from the cursor where one is sent.
parameter.projectId           The project's id.
parameter.reason              Only what waits for this reason.
parameter.resourceId          Only what is about this payment, payout or whatever else has the id.
parameter.revokeKeys          Whether the API keys that the member made are revoked, too.
parameter.status              Only those with this status.
parameter.token               Only what is of this token.
parameter.txHash              Only what is in this transaction.
parameter.srcChain            The chain of what is given.
parameter.srcToken            What is given, by its symbol.
changeCoinSettings.chain      The coin's chain.
changeCoinSettings.symbol     The coin's symbol.
"""),
    **VERSION_WORDS,
    **OVERVIEW_WORDS,
    **TRAIL_WORDS,
}

MODES = ("live", "sandbox")
_PRICING = ("direct_crypto", "fiat")
_RESOLUTIONS = ("accepted", "released", "refunded")
_DELIVERY = ("pending", "paused", "delivered", "dropped", "no_target", "cancelled")
_LOGGED = (*_DELIVERY, "tested")
_INTENT = ("waiting", "sending", "done", "failed")
_JOB = ("queued", "running", "succeeded", "failed", "cancelled")
_BALANCES = ("available", "pending", "held", "receivable")
_NAMES = {**EVENTS, **EXTENDED_EVENTS}

CHOICES: Mapping[str, Iterable[str]] = {
    "mode": MODES,
    "pricing_mode": _PRICING,
    "payment_status": payments.Status,
    "held_reason": HeldReason,
    "resolution": _RESOLUTIONS,
    "token_type": ("Bearer",),
    "autopayout_policy": ("off", "limit"),
    "fiat_reason": ("pending", "no_price"),
    "scopes": SCOPES,
    "AddressAdded.result": ("added", "exists"),
    "CollectionView.status": _INTENT,
    "OutboundTxView.role": ("main", "cancel"),
    "OutboundTxView.state": ("stored", "sent", "mined", "final", "gone"),
    "OutboundView.asked_by": AskedBy,
    "OutboundView.state": ("waiting", "cancelling", "sending", "done", "failed"),
    "AtAddressView.purpose": ("payment", "account"),
    "AtAddressView.state": ("confirming", "uncollected", "collecting"),
    "DeliveryOfMerchant.event": (*_NAMES, *TRACKER_EVENTS, TEST_EVENT),
    "DeliveryOfMerchant.status": _LOGGED,
    "DeliveryAnswer.event": (*_NAMES, *TRACKER_EVENTS, TEST_EVENT),
    "OperatorDelivery.event": (*_NAMES, *TRACKER_EVENTS, TEST_EVENT),
    "DeliveryAnswer.status": _LOGGED,
    "CustomersDeposit.status": get_args(MovementStatus),
    "DepositView.status": get_args(MovementStatus),
    "EventAnswer.event": _NAMES,
    "EventAnswer.resource": dict.fromkeys(_NAMES.values()),
    "DepositOfPayment.status": ("detected", "confirmed", "orphaned"),
    "DepositRow.status": ("detected", "confirmed", "orphaned"),
    "EventDelivery.status": _DELIVERY,
    "EventTold.event": _NAMES,
    "ExchangeRow.kind": exchanges.Kind,
    "ExchangeRow.status": exchanges.Status,
    "Found.kind": ("merchants", "projects", *Name),
    "OwnFound.kind": Name,
    "PaymentRow.status": payments.Status,
    "SentForPayment.status": payouts.Status,
    "SentRow.kind": ("payout", "auto_payout", "refund", "withdrawal"),
    "SentRow.status": payouts.Status,
    "TransactionOfSent.state": ("stored", "sent", "mined", "final", "gone"),
    "Live.status": ("live",),
    "OperatorSelf.permissions": PERMISSIONS,
    "OwnMemberAnswer.permissions": MEMBER_PERMISSIONS,
    "PaymentDetail.status": payments.Status,
    "PaymentView.status": payments.Status,
    "PriceSeen.status": ("used", "too_old", "too_far", "impossible", "set_aside"),
    "PayoutView.kind": ("payout", "auto_payout"),
    "PayoutView.status": payouts.Status,
    "PublicPayment.status": payments.Status,
    "Ready.status": ("ready", "degraded", "unavailable"),
    "ReceiptLinks.status": payments.Status,
    "RefundView.status": payouts.Status,
    "RescanAsked.state": _JOB,
    "ResolutionView.reason": HeldReason,
    "StakeView.status": _INTENT,
    "SwapView.kind": ("swap", "bridge"),
    "TrackedTransaction.direction": get_args(Direction),
    "TrackedTransaction.status": get_args(MovementStatus),
    "TransactionView.from_balance": _BALANCES,
    "TransactionView.to_balance": _BALANCES,
    "TransactionView.type": TYPES,
    "UncollectedView.purpose": ("payment", "account"),
    "UsageView.operation": Operation,
    "WishWaitsView.code": (PAUSED, NOT_LOOKED_AT, *Hindrance),
    "WithdrawalView.status": payouts.Status,
}
"""What a text in an answer may be, where its type does not say so, by its name or by its Struct's and its own."""

CHOSEN = frozenset({"status", "state", "mode", "kind", "type", "resource", "event", "direction", "resolution"})
"""Fields of these names have choices in answers, or say that they have none: with an empty tuple."""
