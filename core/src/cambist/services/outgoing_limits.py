"""What may leave, by token: what holds for all merchants, what holds for one, and that something fits in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, structs
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import ARRAY, array
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.types import Text

from cambist.db.models import Merchant
from cambist.domain.money import parse_amount
from cambist.domain.usage import Group

from .errors import InvalidError

AmountText = Annotated[str, Meta(min_length=1, max_length=80)]


class MerchantLimit(Group, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What holds for one merchant in the place of what holds for all, in whole tokens. None: as for all."""

    per_transaction: AmountText | None = None
    per_day: AmountText | None = None


class OutgoingLimit(Group, frozen=True, kw_only=True, omit_defaults=True):
    """How much of a token may leave one merchant's wallet, in whole tokens. None: as much as there is.

    ``minimum`` is the least that one payout sends; refunds have none.
    """

    minimum: AmountText | None = None
    per_transaction: AmountText | None = None
    per_day: AmountText | None = None

    def for_one(self, own: MerchantLimit | None) -> OutgoingLimit:
        """Return what holds for a merchant who has such limits of its own."""
        said = {} if own is None else structs.asdict(own)
        return structs.replace(self, **{name: text for name, text in said.items() if text is not None})

    def in_the_way(self) -> tuple[str, str] | None:
        """Return the name of what is less than ``minimum``, and its amount, as then no payout can be right.

        0 is no slip: it says that nothing leaves.
        """
        most = {"perTransaction": self.per_transaction, "perDay": self.per_day}
        least = 0 if self.minimum is None else parse_amount(self.minimum)
        return next(((name, text) for name, text in most.items() if text and 0 < parse_amount(text) < least), None)


def check_room(limits: Mapping[str, OutgoingLimit]) -> None:
    """Refuse limits of all merchants between which nothing can be paid out. Raises InvalidError."""
    for key, limit in limits.items():
        if (found := limit.in_the_way()) is not None:
            raise InvalidError.field(f"limits.{key}.minimum", f"must be at most {found[0]}, which is {found[1]}")


def check_own_room(everybodys: Mapping[str, OutgoingLimit], own: Mapping[str, MerchantLimit]) -> None:
    """Refuse limits of one merchant below the minimum that holds for all. Raises InvalidError."""
    for key, limit in own.items():
        least = everybodys.get(key, OutgoingLimit()).minimum
        if (found := OutgoingLimit(minimum=least).for_one(limit).in_the_way()) is not None:
            raise InvalidError.field(f"limits.{key}.{found[0]}", f"must be at least the minimum, {least}")


async def check_merchants_room(conn: AsyncConnection, limits: Mapping[str, OutgoingLimit]) -> None:
    """Refuse a minimum for all that some merchant's own limits are below. Raises InvalidError, naming one merchant."""
    keys = [key for key, limit in limits.items() if limit.minimum is not None]
    for merchant_id, own in await _with_own(conn, keys):
        for key in keys:
            if (found := limits[key].for_one(own.get(key)).in_the_way()) is not None:
                words = f"must be at most {found[0]} of merchant {merchant_id}, which is {found[1]}"
                raise InvalidError.field(f"limits.{key}.minimum", words)


async def _with_own(conn: AsyncConnection, keys: list[str]) -> Iterable[tuple[str, Mapping[str, MerchantLimit]]]:
    if not keys:
        return []
    own = select(Merchant.merchant_id, Merchant.limits).where(Merchant.limits.has_any(array(keys, type_=ARRAY(Text))))
    rows = await conn.execute(own.order_by(Merchant.id))
    return [(row.merchant_id, msgspec.convert(row.limits, dict[str, MerchantLimit])) for row in rows]
