"""Turns a payment into what its pages show. Pure: a payment, its chain and the time in, a view out."""

from __future__ import annotations

from datetime import datetime, timedelta

from cambist.domain.money import format_rate, format_units, minor_units
from cambist.domain.payments import OPEN, Status
from cambist.plugin import AddressFamily, ChainInfo, Token, Units
from cambist.services.receiving.checkout import CheckoutDeposit, CheckoutPayment

from . import returns
from .links import address_parts, explorer_url, named, payment_uri_of, tx_short
from .steps import confirmations, steps
from .view import CheckoutView, Countdown, PayBox, TransferLine
from .wording import Amounts, Late, clock_text, closed, moment_text, words

RECEIPT_STATES = frozenset({Status.PAID, Status.OVERPAID, Status.UNDERPAID, Status.REFUNDED})

REFRESH_OPEN_S = 10
REFRESH_LATE_S = 60

FAILED_WATCHED = timedelta(hours=1)
"""A transfer that a reorg threw out is usually mined again within minutes."""


def checkout_view(
    payment: CheckoutPayment, now: datetime, chain: ChainInfo | None, family: AddressFamily | None
) -> CheckoutView:
    """Return what to show of the payment at this moment.

    ``chain`` and ``family`` are None where the operator no longer runs the chain; the page then works without
    payment link and explorer.
    """
    network = chain.name if chain else payment.chain
    amounts = _amounts(payment)
    waits = payment.status is Status.PENDING
    time_is_up = waits and now >= payment.expires_at
    told = words(payment.status, amounts, shop=payment.shop_name, network=network, time_is_up=time_is_up)
    if payment.is_closed:
        told = closed(payment.shop_name)
    pays = waits and not time_is_up and not payment.is_closed
    part_paid = pays and payment.received > 0
    standard = chain.token_standard if chain and payment.contract else None
    return CheckoutView(
        public_id=payment.public_id,
        title=f"{told.headline} · {payment.shop_name}",
        shop_name=payment.shop_name,
        sandbox=payment.mode == "sandbox",
        status=str(payment.status),
        tone=told.tone,
        chip=told.chip,
        headline=told.headline,
        message=told.message,
        notes=_notes(payment, amounts),
        token=payment.token,
        network=network,
        standard=standard,
        expected=amounts.expected,
        received=amounts.received,
        fiat=_fiat(payment),
        rate=_rate(payment),
        part_paid_percent=payment.received * 100 // payment.expected if part_paid else None,
        pay=_pay_box(payment, network, standard, chain, family) if pays else None,
        countdown=_countdown(payment, now) if pays else None,
        # Nobody is waited for who is asked to send nothing.
        steps=()
        if payment.is_closed
        else steps(
            payment,
            amounts,
            network,
            time_is_up=time_is_up,
            finality_required=chain is not None and chain.finality_required,
        ),
        transfers=tuple(_transfer(payment, deposit, chain) for deposit in payment.deposits),
        transfers_left_out=payment.deposits_left_out,
        details=_details(payment, network),
        forward=returns.forward(payment),
        back=returns.back(payment),
        has_receipt=payment.status in RECEIPT_STATES,
        receipt_time=_receipt_time(payment),
        refresh_s=_refresh_s(payment, now),
    )


def _amounts(payment: CheckoutPayment) -> Amounts:
    def amount(units: int) -> str:
        return f"{format_units(units, payment.decimals)} {payment.token}"

    return Amounts(
        expected=amount(payment.expected),
        received=amount(payment.received),
        missing=amount(max(0, payment.expected - payment.received)),
        excess=amount(max(0, payment.received - payment.expected)),
        share=f"{format_units(payment.received, payment.decimals)} of {amount(payment.expected)}",
        any_received=payment.received > 0,
        is_whole=payment.received >= payment.expected,
        late=_late(payment),
    )


def _late(payment: CheckoutPayment) -> Late:
    """Say how much of what counts was mined behind the payment's deadline, as ``domain.payments`` has it."""
    deadline = payment.expires_at + payment.grace
    counted = [deposit.mined_at > deadline for deposit in payment.deposits if deposit.matches]
    if not any(counted):
        return "nothing"
    return "all" if all(counted) and not payment.deposits_left_out else "part"


