"""A token that is added: its contract is read by a worker, and from one block on it is looked for.

The moment is exact. ``activate`` raises the revision that the chain's cursor asks for, in the transaction that puts the
token in force: a scan that did not know the token cannot be stored from then on, in whichever process it was made. So
whoever pays in it from the next block on is seen, and the first block is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import structlog
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Interval, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import ChainToken, CoinSettings, Cursor, Deposit, LedgerAccount, Merchant, Payment
from cambist.db.structs import columns_of, to_struct
from cambist.domain.payments import OPEN, Status
from cambist.domain.text import hidden_in
from cambist.plugin import Chain, ChainError, Token, UnreadableTokenError, printable
from cambist.registry import Registry, SetupError
from cambist.services.accounting.ledger import asset_key
from cambist.services.audit.entries import GATEWAY, Action, record

from .checking import CLAIM, REASON_CHARS_MAX
from .setups import IN_USE, load, lock_tokens, with_tokens

SYMBOL: Final = re.compile(r"[A-Z0-9.+-]{1,16}", re.ASCII)
DECIMALS_MAX: Final = 36
SCOPE: Final = 0

log = structlog.get_logger(__name__)


class ClaimedToken(Struct, frozen=True, kw_only=True):
    """A token whose contract this worker is to read."""

    pk: int
    token_id: str
    chain: str
    contract: str
    symbol: str | None
    label: str | None
    replaces: bool


class RefusedTokenError(Exception):
    """The token is not taken. The text is a sentence for the operator."""


async def claim(conn: AsyncConnection, chains: Sequence[str], now: datetime) -> ClaimedToken | None:
    """Return a token of these chains whose contract nobody is reading, and claim it; None where there is none."""
    unclaimed = ChainToken.claimed_until.is_(None) | (ChainToken.claimed_until < now)
    waiting = (
        select(ChainToken.id)
        .where(ChainToken.state == "checking", ChainToken.chain.in_(chains), unclaimed)
        .order_by(ChainToken.id)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    mine = update(ChainToken).where(ChainToken.id == waiting).values(claimed_until=now + CLAIM)
    row = (await conn.execute(mine.returning(*columns_of(ClaimedToken, ChainToken)))).one_or_none()
    return None if row is None else to_struct(ClaimedToken, row)


async def read(chain: Chain, claimed: ClaimedToken) -> Token:
    """Return the token as its contract tells it and as it is to go by here. Raises RefusedTokenError."""
    try:
        told = await chain.token_at(claimed.contract)
    except UnreadableTokenError as error:
        raise RefusedTokenError(_shown(f"{error}.")) from error
    except ChainError as error:
        raise RefusedTokenError(_shown(f"The contract could not be read: {error}.")) from error
    except Exception as error:
        log.exception("token_not_read", chain=claimed.chain, contract=claimed.contract)
        raise RefusedTokenError(f"The plugin of {claimed.chain} failed with {type(error).__name__}.") from error
    if told is None:
        raise RefusedTokenError(f"The plugin of {claimed.chain} cannot ask contracts what they are.")
    if not 0 <= told.decimals <= DECIMALS_MAX:
        raise RefusedTokenError(f"The contract has {told.decimals} decimals, and {DECIMALS_MAX} are the most.")
    if hidden_in(told.symbol) is not None:
        raise RefusedTokenError(_shown(f"The contract's symbol hides something: {told.symbol!r}."))
    symbol = claimed.symbol or told.symbol.upper()
    if SYMBOL.fullmatch(symbol) is None:
        raise RefusedTokenError(_shown(f"The contract calls itself {told.symbol!r}: name a symbol for it."))
    return Token(symbol=symbol, contract=claimed.contract, decimals=told.decimals, label=claimed.label or told.symbol)


async def activate(
    conn: AsyncConnection, registry: Registry, claimed: ClaimedToken, token: Token, now: datetime
) -> None:
    """Put a token in force, from the block after the last one that was read. Raises RefusedTokenError.

    Nothing happens where it was taken back meanwhile.
    """
    await lock_tokens(conn, claimed.chain)
    cursor = Cursor.chain == claimed.chain, Cursor.scope == SCOPE
    # No scan is stored from here on: else it could bring money of a token that was just found to be replaceable.
    await conn.execute(select(Cursor.height).where(*cursor).with_for_update())
    replaced = await _free_symbol(conn, registry, claimed, token, now)
    await _check_setup(conn, registry, claimed.chain, token)
    newest = select(func.coalesce(func.max(ChainToken.revision), 0)).where(ChainToken.chain == claimed.chain)
    revision = ((await conn.execute(newest)).scalar_one() or 0) + 1
    asked = update(Cursor).where(*cursor).values(tokens_revision=revision).returning(Cursor.height)
    height = (await conn.execute(asked)).scalar_one_or_none()
    mine = update(ChainToken).where(ChainToken.id == claimed.pk, ChainToken.state == "checking")
    taken = await conn.execute(
        mine.values(
            state="enabled",
            symbol=token.symbol,
            decimals=token.decimals,
            label=token.label,
            revision=revision,
            since_height=None if height is None else height + 1,
            claimed_until=None,
            changed_at=now,
        )
    )
    if taken.rowcount:
        told = {"chain": claimed.chain, "contract": token.contract, "symbol": token.symbol, "decimals": token.decimals}
        told |= {"state": "enabled"} if replaced is None else {"state": "enabled", "replaced": replaced}
        await record(conn, GATEWAY, Action.TOKEN_CHECKED, now, subject=claimed.token_id, details=told)


async def refuse(conn: AsyncConnection, claimed: ClaimedToken, reason: str, now: datetime) -> None:
    """Store why a token is not taken."""
    mine = update(ChainToken).where(ChainToken.id == claimed.pk, ChainToken.state == "checking")
    refused = await conn.execute(mine.values(state="refused", reason=reason, claimed_until=None, changed_at=now))
    if refused.rowcount:
        told = {"chain": claimed.chain, "contract": claimed.contract, "state": "refused", "reason": reason}
        await record(conn, GATEWAY, Action.TOKEN_CHECKED, now, subject=claimed.token_id, details=told)


async def _free_symbol(
    conn: AsyncConnection, registry: Registry, claimed: ClaimedToken, token: Token, now: datetime
) -> str | None:
    """Make sure that nothing else goes by the symbol; return what it replaces. Raises RefusedTokenError."""
    if registry.file_chains[claimed.chain].token(token.symbol) is not None:
        raise RefusedTokenError(
            f"{token.symbol} is a token of the plugin or of the operator's file, which alone can change it:"
            " name another symbol."
        )
    taken = select(ChainToken.id, ChainToken.contract, ChainToken.state).where(
        ChainToken.chain == claimed.chain, ChainToken.symbol == token.symbol, ChainToken.state.in_(IN_USE)
    )
    row = (await conn.execute(taken)).one_or_none()
    if row is None:
        return None
    if not claimed.replaces:
        raise RefusedTokenError(f"{token.symbol} stands for {row.contract}: name another symbol, or replace it.")
    if row.state != "disabled" or await _is_needed(conn, claimed.chain, row.contract, now):
        raise RefusedTokenError(
            f"{token.symbol} stands for {row.contract}, which is replaced only when it is disabled, nothing of it is"
            " held or being confirmed, and no payment waits for it."
        )
    gone = update(ChainToken).where(ChainToken.id == row.id)
    await conn.execute(gone.values(state="replaced", changed_at=now))
    await _unset_amounts(conn, claimed.chain, token.symbol, now)
    return str(row.contract)


async def _unset_amounts(conn: AsyncConnection, chain: str, symbol: str, now: datetime) -> None:
    """Take away what merchants have set in the units of a symbol's token: the next one's may be worth more or less.

    What has no units stays, as whether the coin is enabled and what it is converted to. Each merchant reads of it in
    its own log.
    """
    rows = CoinSettings.chain == chain, CoinSettings.symbol == symbol
    some = or_(CoinSettings.autopayout_policy != "off", CoinSettings.min_deposit.is_not(None))
    set_ = select(Merchant.merchant_id, CoinSettings.mode).join(Merchant, Merchant.id == CoinSettings.merchant_pk)
    told = (await conn.execute(set_.where(*rows, some).order_by(CoinSettings.merchant_pk, CoinSettings.mode))).all()
    off = {"autopayout_policy": "off", "autopayout_threshold": None, "autopayout_project_pk": None}
    await conn.execute(update(CoinSettings).where(*rows).values(off | {"min_deposit": None, "updated_at": now}))
    changed = {"autopayoutPolicy": "off", "autopayoutThreshold": None, "minDeposit": None}
    for row in told:
        by, why = replace(GATEWAY, merchant_id=row.merchant_id), {"mode": row.mode, "because": "token replaced"}
        details = {"changed": changed} | why
        await record(conn, by, Action.COIN_SETTINGS_CHANGED, now, subject=f"{chain}/{symbol}", details=details)


async def _is_needed(conn: AsyncConnection, chain: str, contract: str, now: datetime) -> bool:
    """Whether anything of a token is in the books or will be, or a payment waits for it, also within its grace."""
    held = select(LedgerAccount.id).where(LedgerAccount.asset == asset_key(chain, contract), LedgerAccount.balance != 0)
    coming = select(Deposit.id).where(
        Deposit.chain == chain, Deposit.scope == SCOPE, Deposit.contract == contract, Deposit.status == "detected"
    )
    grace = func.make_interval(0, 0, 0, 0, 0, 0, Payment.grace_s, type_=Interval)
    waits = Payment.status.in_(OPEN) | ((Payment.status == Status.EXPIRED) & (Payment.expires_at + grace > now))
    awaited = select(Payment.id).where(Payment.chain == chain, Payment.contract == contract, waits)
    for asked in (held, coming, awaited):
        if (await conn.execute(asked.limit(1))).first() is not None:
            return True
    return False


async def _check_setup(conn: AsyncConnection, registry: Registry, chain: str, token: Token) -> None:
    """Let the plugin look at its chain with the token. Raises RefusedTokenError."""
    file = registry.setup(chain)
    if file is None:
        raise RefusedTokenError(f"The plugin of {chain} cannot change it while the gateway runs.")
    changes = await load(conn)
    setup, _ = with_tokens(registry, chain, file, [one for one in changes.tokens if one.chain == chain])
    try:
        registry.info(chain, replace(setup, tokens=(*setup.tokens, token)))
    except SetupError as error:
        raise RefusedTokenError(_shown(f"{error}.")) from error


def _shown(text: str) -> str:
    return printable(text)[:REASON_CHARS_MAX]
