"""Checks what may be exchanged, and on which terms, before anybody is asked for a quote.

Quotes come over the network, so a request is two transactions: what is checked before anybody is asked, and what takes
the money once an offer is there (``starting.py``). What could have changed in between is checked again by the second.
"""

from __future__ import annotations

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.exchanges import Kind, MadeFor, share_of
from cambist.services.accounting import usage
from cambist.services.accounting.ledger import asset_key
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.errors import PaymentRequiredError, UnavailableError, coin_disabled
from cambist.services.platform import PlatformSettings

from .context import ExchangeContext
from .facts import Facts, read_facts, with_wallets
from .offers import Terms
from .owner import Owner
from .requests import Wish, fee_bps


class Prepared(Struct, frozen=True, kw_only=True):
    """What was checked before anybody was asked. ``recipient_pk`` is None where the output goes to somebody else."""

    owner: Owner
    made_for: MadeFor
    wish: Wish
    terms: Terms
    wallet: OwnAddress
    recipient_pk: int | None

    @property
    def source_asset(self) -> str:
        """The ledger's name of what is given."""
        return asset_key(self.wish.source.chain.id, self.wish.source.token.contract)


async def prepare(  # noqa: PLR0913  what is wished for, by whom, for whom
    conn: AsyncConnection,
    context: ExchangeContext,
    settings: PlatformSettings,
    owner: Owner,
    wish: Wish,
    *,
    made_for: MadeFor = MadeFor.MANUAL,
    recipient: str | None = None,
) -> Prepared:
    """Check what needs nobody to be asked. ``recipient`` gets the output, normalized; None: the own wallet.

    Raises UnavailableError, InvalidError where new money in what would come is not for this merchant, and
    PaymentRequiredError where usage credits are used up.
    """
    facts = await read_facts(conn, owner, wish)
    check(context, settings, facts, owner, wish, made_for=made_for)
    if facts.lacks_wallets:
        facts = await with_wallets(conn, context, facts, owner, wish)
    return prepared_of(settings, facts, owner, wish, made_for=made_for, recipient=recipient)


_DEST_FIELDS = {MadeFor.MANUAL: "destToken", MadeFor.PAYOUT: "token", MadeFor.AUTO: "autoConvertDestToken"}
"""What names the token that would come, in what was asked."""


def check(  # noqa: PLR0913  what is wished for, by whom, for whom
    context: ExchangeContext,
    settings: PlatformSettings,
    facts: Facts,
    owner: Owner,
    wish: Wish,
    *,
    made_for: MadeFor = MadeFor.MANUAL,
    is_quote: bool = False,
) -> None:
    """Refuse what cannot be exchanged now, whoever offers what. Raises as ``prepare`` does.

    What a bridge would bring is told without usage credits, too, and a quote also of coins that the merchant has
    disabled. What is given may leave, whatever operators decided about its token.
    """
    check_open(context, settings, owner, wish, made_for)
    for asset, is_disabled in ((wish.source, facts.is_source_disabled), (wish.dest, facts.is_dest_disabled)):
        if is_disabled and not is_quote:
            raise coin_disabled(asset.token.symbol, asset.chain.name)
    if not is_quote or wish.kind is Kind.SWAP:
        usage.refuse_without_credit(facts.credits, settings, PaymentRequiredError)


def check_open(
    context: ExchangeContext, settings: PlatformSettings, owner: Owner, wish: Wish, made_for: MadeFor = MadeFor.MANUAL
) -> None:
    """Refuse what operators let nobody exchange now. Raises InvalidError and UnavailableError."""
    context.token_rules.check(owner.merchant_pk, wish.dest.chain.id, wish.dest.token, _DEST_FIELDS[made_for])
    rule = settings.exchanges
    if not (rule.swap_enabled if wish.kind is Kind.SWAP else rule.bridge_enabled):
        code = "SWAP_DISABLED" if wish.kind is Kind.SWAP else "BRIDGE_DISABLED"
        raise UnavailableError(code, f"{wish.kind.capitalize()}s are switched off right now.")
    for asset in (wish.source, wish.dest):
        if owner.mode == "live" and asset.chain.availability != "live":
            raise UnavailableError("CHAIN_UNAVAILABLE", f"{asset.chain.name} is not available right now.")


def prepared_of(  # noqa: PLR0913  what is wished for, by whom, for whom
    settings: PlatformSettings,
    facts: Facts,
    owner: Owner,
    wish: Wish,
    *,
    made_for: MadeFor = MadeFor.MANUAL,
    recipient: str | None = None,
) -> Prepared:
    """Return what was checked, for a merchant whose wallets are there. Raises UnavailableError."""
    wallet, into = facts.wallet, facts.into
    if wallet is None or into is None:
        raise AssertionError("the wallets were made before")
    to_address = recipient or into.address
    return Prepared(
        owner=owner,
        made_for=made_for,
        wish=wish,
        terms=_terms(settings, facts, owner, wish, made_for, wallet.address, to_address),
        wallet=wallet,
        recipient_pk=into.pk if to_address == into.address else None,
    )


def _terms(  # noqa: PLR0913, PLR0917  both addresses and what decides about the fee
    settings: PlatformSettings,
    facts: Facts,
    owner: Owner,
    wish: Wish,
    made_for: MadeFor,
    sender: str,
    recipient: str,
) -> Terms:
    """Return the terms with the platform's fee: of a swap's output, or of what is given into a bridge."""
    fee = fee_bps(settings, wish.kind, is_auto=made_for is MadeFor.AUTO)
    terms = Terms(mode=owner.mode, sender=sender, recipient=recipient)
    if not fee:
        return terms
    if wish.kind is Kind.BRIDGE:
        return Terms(mode=owner.mode, sender=sender, recipient=recipient, fee_units=share_of(wish.units, fee))
    if facts.station is None and owner.mode == "live":
        raise UnavailableError("EXCHANGE_UNAVAILABLE", "The platform has no address for its fee yet.")
    return Terms(
        mode=owner.mode,
        sender=sender,
        recipient=recipient,
        fee_bps=fee,
        fee_recipient=facts.station,
    )
