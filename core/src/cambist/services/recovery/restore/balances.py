"""What had happened to the money before the database was lost, booked so that the ledger says what the chain says.

::

    on a payment's address    the newest deposits it can still hold are there, older ones were collected: an account's
                              reserve, where the chain has such a thing, is beside them
                              more or less native coin than that is the platform's: fees, and what was sent for them
                              more of a token than that is the merchant's, from wherever it came
    on a main wallet          less than deposits and collections brought was paid out
                              of the native coin so much is the platform's as the manifest says, or as there is
                              more of it; more of a token is the merchant's
    on the gas station        less was spent on fees, more was put in by the operator

Whatever is the merchant's becomes available: which order it belonged to, nobody knows any more. What came to an account
was available as soon as it was confirmed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Deposit
from cambist.db.structs import columns_of, one_of, to_struct
from cambist.domain.intents import IntentKind
from cambist.plugin import ChainInfo, Units
from cambist.services.accounting.ledger import PLATFORM, Account, Movement, Posting, Purpose, asset_key, post
from cambist.services.recovery.reconcile.books import MODE, SCOPE, Books, Holding
from cambist.services.recovery.unfinished import KIND

from .manifest import Manifest


class ConfirmedDeposit(Struct, frozen=True):
    """A confirmed deposit; those of one address are told in chain order. ``held`` is what nobody has decided about."""

    pk: int
    units: int
    held: int


class Remains(Struct, frozen=True, kw_only=True):
    """``collected`` deposits are gone from the address, ``left`` are there, and ``surplus`` nobody deposited.

    Of the native coin ``surplus`` may be below zero: a fee was paid out of what is left.
    """

    collected: Sequence[ConfirmedDeposit]
    left: Sequence[ConfirmedDeposit]
    surplus: int


class WalletFloat(Struct, frozen=True):
    """How much of a main wallet's native coin is the platform's; ``overdrawn`` was paid out for its merchant."""

    units: int
    overdrawn: int


class Facts(Struct, frozen=True, kw_only=True):
    """One chain as it stands: what addresses hold (without what is not confirmed yet), and what was deposited."""

    books: Books
    held: Mapping[Holding, int]
    deposits: Mapping[Holding, Sequence[ConfirmedDeposit]]
    wallet_floats: Mapping[int, WalletFloat]


class Share(Struct, kw_only=True):
    """What becomes of one token of one merchant, or of the platform."""

    deposited: int = 0
    held: int = 0
    left: int = 0
    surplus: int = 0
    in_wallet_deposited: int = 0
    in_wallet_held: int = 0
    wallet_float: WalletFloat | None = None
    gas_booked: int = 0
    gas_held: int = 0


_COLLECTION = f"""
WITH intent AS (
    INSERT INTO outbound_intents (
        reference, kind, mode, chain, scope, merchant_pk, source_address_pk, recipient_address_pk, to_address, token,
        contract, decimals, units, state, due_at, created_at, updated_at, finished_at
    )
    SELECT $1, '{IntentKind.COLLECTION}', 'live', $2, $3, a.merchant_pk, a.id, w.id, w.address, $5, $6, $7, $8, 'done',
        $9, $9, $9, $9
    FROM addresses a JOIN addresses w ON w.merchant_pk = a.merchant_pk AND w.mode = a.mode AND w.family = a.family
        AND w.purpose = 'wallet'
    WHERE a.id = $4
    ON CONFLICT (reference) DO NOTHING RETURNING id
)
UPDATE deposits SET collection_pk = intent.id FROM intent WHERE deposits.id = ANY($10::bigint[])
"""  # noqa: S608  a constant


def wallet_floats(manifest: Manifest, chain: str, merchants: Mapping[int, str]) -> Mapping[int, WalletFloat]:
    """Return how much of each main wallet's native coin is the platform's, as far as the manifest knows."""
    if manifest.made_at is None:
        return {}
    known = {
        one.merchant_id: WalletFloat(int(one.floats.get(chain, "0")), int(one.overdrawn.get(chain, "0")))
        for one in manifest.merchants
    }
    return {merchant_pk: known.get(merchant_id, WalletFloat(0, 0)) for merchant_pk, merchant_id in merchants.items()}


async def confirmed_deposits(conn: AsyncConnection, info: ChainInfo) -> Mapping[Holding, Sequence[ConfirmedDeposit]]:
    """Return every confirmed deposit of a chain, by where it came to."""
    found: dict[Holding, list[ConfirmedDeposit]] = {}
    confirmed = Deposit.chain == info.id, Deposit.scope == SCOPE, Deposit.status == "confirmed"
    held = Deposit.units - Deposit.available_units - Deposit.returned_units
    columns = (*columns_of(ConfirmedDeposit, Deposit, held=held), Deposit.address_pk, Deposit.contract)
    in_order = select(*columns).where(*confirmed).order_by(Deposit.height, Deposit.ordinal, Deposit.id)
    for row in await conn.execute(in_order):
        found.setdefault((row.address_pk, row.contract), []).append(to_struct(ConfirmedDeposit, row))
    return found


async def rebuild_balances(conn: AsyncConnection, info: ChainInfo, facts: Facts, now: datetime) -> bool:
    """Book a chain's past, once, and return True: repeated, however much later, it changes nothing."""
    done = Posting(mode=MODE, kind=KIND, reference=f"done:{info.id}", movements=[])
    if not await post(conn, MODE, [done]):
        return False
    shares: defaultdict[tuple[int, str | None], Share] = defaultdict(Share)
    collected: list[tuple[Holding, Remains]] = []
    released: list[int] = []
    for holding in sorted({*facts.held, *facts.deposits}, key=lambda one: (one[0], one[1] or "")):
        group, held = facts.books.addresses[holding[0]].group, facts.held.get(holding, 0)
        deposits = facts.deposits.get(holding, ())
        deposited = sum(one.units for one in deposits)
        merchant_pk, name = group
        share = shares[merchant_pk, holding[1]]
        # What counts for an account is available already.
        share.held += sum(one.held for one in deposits)
        if name == "deposits":
            remains = remains_of(deposits, held, pays_fees=holding[1] is None, least_units=info.native.least_units)
            share.deposited += deposited
            share.left += sum(one.units for one in remains.left)
            share.surplus += remains.surplus
            collected.append((holding, remains))
        elif name == "wallet":
            share.in_wallet_deposited += deposited
            share.in_wallet_held += held
            share.wallet_float = facts.wallet_floats.get(merchant_pk)
        else:
            share.gas_booked = facts.books.booked.get((group, holding[1]), 0)
            share.gas_held += held
        if merchant_pk != PLATFORM:
            released += [one.pk for one in deposits]
    postings = [_posting(info, owner, contract, share) for (owner, contract), share in shares.items()]
    await post(conn, MODE, postings)
    await _release(conn, released, now)
    for holding, remains in collected:
        if remains.collected:
            await _mark(conn, info, holding, remains, now)
    return True


