"""Turns an account into what its page shows. Pure: an account, the registry and the time in, a view out."""

from __future__ import annotations

from datetime import datetime, timedelta

from cambist.domain.money import format_units
from cambist.plugin import ChainInfo, Token
from cambist.registry import Registry
from cambist.services.receiving.account_page import AccountPage, PageChain, PageDeposit

from .account_view import AccountView, Coin, DepositBox, DepositLine, NetworkTab, State
from .links import address_parts, explorer_url, named, tx_short, uri_of
from .steps import confirmations
from .wording import moment_text

REFRESH_S = 10
AWAY_AFTER = timedelta(minutes=2)
"""A chain is looked at every few seconds, and while much is read after each part of it."""


def account_view(page: AccountPage, chosen: str | None, now: datetime, registry: Registry) -> AccountView:
    """Return what to show of the account at this moment, with the address on the chosen chain, or on its first one."""
    chain = next((one for one in page.chains if one.chain == chosen), next(iter(page.chains), None))
    box = None if chain is None or not page.is_active else _box(page, chain, now, registry)
    closed = not page.is_active
    return AccountView(
        public_id=page.public_id,
        title=f"{'No deposits at present' if closed else 'Deposit'} · {page.shop_name}",
        shop_name=page.shop_name,
        sandbox=page.mode == "sandbox",
        status="inactive" if closed else "active",
        tone="care" if closed or box is None or box.late or box.closed else "good",
        chip=_chip(box, closed=closed),
        headline="No deposits at present" if closed else "Deposit",
        message=(
            f"{page.shop_name} expects no deposits here at present. Please do not send anything."
            if closed
            else "These addresses stay the same: you can use them again and again."
        ),
        tabs=()
        if closed
        else tuple(
            NetworkTab(chain=one.chain, name=_network(registry, one.chain), chosen=one is chain) for one in page.chains
        ),
        box=box,
        deposits=tuple(_line(page, deposit, now, registry) for deposit in page.deposits),
        has_earlier=page.has_earlier,
        refresh_s=REFRESH_S,
    )


def coins_of(chain: PageChain, info: ChainInfo) -> tuple[Coin, ...]:
    """Return what is taken on a chain, with the least amounts that count."""
    return tuple(Coin(symbol=token.symbol, least=_least(chain, token)) for token in info.tokens)


def is_late(page: AccountPage, chain: PageChain, now: datetime) -> bool:
    """Say whether the gateway has not looked at the chain for a while. A simulated one is looked at when it moves."""
    if page.mode == "sandbox":
        return False
    return chain.read_at is None or now - chain.read_at > AWAY_AFTER


def is_taken(page: AccountPage, info: ChainInfo | None) -> bool:
    """Say whether the operator runs the chain for accounts of this mode."""
    return info is not None and (page.mode == "sandbox" or info.availability == "live")


def _chip(box: DepositBox | None, *, closed: bool) -> str:
    if closed or box is None or box.closed:
        return "Closed"
    return "Delayed" if box.late else "Open"


def _network(registry: Registry, chain: str) -> str:
    info = registry.chains.get(chain)
    return info.name if info else chain


def _box(page: AccountPage, chain: PageChain, now: datetime, registry: Registry) -> DepositBox:
    info = registry.chains.get(chain.chain)
    network = _network(registry, chain.chain)
    head, middle, tail = address_parts(chain.address)
    coins: tuple[Coin, ...] = ()
    standard = late = closed = None
    uri = chain.address
    if info is None or not is_taken(page, info):
        closed = f"{network} is not connected at present. Please do not send anything on it."
    else:
        standard, coins = info.token_standard, coins_of(chain, info)
        uri = uri_of(registry, info, chain.address)
        if is_late(page, chain, now):
            late = f"{network} cannot be followed at present. What you send is safe, and is shown here later."
    return DepositBox(
        network=network,
        standard=standard,
        coins=coins,
        address_head=head,
        address_middle=middle,
        address_tail=tail,
        qr_text=uri,
        alike=_alike(page, chain, registry),
        warning=f"Send only {_listed([one.symbol for one in coins], 'or')} on {named(network, standard)}. Anything else"
        " may be lost.",
        late=late,
        closed=closed,
    )


def _alike(page: AccountPage, chain: PageChain, registry: Registry) -> str | None:
    alike = [_network(registry, one.chain) for one in page.chains if one.address == chain.address]
    return f"The same address on {_listed(alike, 'and')}." if len(alike) > 1 else None


def _listed(names: list[str], word: str) -> str:
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _least(chain: PageChain, token: Token) -> str | None:
    units = max(token.least_units, chain.least.get(token.symbol, 0))
    return format_units(units, token.decimals) if units > 1 else None


def _line(page: AccountPage, deposit: PageDeposit, now: datetime, registry: Registry) -> DepositLine:
    info = registry.chains.get(deposit.chain)
    state: State
    if deposit.status == "orphaned":
        state, detail = "gone", "taken back by the network"
    elif not deposit.matches:
        state, detail = "held", f"held: please contact {page.shop_name}"
    elif deposit.confirmed:
        state, detail = "confirmed", "confirmed"
    else:
        reached = confirmations(deposit, finality_required=info is not None and info.finality_required)
        state, detail = "confirming", f"{reached} of {deposit.required_confirmations} confirmations"
    return DepositLine(
        amount=f"{format_units(deposit.units, deposit.decimals)} {deposit.token}",
        network=_network(registry, deposit.chain),
        tx_id=deposit.tx_id,
        tx_short=tx_short(deposit.tx_id),
        url=explorer_url(page.mode, info, deposit.tx_id),
        time_iso=deposit.mined_at.isoformat(),
        time=moment_text(deposit.mined_at, from_day=now),
        state=state,
        detail=detail,
    )
