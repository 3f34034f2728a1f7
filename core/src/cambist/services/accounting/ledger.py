"""Double entry: the only module that writes the ledger.

Accounts and which way they lean (triggers keep balances equal to movements)::

    merchant   available          credit   guarded   what may be spent
               pending            credit   guarded   debited by a payout that is under way
               held               credit   guarded   confirmed, but not (yet) part of an ended order
               receivable         credit             below zero: spent before a reorg took it back
               cpt                credit             usage credits; below zero down to the operator's limit
               custody_deposits   debit              what its one-time addresses hold on the chain of its money
               custody_wallet     debit              what its main wallet holds of its money
               between_chains     debit              what has left a chain by a bridge, and arrived on none yet
               float_deposits     debit              the platform's money for fees on its one-time addresses
               float_wallet       debit              the platform's money for fees on its main wallet
    platform   custody_gas        debit              what its gas station holds
    platform   custody_staked     debit              what its gas station has staked, and cannot send
               gas_spent          debit              fees that were paid
               float              credit             what the operator has put in
               suspense           credit             what is on the chain and nobody can explain
               cpt_issued         credit             below zero: usage credits that merchants were given

Custody and float say what the chain says, and are never refused: what must not happen shows in ``reconcile``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum

from msgspec import Struct
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.named import Statement
from cambist.db.structs import transposed
from cambist.plugin import Units
from cambist.services.errors import ForbiddenError


class Purpose(StrEnum):
    """What an account is for."""

    AVAILABLE = "available"
    PENDING = "pending"
    HELD = "held"
    RECEIVABLE = "receivable"
    CPT = "cpt"
    CUSTODY_DEPOSITS = "custody_deposits"
    CUSTODY_WALLET = "custody_wallet"
    BETWEEN_CHAINS = "between_chains"
    FLOAT_DEPOSITS = "float_deposits"
    FLOAT_WALLET = "float_wallet"
    CUSTODY_GAS = "custody_gas"
    CUSTODY_STAKED = "custody_staked"
    GAS_SPENT = "gas_spent"
    FLOAT = "float"
    SUSPENSE = "suspense"
    CPT_ISSUED = "cpt_issued"


PLATFORM = 0
"""Stands for the operator where a merchant's row is asked for."""
CPT_ASSET = "cpt"

SPENDING = (Purpose.HELD, Purpose.AVAILABLE, Purpose.RECEIVABLE, Purpose.PENDING)
"""The accounts that are locked, all at once, before anything is decided about a merchant's money."""

_GUARDED = {Purpose.AVAILABLE, Purpose.PENDING, Purpose.HELD}
_DEBIT_NORMAL = {
    Purpose.CUSTODY_DEPOSITS,
    Purpose.CUSTODY_WALLET,
    Purpose.BETWEEN_CHAINS,
    Purpose.FLOAT_DEPOSITS,
    Purpose.FLOAT_WALLET,
    Purpose.CUSTODY_GAS,
    Purpose.CUSTODY_STAKED,
    Purpose.GAS_SPENT,
}


class Account(Struct, frozen=True, order=True):
    """Names a ledger account, a merchant's or the platform's; it comes into being with its first movement."""

    merchant_pk: int
    asset: str
    purpose: Purpose


class Movement(Struct, frozen=True):
    """Units that leave ``debit`` for ``credit``, two accounts of one asset."""

    debit: Account
    credit: Account
    units: Units

    def back(self) -> Movement:
        """Return the same units on their way back."""
        return Movement(self.credit, self.debit, self.units)


class Posting(Struct, frozen=True, kw_only=True):
    """Movements that happen together, once for all time under ``(kind, reference)``."""

    mode: str
    kind: str
    reference: str
    movements: Sequence[Movement]


class Balance(Struct, frozen=True, kw_only=True):
    """What a merchant has of one asset. ``receivable`` is zero or below."""

    asset: str
    available: int = 0
    pending: int = 0
    held: int = 0
    receivable: int = 0

    @property
    def is_empty(self) -> bool:
        return not any((self.available, self.pending, self.held, self.receivable))


class InsufficientFundsError(ForbiddenError):
    """A guarded account would have passed zero; nothing was posted."""

    def __init__(self) -> None:
        super().__init__("INSUFFICIENT_BALANCE", "The wallet balance is too low.")


@contextmanager
def guarded() -> Iterator[None]:
    """Raise InsufficientFundsError where a statement that posts would have a guarded account pass zero."""
    try:
        yield
    except IntegrityError as error:
        if "ck_ledger_accounts_guarded_balance" in str(error.orig):
            raise InsufficientFundsError from error
        raise


_NATIVE = "native"


def asset_key(chain: str, contract: str | None) -> str:
    """Return the ledger's name of a token: chain and contract, since a symbol identifies nothing."""
    return f"{chain}/{contract or _NATIVE}"