def remains_of(deposits: Sequence[ConfirmedDeposit], held: int, *, pays_fees: bool, least_units: int = 1) -> Remains:
    """Tell the deposits that are still on their address from those that were collected.

    A collection takes all there are, so what is left are the newest ones: as many as what is held can be. Where
    fees are paid with it, what is held is a little more or less than that, and the nearest sum is the right one.
    Whatever was brought for fees was ``least_units`` at least, which stay where an account keeps a reserve: so much is
    there where anything was collected, and may be there where nothing was. Of two sums that are as near, more is left.
    """
    kept, total = least_units - 1, 0
    first, units, nearest = len(deposits), 0, abs(held - kept)
    for number in range(len(deposits) - 1, -1, -1):
        total += deposits[number].units
        distance = abs(held - kept - total)
        if number == 0:
            distance = min(distance, abs(held - total))
        fits = distance <= nearest if pays_fees else total <= held
        if fits:
            first, units, nearest = number, total, distance
        elif not pays_fees:
            break
    return Remains(collected=deposits[:first], left=deposits[first:], surplus=held - units)


def _posting(info: ChainInfo, merchant_pk: int, contract: str | None, share: Share) -> Posting:
    asset = asset_key(info.id, contract)
    moves = _platforms(asset, share) if merchant_pk == PLATFORM else _merchants(merchant_pk, asset, share, contract)
    return Posting(
        mode=MODE,
        kind=KIND,
        reference=f"{info.id}:{merchant_pk}:{contract or 'native'}",
        movements=[Movement(debit, credit, Units(units)) for debit, credit, units in moves if units],
    )


