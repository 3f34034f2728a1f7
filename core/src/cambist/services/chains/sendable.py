"""Which of the added tokens can be sent: those that stand in the signer's own file."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import bindparam, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import ChainToken
from cambist.db.models.base import listed
from cambist.db.structs import one_of_given
from cambist.domain.troubles import Unsendable
from cambist.signer import Signer
from cambist.signer.protocol import SignerUnavailableError

from .setups import IN_USE

IS_NOT_SENDABLE = f"origin = 'added' AND state IN ({listed(IN_USE)}) AND sendable IS NOT TRUE"
"""Of a row of ``chain_tokens``: the signer does not know it, or has not been asked about it."""


async def ask(db: Database, signer: Signer) -> None:
    """Store what the signer says of each added token. A signer that does not answer changes nothing."""
    wanted = select(ChainToken.id, ChainToken.chain, ChainToken.contract, ChainToken.sendable).where(
        ChainToken.origin == "added", ChainToken.state.in_(IN_USE)
    )
    async with db.autocommit() as conn:
        rows = (await conn.execute(wanted)).all()
    for row in rows:
        try:
            known = await signer.knows_token(row.chain, row.contract)
        except (SignerUnavailableError, ValueError):
            continue  # away, or of a version that is not asked such things
        if known is not row.sendable:
            async with db.transaction() as conn:
                await conn.execute(update(ChainToken).where(ChainToken.id == row.id).values(sendable=known))


_NOT_SENDABLE = select(ChainToken.contract).where(
    ChainToken.chain == bindparam("chain"), one_of_given(ChainToken.contract, "contracts"), text(IS_NOT_SENDABLE)
)


async def not_sendable(conn: AsyncConnection, chain: str, contracts: Sequence[str]) -> Collection[str]:
    """Return which of these contracts are added tokens that the signer does not know, or has not been asked about."""
    given = {"chain": chain, "contracts": list(contracts)}
    return {row.contract for row in await conn.execute(_NOT_SENDABLE, given)}


def why_not(*, origin: str, sendable: bool | None) -> Unsendable | None:
    """Return why a token cannot be sent, None where it can."""
    if origin != "added" or sendable:
        return None
    return Unsendable.SIGNER_NOT_ASKED if sendable is None else Unsendable.NOT_IN_SIGNERS_FILE