def chain_and_contract(asset: str) -> tuple[str, str | None]:
    """Return what ``asset_key`` was made of."""
    chain, _, contract = asset.partition("/")
    return chain, None if contract == _NATIVE else contract


async def is_posted(conn: AsyncConnection, kind: str, reference: str) -> bool:
    found = await conn.exec_driver_sql(
        "SELECT id FROM ledger_transactions WHERE kind = $1 AND reference = $2", (kind, reference)
    )
    return found.first() is not None


_KNOWN = """
    SELECT {0} FROM ledger_accounts a
        JOIN wanted w ON a.merchant_pk = w.merchant_pk AND a.asset = w.asset AND a.purpose = w.purpose
    WHERE a.mode = $1
    UNION ALL -- an index finds what equals, or what is null, but not both at once
    SELECT {0} FROM ledger_accounts a
        JOIN wanted w ON w.merchant_pk IS NULL AND a.asset = w.asset AND a.purpose = w.purpose
    WHERE a.mode = $1 AND a.merchant_pk IS NULL
"""
_ENSURE = f"""
WITH wanted AS (
    SELECT nullif(owner, 0) AS merchant_pk, asset, purpose, guarded, debit_normal
    FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bool[], $6::bool[])
        AS w (owner, asset, purpose, guarded, debit_normal)
), known AS (
    {_KNOWN.format("a.id, a.merchant_pk, a.asset, a.purpose")}
), made AS (
    INSERT INTO ledger_accounts (mode, merchant_pk, asset, purpose, guarded, debit_normal)
    SELECT $1, merchant_pk, asset, purpose, guarded, debit_normal FROM wanted
    WHERE NOT EXISTS (
        SELECT FROM known WHERE known.merchant_pk IS NOT DISTINCT FROM wanted.merchant_pk
            AND known.asset = wanted.asset AND known.purpose = wanted.purpose
    ) ORDER BY merchant_pk, asset, purpose ON CONFLICT DO NOTHING
    RETURNING id, merchant_pk, asset, purpose
)
SELECT id, merchant_pk, asset, purpose FROM made
UNION ALL
SELECT id, merchant_pk, asset, purpose FROM known
"""  # noqa: S608  constants

# Accounts and postings are named by their numbers in the arrays. Where an account is missing, nothing is posted.
_POST = f"""
WITH wanted AS (
    SELECT number, nullif(owner, 0) AS merchant_pk, asset, purpose
    FROM unnest($2::bigint[], $3::text[], $4::text[]) WITH ORDINALITY AS w (owner, asset, purpose, number)
), known AS MATERIALIZED (
    {_KNOWN.format("w.number, a.id")}
), complete AS (
    SELECT count(*) = cardinality($2::bigint[]) AS is_complete FROM known
), posted AS (
    INSERT INTO ledger_transactions (mode, kind, reference)
    SELECT $1, kind, reference FROM unnest($5::text[], $6::text[]) AS t (kind, reference), complete WHERE is_complete
    ON CONFLICT (kind, reference) DO NOTHING
    RETURNING id, kind, reference
), moved AS (
    INSERT INTO ledger_movements (transaction_pk, mode, asset, debit_account_pk, credit_account_pk, units)
    SELECT posted.id, $1, m.asset, debit.id, credit.id, m.units
    FROM unnest($7::text[], $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::numeric[])
        AS m (kind, reference, asset, debit, credit, units)
    JOIN posted USING (kind, reference) JOIN known debit ON debit.number = m.debit
    JOIN known credit ON credit.number = m.credit
)
SELECT is_complete, kind, reference FROM complete LEFT JOIN posted ON true
"""  # noqa: S608  constants


# What sets a merchant's money aside, within a statement that does more: finds the accounts, and posts to pending.
SPENDABLE = """
    SELECT max(id) FILTER (WHERE purpose = 'available') AS available_pk,
        max(id) FILTER (WHERE purpose = 'pending') AS pending_pk,
        coalesce(bool_or(purpose = 'receivable' AND balance < 0), false) AS owes
    FROM ledger_accounts WHERE mode = :mode AND merchant_pk = :merchant_pk AND asset = :asset
        AND purpose IN ('available', 'pending', 'receivable')
"""
SET_ASIDE = """posted AS (
    INSERT INTO ledger_transactions (mode, kind, reference) SELECT :mode, {kind}, {reference} FROM {source} RETURNING id
), moved AS (
    INSERT INTO ledger_movements (transaction_pk, mode, asset, debit_account_pk, credit_account_pk, units)
    SELECT posted.id, :mode, :asset, available_pk, pending_pk, {units} FROM posted, account
)"""