_Move = tuple[Account, Account, int]


def _merchants(merchant_pk: int, asset: str, share: Share, contract: str | None) -> Sequence[_Move]:
    def account(purpose: Purpose) -> Account:
        return Account(merchant_pk, asset, purpose)

    deposits, wallet = account(Purpose.CUSTODY_DEPOSITS), account(Purpose.CUSTODY_WALLET)
    available = account(Purpose.AVAILABLE)
    spent_on_gas = Account(PLATFORM, asset, Purpose.GAS_SPENT)
    brought = share.deposited - share.left
    in_wallet = share.in_wallet_deposited + brought
    excess = share.in_wallet_held - in_wallet
    moves = [
        (account(Purpose.HELD), available, share.held),
        (wallet, deposits, brought),
    ]
    if contract is not None:
        return [*moves, (deposits, available, share.surplus), _either_way(wallet, available, excess)]
    float_ = max(0, excess)
    if share.wallet_float is not None:
        # Less than there was is left where fees were paid since, or where it was paid out for the merchant: for so much
        # at most as the merchant has yet to have collected.
        owed = min(share.wallet_float.overdrawn, share.left)
        float_ = max(excess, min(share.wallet_float.units, share.in_wallet_held + owed))
    return [
        *moves,
        _either_way(account(Purpose.FLOAT_DEPOSITS), spent_on_gas, share.surplus),
        _either_way(account(Purpose.FLOAT_WALLET), spent_on_gas, float_),
        (available, wallet, float_ - excess),
    ]


def _either_way(debit: Account, credit: Account, units: int) -> _Move:
    return (debit, credit, units) if units >= 0 else (credit, debit, -units)


def _platforms(asset: str, share: Share) -> Sequence[_Move]:
    gas = Account(PLATFORM, asset, Purpose.CUSTODY_GAS)
    excess = share.gas_held - share.gas_booked
    other_side = Purpose.FLOAT if excess > 0 else Purpose.GAS_SPENT
    return [_either_way(gas, Account(PLATFORM, asset, other_side), excess)]


async def _release(conn: AsyncConnection, deposit_pks: Sequence[int], now: datetime) -> None:
    held_units = Deposit.units - Deposit.available_units - Deposit.returned_units
    await conn.execute(
        update(Deposit)
        .where(one_of(Deposit.id, deposit_pks), held_units > 0)
        .values(
            released_units=Deposit.released_units + held_units,
            available_units=Deposit.available_units + held_units,
            resolution="released",
            resolved_at=now,
        )
    )


async def _mark(conn: AsyncConnection, info: ChainInfo, holding: Holding, remains: Remains, now: datetime) -> None:
    """Note that deposits are in the main wallet, so that nobody tries to collect them again."""
    address_pk, contract = holding
    token = next((token for token in info.tokens if token.contract == contract), None)
    if token is None:
        raise AssertionError("deposits are of registered tokens")
    await conn.exec_driver_sql(
        _COLLECTION,
        (
            f"collection:restored:{info.id}:{address_pk}:{contract or 'native'}",
            info.id,
            SCOPE,
            address_pk,
            token.symbol,
            contract,
            token.decimals,
            sum(one.units for one in remains.collected),
            now,
            [one.pk for one in remains.collected],
        ),
    )
