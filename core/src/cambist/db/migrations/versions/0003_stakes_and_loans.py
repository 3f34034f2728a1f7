"""Chains whose fees are paid out of a stake: what a transaction does beside transferring, and what it is spared."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_UNITS = sa.Numeric(precision=78, scale=0)
_KINDS = (
    "kind IN ('payout', 'refund', 'withdrawal', 'auto_payout', 'collection', 'repair', 'sweep', 'top_up',"
    " 'loan', 'loan_return', 'stake', 'unstake', 'withdraw_stake')"
)
_ACTIONS = "action IN ('transfer', 'lend', 'reclaim', 'stake', 'unstake', 'withdraw')"


def upgrade() -> None:
    op.add_column("outbound_intents", sa.Column("action", sa.Text(), server_default="transfer", nullable=False))
    op.drop_constraint(op.f("ck_outbound_intents_kind"), "outbound_intents", type_="check")
    op.create_check_constraint(op.f("ck_outbound_intents_kind"), "outbound_intents", _KINDS)
    op.create_check_constraint(op.f("ck_outbound_intents_action"), "outbound_intents", _ACTIONS)
    op.create_index(
        "ix_outbound_intents_loans",
        "outbound_intents",
        ["chain", "scope", "recipient_address_id"],
        postgresql_where=sa.text("kind IN ('loan', 'loan_return')"),
    )
    op.add_column("outbound_txs", sa.Column("fee_covered", _UNITS, server_default="0", nullable=False))
    for name in ("staked", "lent", "lendable", "leaving", "withdrawable"):
        op.add_column("gas_stations", sa.Column(name, _UNITS, nullable=True))
    op.add_column("gas_stations", sa.Column("is_stake_low", sa.Boolean(), server_default="false", nullable=False))