async def make_accounts(conn: AsyncConnection, mode: str, accounts: Sequence[Account]) -> dict[Account, int]:
    """Return the ids of accounts, which come into being where there is none yet."""
    ids: dict[Account, int] = {}
    # A twin that creates the same account at the same moment makes ours skip it: then it is there to be read.
    for _ in range(2):
        missing = [
            (one.merchant_pk, one.asset, str(one.purpose), one.purpose in _GUARDED, one.purpose in _DEBIT_NORMAL)
            for one in accounts
            if one not in ids
        ]
        if not missing:
            break
        rows = await conn.exec_driver_sql(_ENSURE, (mode, *transposed(missing)))
        ids.update({Account(row.merchant_pk or PLATFORM, row.asset, Purpose(row.purpose)): row.id for row in rows})
    return ids


async def post(conn: AsyncConnection, mode: str, postings: Sequence[Posting]) -> set[tuple[str, str]]:
    """Post, in one statement, what was not posted before; return the (kind, reference) that are new.

    All postings are of one mode. Raises InsufficientFundsError when a guarded account would pass zero: the
    caller's transaction is then lost as a whole.
    """
    if not postings:
        return set()
    if any(posting.mode != mode for posting in postings):
        raise AssertionError("live and sandbox never meet in one posting")
    moves = [(posting, movement) for posting in postings for movement in posting.movements]
    numbers: dict[Account, int] = {}
    for _, move in moves:
        numbers.setdefault(move.debit, len(numbers) + 1)
        numbers.setdefault(move.credit, len(numbers) + 1)
    parameters = (
        mode,
        [account.merchant_pk for account in numbers],
        [account.asset for account in numbers],
        [str(account.purpose) for account in numbers],
        [posting.kind for posting in postings],
        [posting.reference for posting in postings],
        [posting.kind for posting, _ in moves],
        [posting.reference for posting, _ in moves],
        [move.debit.asset for _, move in moves],
        [numbers[move.debit] for _, move in moves],
        [numbers[move.credit] for _, move in moves],
        [move.units for _, move in moves],
    )
    posted = await _post(conn, parameters)
    if posted is None:
        await make_accounts(conn, mode, sorted(numbers))
        posted = await _post(conn, parameters)
    if posted is None:
        raise AssertionError("the accounts were just made")
    return posted


async def _post(conn: AsyncConnection, parameters: tuple[object, ...]) -> set[tuple[str, str]] | None:
    """Return what is new, or None where an account is missing."""
    with guarded():
        rows = (await conn.exec_driver_sql(_POST, parameters)).all()
    if not rows[0].is_complete:
        return None
    return {(row.kind, row.reference) for row in rows if row.kind is not None}


# Where an account is missing, none is locked: whoever makes it may wait for another who makes it, too.
_LOCK_KNOWN = f"""
WITH wanted AS (
    SELECT nullif(owner, 0) AS merchant_pk, asset, purpose
    FROM unnest($2::bigint[], $3::text[], $4::text[]) AS w (owner, asset, purpose)
), known AS MATERIALIZED (
    {_KNOWN.format("a.id")}
)
SELECT id, merchant_pk, asset, purpose, balance FROM ledger_accounts
WHERE id = ANY(ARRAY(SELECT id FROM known)) AND (SELECT count(*) FROM known) = cardinality($2::bigint[])
ORDER BY id FOR NO KEY UPDATE
"""  # noqa: S608  constants


async def lock_balances(conn: AsyncConnection, mode: str, accounts: Iterable[Account]) -> Mapping[Account, int]:
    """Return the balances of accounts, zero where there is none yet, locked until the transaction ends.

    Locks in id order, as the posting itself does, so that two callers never wait for each other in a circle.
    """
    wanted = sorted(set(accounts))
    if not wanted:
        return {}
    named = (mode, *transposed([(one.merchant_pk, one.asset, str(one.purpose)) for one in wanted]))
    locked = (await conn.exec_driver_sql(_LOCK_KNOWN, named)).all()
    if not locked:
        await make_accounts(conn, mode, wanted)
        locked = (await conn.exec_driver_sql(_LOCK_KNOWN, named)).all()
    return {Account(row.merchant_pk or PLATFORM, row.asset, Purpose(row.purpose)): int(row.balance) for row in locked}


_MERCHANTS = f"""
SELECT asset, purpose, balance FROM ledger_accounts
WHERE mode = :mode AND merchant_pk = :merchant_pk AND NOT debit_normal AND asset <> '{CPT_ASSET}'"""  # noqa: S608  a constant
_ALL_BALANCES = Statement(f"{_MERCHANTS} ORDER BY asset")
_BALANCES = Statement(f"{_MERCHANTS} AND asset = :asset")


async def balances(conn: AsyncConnection, merchant_pk: int, mode: str, asset: str | None = None) -> Sequence[Balance]:
    """Return a merchant's balances, one per asset it ever had, or of one asset."""
    statement = _ALL_BALANCES if asset is None else _BALANCES
    found: dict[str, dict[str, int]] = {}
    for row in await statement.run(conn, {"merchant_pk": merchant_pk, "mode": mode, "asset": asset}):
        found.setdefault(row.asset, {})[row.purpose] = int(row.balance)
    return [Balance(asset=name, **purposes) for name, purposes in found.items()]