def _notes(payment: CheckoutPayment, amounts: Amounts) -> tuple[str, ...]:
    notes = []
    if any(not deposit.matches for deposit in payment.deposits):
        notes.append(
            f"Something other than {payment.token} on the right network arrived at this address. It is held for you"
            f" and does not count: please contact {payment.shop_name}."
        )
    surplus = payment.received > payment.expected and payment.status is not Status.OVERPAID
    if surplus and payment.status is not Status.REFUNDED:
        notes.append(f"{amounts.excess} more than needed arrived. It is held for you: contact {payment.shop_name}.")
    return tuple(notes)


def _fiat(payment: CheckoutPayment) -> str | None:
    if payment.fiat_currency is None:
        return None
    return f"{payment.amount:.{minor_units(payment.fiat_currency)}f} {payment.fiat_currency.upper()}"


def _rate(payment: CheckoutPayment) -> str | None:
    if payment.fiat_currency is None or payment.exchange_rate is None:
        return None
    return f"1 {payment.token} = {format_rate(payment.exchange_rate)} {payment.fiat_currency.upper()}"


def _pay_box(
    payment: CheckoutPayment,
    network: str,
    standard: str | None,
    chain: ChainInfo | None,
    family: AddressFamily | None,
) -> PayBox:
    missing = Units(payment.expected - payment.received)
    uri = None
    if chain is not None and family is not None:
        token = Token(symbol=payment.token, contract=payment.contract, decimals=payment.decimals, label=payment.token)
        uri = payment_uri_of(family, chain, payment.address, token, missing)
    head, middle, tail = address_parts(payment.address)
    only_address = uri is None or uri == payment.address
    return PayBox(
        amount=format_units(missing, payment.decimals),
        amount_label="Amount still to send" if payment.received else "Amount to send",
        address_head=head,
        address_middle=middle,
        address_tail=tail,
        qr_text=uri or payment.address,
        qr_caption="Scan the address, then enter the amount" if only_address else "Scan with your wallet",
        # Real money must not go to a test address by one careless tap.
        wallet_uri=None if only_address or payment.mode == "sandbox" else uri,
        warning=f"Send only {payment.token} on {named(network, standard)}. Anything else may be lost.",
    )


def _countdown(payment: CheckoutPayment, now: datetime) -> Countdown:
    left = payment.expires_at - now
    return Countdown(
        remaining_ms=max(0, left // timedelta(milliseconds=1)),
        text=clock_text(left),
        expires_iso=payment.expires_at.isoformat(),
        expires_text=moment_text(payment.expires_at, from_day=now),
    )


def _transfer(payment: CheckoutPayment, deposit: CheckoutDeposit, chain: ChainInfo | None) -> TransferLine:
    if deposit.confirmed:
        detail = "confirmed"
    else:
        finality_required = chain is not None and chain.finality_required
        detail = f"{confirmations(deposit, finality_required=finality_required)} of {deposit.required_confirmations}"
        detail += " confirmations"
    return TransferLine(
        amount=f"{format_units(deposit.units, deposit.decimals)} {deposit.token}",
        tx_id=deposit.tx_id,
        tx_short=tx_short(deposit.tx_id),
        # A transfer on another chain would need that chain's explorer.
        url=explorer_url(payment.mode, chain, deposit.tx_id) if deposit.chain == payment.chain else None,
        detail=detail if deposit.matches else f"{detail} · not what was asked for",
        matches=deposit.matches,
    )


def _details(payment: CheckoutPayment, network: str) -> tuple[tuple[str, str], ...]:
    rows = [
        ("Order", payment.order_id),
        ("Reference", payment.payment_id),
        ("Network", network),
        ("Token", payment.token),
        ("Contract", payment.contract),
        ("Address", None if payment.is_closed else payment.address),
        ("Exchange rate", _rate(payment)),
        ("Created", moment_text(payment.created_at)),
    ]
    return tuple((label, value) for label, value in rows if value)


def _receipt_time(payment: CheckoutPayment) -> str:
    confirmed = [deposit.confirmed_at for deposit in payment.deposits if deposit.matches and deposit.confirmed_at]
    return moment_text(max(confirmed, default=payment.updated_at))


def _refresh_s(payment: CheckoutPayment, now: datetime) -> int | None:
    if payment.status in OPEN:
        return REFRESH_OPEN_S
    unconfirmed = any(deposit.matches and not deposit.confirmed for deposit in payment.deposits)
    in_grace = now < payment.expires_at + payment.grace
    if payment.status in (Status.EXPIRED, Status.UNDERPAID) and (in_grace or unconfirmed):
        return REFRESH_LATE_S
    if payment.status is Status.FAILED and now < payment.updated_at + FAILED_WATCHED:
        return REFRESH_LATE_S
    return None
