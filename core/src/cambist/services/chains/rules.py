"""Which tokens new payments may ask for, as this process knows it: at most a few seconds old, like the tokens."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import Token
from cambist.services.errors import InvalidError

CODE = "TOKEN_NOT_ENABLED"
_DECIDED = """
SELECT t.chain, t.contract, t.state, t.default_enabled, m.merchant_pk, m.enabled
FROM chain_tokens t LEFT JOIN token_merchants m ON m.token_pk = t.id
WHERE t.state IN ('enabled', 'disabled')
    AND (t.state = 'disabled' OR NOT t.default_enabled OR m.token_pk IS NOT NULL)
"""


class TokenRule(Struct, frozen=True, kw_only=True):
    """What operators decided about one token. ``merchants`` says of some what does not follow from ``by_default``."""

    is_open: bool
    by_default: bool
    merchants: Mapping[int, bool] = {}

    def allows(self, merchant_pk: int) -> bool:
        """Whether this merchant may ask for new payments in it."""
        return self.is_open and self.merchants.get(merchant_pk, self.by_default)


class TokenRules:
    """The rules by chain and contract. A token without one is open to all."""

    def __init__(self) -> None:
        self._rules: Mapping[tuple[str, str | None], TokenRule] = {}

    def replace(self, rules: Mapping[tuple[str, str | None], TokenRule]) -> None:
        """Follow these from now on."""
        self._rules = rules

    def is_open(self, chain: str, contract: str | None) -> bool:
        """Whether anybody may ask for new payments in it."""
        rule = self._rules.get((chain, contract))
        return rule is None or rule.is_open

    def check(self, merchant_pk: int, chain: str, token: Token, field: str = "token") -> None:
        """Let a merchant ask for new money in it. Raises InvalidError, naming the field."""
        rule = self._rules.get((chain, token.contract))
        if rule is not None and not rule.allows(merchant_pk):
            words = f"is not enabled for new payments on {chain}: {token.symbol}"
            raise InvalidError.field(field, words, CODE)


async def load_rules(conn: AsyncConnection) -> Mapping[tuple[str, str | None], TokenRule]:
    """Return what operators decided, of the tokens alone about which something is different from usual."""
    rules: dict[tuple[str, str | None], TokenRule] = {}
    for row in await conn.exec_driver_sql(_DECIDED):
        merchants = {} if row.merchant_pk is None else {row.merchant_pk: row.enabled}
        before = rules.get((row.chain, row.contract))
        if before is not None:
            merchants = {**before.merchants, **merchants}
        rules[row.chain, row.contract] = TokenRule(
            is_open=row.state == "enabled", by_default=row.default_enabled, merchants=merchants
        )
    return rules
