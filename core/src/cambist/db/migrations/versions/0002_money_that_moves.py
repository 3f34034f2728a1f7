"""Money that moves: what is sent, for whom, at what cost, and what merchants and the operator decide about it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Custody tells what is on the chain, which no constraint changes: a reorg after a collection must be postable.
_UNGUARD_CUSTODY = (
    "ALTER TABLE ledger_accounts DISABLE TRIGGER ledger_accounts_guard",
    "UPDATE ledger_accounts SET guarded = false WHERE debit_normal",
    "ALTER TABLE ledger_accounts ENABLE TRIGGER ledger_accounts_guard",
)


def upgrade() -> None:
    _create_tables()
    _create_two_factor_tables()
    _change_tables()
    for statement in _UNGUARD_CUSTODY:
        op.execute(statement)


def _create_tables() -> None:
    op.create_table(
        "gas_stations",
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("decimals", sa.BigInteger(), nullable=False),
        sa.Column("balance", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.Column("waiting", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("is_low", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("mode", "chain", name=op.f("pk_gas_stations")),
    )
    op.create_table(
        "platform_settings",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("settings", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_platform_settings_only_one")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_platform_settings")),
    )
    op.create_table(
        "price_points",
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("fiat_currency", sa.Text(), nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("value", sa.Numeric(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("symbol", "fiat_currency", "observed_at", name=op.f("pk_price_points")),
    )
    op.create_table(
        "approved_addresses",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("approval_id", sa.Text(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("approved_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["merchant_id"], ["merchants.id"], name=op.f("fk_approved_addresses_merchant_id_merchants")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_approved_addresses")),
        sa.UniqueConstraint("approval_id", name=op.f("uq_approved_addresses_approval_id")),
        sa.UniqueConstraint(
            "merchant_id", "mode", "chain", "address", name=op.f("uq_approved_addresses_merchant_id_mode_chain_address")
        ),
    )
    op.create_table(
        "usage_records",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=True),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("weight", sa.BigInteger(), nullable=False),
        sa.Column("posted", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("weight > 0", name=op.f("ck_usage_records_weight_positive")),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_usage_records_merchant_id_merchants")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_usage_records")),
        sa.UniqueConstraint("operation", "reference", name=op.f("uq_usage_records_operation_reference")),
    )
    op.create_index("ix_usage_records_merchant_id_id", "usage_records", ["merchant_id", "mode", "id"], unique=False)
    op.create_index(
        "ix_usage_records_unposted",
        "usage_records",
        ["merchant_id", "mode"],
        unique=False,
        postgresql_where=sa.text("NOT posted"),
    )
    op.create_table(
        "coin_settings",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("symbol", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("auto_convert_enabled", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("auto_convert_dest_chain", sa.Text(), nullable=True),
        sa.Column("auto_convert_dest_token", sa.Text(), nullable=True),
        sa.Column("autopayout_policy", sa.Text(), server_default="off", nullable=False),
        sa.Column("autopayout_threshold", sa.Numeric(precision=78, scale=0), nullable=True),
        sa.Column("autopayout_address", sa.Text(), nullable=True),
        sa.Column("autopayout_project_id", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "autopayout_policy = 'off' OR (autopayout_threshold IS NOT NULL AND autopayout_address IS NOT NULL)",
            name=op.f("ck_coin_settings_autopayout_whole"),
        ),
        sa.CheckConstraint("autopayout_policy IN ('off', 'limit')", name=op.f("ck_coin_settings_autopayout_policy")),
        sa.ForeignKeyConstraint(
            ["autopayout_project_id"], ["projects.id"], name=op.f("fk_coin_settings_autopayout_project_id_projects")
        ),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_coin_settings_merchant_id_merchants")),
        sa.PrimaryKeyConstraint("merchant_id", "mode", "chain", "symbol", name=op.f("pk_coin_settings")),
    )
    op.create_index(
        "ix_coin_settings_autopayout",
        "coin_settings",
        ["merchant_id", "mode"],
        unique=False,
        postgresql_where=sa.text("autopayout_policy = 'limit'"),
    )
    op.create_table(
        "payout_batches",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("batch_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("total_units", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.Column("accepted", sa.BigInteger(), nullable=False),
        sa.Column("rejected", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_payout_batches_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payout_batches")),
        sa.UniqueConstraint("batch_id", name=op.f("uq_payout_batches_batch_id")),
    )
    op.create_index(op.f("ix_payout_batches_project_id"), "payout_batches", ["project_id"], unique=False)
    op.create_table(
        "outbound_intents",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("scope", sa.BigInteger(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=True),
        sa.Column("source_address_id", sa.BigInteger(), nullable=False),
        sa.Column("recipient_address_id", sa.BigInteger(), nullable=True),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("contract", sa.Text(), nullable=True),
        sa.Column("decimals", sa.BigInteger(), nullable=False),
        sa.Column("units", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.Column("priority", sa.BigInteger(), server_default="100", nullable=False),
        sa.Column("forced", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("sweep_id", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('payout', 'refund', 'withdrawal', 'auto_payout', 'collection', 'repair', 'sweep', 'top_up')",
            name=op.f("ck_outbound_intents_kind"),
        ),
        sa.CheckConstraint("state IN ('waiting', 'sending', 'done', 'failed')", name=op.f("ck_outbound_intents_state")),
        sa.CheckConstraint("units > 0", name=op.f("ck_outbound_intents_units_positive")),
        sa.ForeignKeyConstraint(
            ["merchant_id"], ["merchants.id"], name=op.f("fk_outbound_intents_merchant_id_merchants")
        ),
        sa.ForeignKeyConstraint(
            ["recipient_address_id"], ["addresses.id"], name=op.f("fk_outbound_intents_recipient_address_id_addresses")
        ),
        sa.ForeignKeyConstraint(
            ["source_address_id"], ["addresses.id"], name=op.f("fk_outbound_intents_source_address_id_addresses")
        ),
        sa.ForeignKeyConstraint(
            ["sweep_id"], ["outbound_intents.id"], name=op.f("fk_outbound_intents_sweep_id_outbound_intents")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbound_intents")),
        sa.UniqueConstraint("reference", name=op.f("uq_outbound_intents_reference")),
    )
    op.create_index(
        "ix_outbound_intents_coming",
        "outbound_intents",
        ["recipient_address_id", "chain"],
        unique=False,
        postgresql_where=sa.text("state IN ('waiting', 'sending')"),
    )
    op.create_index(
        "ix_outbound_intents_gas",
        "outbound_intents",
        ["recipient_address_id", "chain"],
        unique=False,
        postgresql_where=sa.text("kind = 'top_up'"),
    )
    op.create_index(
        "ix_outbound_intents_failed",
        "outbound_intents",
        ["source_address_id", "chain"],
        unique=False,
        postgresql_where=sa.text("state = 'failed' AND kind = 'collection'"),
    )
    op.create_index(
        "ix_outbound_intents_open",
        "outbound_intents",
        ["source_address_id", "chain"],
        unique=False,
        postgresql_where=sa.text("state IN ('waiting', 'sending')"),
    )
    op.create_index(
        "ix_outbound_intents_sweep",
        "outbound_intents",
        ["sweep_id"],
        unique=False,
        postgresql_where=sa.text("sweep_id IS NOT NULL"),
    )
    op.create_index(
        "ix_outbound_intents_swept",
        "outbound_intents",
        ["source_address_id"],
        unique=False,
        postgresql_where=sa.text("state = 'sending' AND sweep_id IS NOT NULL"),
    )
    op.create_index(
        "ix_outbound_intents_waiting",
        "outbound_intents",
        ["chain", "scope", "due_at"],
        unique=False,
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_table(
        "outbound_senders",
        sa.Column("address_id", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("scope", sa.BigInteger(), nullable=False),
        sa.Column("next_sequence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("mined_sequence", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["address_id"], ["addresses.id"], name=op.f("fk_outbound_senders_address_id_addresses")
        ),
        sa.PrimaryKeyConstraint("address_id", "chain", "scope", name=op.f("pk_outbound_senders")),
    )
    op.create_table(
        "outbound_slots",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("intent_id", sa.BigInteger(), nullable=False),
        sa.Column("address_id", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("scope", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("missing_since", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "state IN ('open', 'done', 'reverted', 'cancelled', 'dead')", name=op.f("ck_outbound_slots_state")
        ),
        sa.ForeignKeyConstraint(["address_id"], ["addresses.id"], name=op.f("fk_outbound_slots_address_id_addresses")),
        sa.ForeignKeyConstraint(
            ["intent_id"], ["outbound_intents.id"], name=op.f("fk_outbound_slots_intent_id_outbound_intents")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbound_slots")),
        sa.UniqueConstraint(
            "address_id", "chain", "scope", "sequence", name=op.f("uq_outbound_slots_address_id_chain_scope_sequence")
        ),
    )
    op.create_index(op.f("ix_outbound_slots_intent_id"), "outbound_slots", ["intent_id"], unique=False)
    op.create_index(
        "ix_outbound_slots_open",
        "outbound_slots",
        ["chain", "scope", "id"],
        unique=False,
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_index(
        "uq_outbound_slots_one_per_intent",
        "outbound_slots",
        ["intent_id"],
        unique=True,
        postgresql_where=sa.text("state IN ('open', 'done', 'reverted')"),
    )
    op.create_table(
        "outbound_txs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("slot_id", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("scope", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.Text(), server_default="main", nullable=False),
        sa.Column("tx_id", sa.Text(), nullable=False),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.Column("fee_limit", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.Column("fee_price", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.Column("fee_tip", sa.Numeric(precision=78, scale=0), nullable=True),
        sa.Column("fee_extra", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.Column("valid_until", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), server_default="stored", nullable=False),
        sa.Column("succeeded", sa.Boolean(), nullable=True),
        sa.Column("fee_paid", sa.Numeric(precision=78, scale=0), nullable=True),
        sa.Column("height", sa.BigInteger(), nullable=True),
        sa.Column("block_hash", sa.Text(), nullable=True),
        sa.Column("incarnation", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tried_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("role IN ('main', 'cancel')", name=op.f("ck_outbound_txs_role")),
        sa.CheckConstraint("state IN ('stored', 'sent', 'mined', 'final', 'gone')", name=op.f("ck_outbound_txs_state")),
        sa.ForeignKeyConstraint(
            ["slot_id"], ["outbound_slots.id"], name=op.f("fk_outbound_txs_slot_id_outbound_slots")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbound_txs")),
        sa.UniqueConstraint("chain", "scope", "tx_id", name=op.f("uq_outbound_txs_chain_scope_tx_id")),
    )
    op.create_index(
        "ix_outbound_txs_height",
        "outbound_txs",
        ["chain", "scope", "height"],
        unique=False,
        postgresql_where=sa.text("state = 'final'"),
    )
    op.create_index(
        "ix_outbound_txs_open",
        "outbound_txs",
        ["chain", "scope", "id"],
        unique=False,
        postgresql_where=sa.text("state IN ('stored', 'sent', 'mined')"),
    )
    op.create_index(op.f("ix_outbound_txs_slot_id"), "outbound_txs", ["slot_id"], unique=False)
    op.create_table(
        "payouts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("payout_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("scope", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("contract", sa.Text(), nullable=True),
        sa.Column("decimals", sa.BigInteger(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("units", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.Column("held_units", sa.Numeric(precision=78, scale=0), server_default="0", nullable=False),
        sa.Column("status", sa.Text(), server_default="requested", nullable=False),
        sa.Column("batch_id", sa.BigInteger(), nullable=True),
        sa.Column("payment_id", sa.BigInteger(), nullable=True),
        sa.Column("deposit_id", sa.BigInteger(), nullable=True),
        sa.Column("intent_id", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("waits_for", sa.Text(), nullable=True),
        sa.Column("tx_id", sa.Text(), nullable=True),
        sa.Column("sandbox_fails", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("broadcast_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('payout', 'refund', 'withdrawal', 'auto_payout')", name=op.f("ck_payouts_kind")),
        sa.CheckConstraint("mode IN ('live', 'sandbox')", name=op.f("ck_payouts_mode")),
        sa.CheckConstraint(
            "status IN ('requested', 'processing', 'broadcast', 'completed', 'failed')", name=op.f("ck_payouts_status")
        ),
        sa.CheckConstraint("held_units BETWEEN 0 AND units", name=op.f("ck_payouts_held_within")),
        sa.CheckConstraint("units > 0", name=op.f("ck_payouts_units_positive")),
        sa.ForeignKeyConstraint(["batch_id"], ["payout_batches.id"], name=op.f("fk_payouts_batch_id_payout_batches")),
        sa.ForeignKeyConstraint(["deposit_id"], ["deposits.id"], name=op.f("fk_payouts_deposit_id_deposits")),
        sa.ForeignKeyConstraint(
            ["intent_id"], ["outbound_intents.id"], name=op.f("fk_payouts_intent_id_outbound_intents")
        ),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_payouts_merchant_id_merchants")),
        sa.ForeignKeyConstraint(["payment_id"], ["payments.id"], name=op.f("fk_payouts_payment_id_payments")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_payouts_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payouts")),
        sa.UniqueConstraint("intent_id", name=op.f("uq_payouts_intent_id")),
        sa.UniqueConstraint("payout_id", name=op.f("uq_payouts_payout_id")),
    )
    op.create_index(op.f("ix_payouts_batch_id"), "payouts", ["batch_id"], unique=False)
    op.create_index(op.f("ix_payouts_deposit_id"), "payouts", ["deposit_id"], unique=False)
    op.create_index("ix_payouts_merchant_id_kind_id", "payouts", ["merchant_id", "mode", "kind", "id"], unique=False)
    op.create_index("ix_payouts_day", "payouts", ["merchant_id", "mode", "chain", "created_at"], unique=False)
    op.create_index(
        "ix_payouts_open",
        "payouts",
        ["merchant_id", "mode", "chain"],
        unique=False,
        postgresql_where=sa.text("status IN ('requested', 'processing', 'broadcast')"),
    )
    op.create_index(op.f("ix_payouts_payment_id"), "payouts", ["payment_id"], unique=False)
    op.create_index("ix_payouts_project_id_kind_id", "payouts", ["project_id", "kind", "id"], unique=False)
    op.create_table(
        "refund_parts",
        sa.Column("payout_id", sa.BigInteger(), nullable=False),
        sa.Column("deposit_id", sa.BigInteger(), nullable=False),
        sa.Column("incarnation", sa.BigInteger(), nullable=False),
        sa.Column("units", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.CheckConstraint("units > 0", name=op.f("ck_refund_parts_units_positive")),
        sa.ForeignKeyConstraint(["deposit_id"], ["deposits.id"], name=op.f("fk_refund_parts_deposit_id_deposits")),
        sa.ForeignKeyConstraint(["payout_id"], ["payouts.id"], name=op.f("fk_refund_parts_payout_id_payouts")),
        sa.PrimaryKeyConstraint("payout_id", "deposit_id", name=op.f("pk_refund_parts")),
    )


def _create_two_factor_tables() -> None:
    op.create_table(
        "two_factor_states",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("secret_encrypted", sa.LargeBinary(), nullable=True),
        sa.Column("enabled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("pending_encrypted", sa.LargeBinary(), nullable=True),
        sa.Column("pending_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_step", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("wrong_codes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("locked_until", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("wrong_codes >= 0", name=op.f("ck_two_factor_states_wrong_codes")),
        sa.CheckConstraint(
            "(secret_encrypted IS NULL) = (enabled_at IS NULL)", name=op.f("ck_two_factor_states_enabled")
        ),
        sa.CheckConstraint(
            "(pending_encrypted IS NULL) = (pending_at IS NULL)", name=op.f("ck_two_factor_states_pending")
        ),
        sa.ForeignKeyConstraint(
            ["merchant_id"],
            ["merchants.id"],
            name=op.f("fk_two_factor_states_merchant_id_merchants"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("merchant_id", name=op.f("pk_two_factor_states")),
    )
    op.create_table(
        "recovery_codes",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("code_hash", sa.LargeBinary(), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["merchant_id"],
            ["two_factor_states.merchant_id"],
            name=op.f("fk_recovery_codes_merchant_id_two_factor_states"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("merchant_id", "code_hash", name=op.f("pk_recovery_codes")),
    )


def _change_tables() -> None:
    op.add_column(
        "deposits", sa.Column("returned_units", sa.Numeric(precision=78, scale=0), server_default="0", nullable=False)
    )
    op.add_column(
        "deposits", sa.Column("released_units", sa.Numeric(precision=78, scale=0), server_default="0", nullable=False)
    )
    op.add_column("deposits", sa.Column("collection_id", sa.BigInteger(), nullable=True))
    op.add_column("deposits", sa.Column("resolution", sa.Text(), nullable=True))
    op.add_column("deposits", sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True))
    op.alter_column("deposits", "merchant_id", existing_type=sa.BIGINT(), nullable=True)
    op.create_index(op.f("ix_deposits_collection_id"), "deposits", ["collection_id"], unique=False)
    op.create_index(
        "ix_deposits_held",
        "deposits",
        ["merchant_id", "mode", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'settled' AND available_units + returned_units < units"),
    )
    op.create_index(
        "ix_deposits_uncollected",
        "deposits",
        ["chain", "scope", "merchant_id"],
        unique=False,
        postgresql_where=sa.text("status = 'settled' AND collection_id IS NULL"),
    )
    op.create_foreign_key(
        op.f("fk_deposits_collection_id_outbound_intents"), "deposits", "outbound_intents", ["collection_id"], ["id"]
    )
    op.add_column(
        "payments", sa.Column("refunded_units", sa.Numeric(precision=78, scale=0), server_default="0", nullable=False)
    )
    op.add_column(
        "payments", sa.Column("accepted_units", sa.Numeric(precision=78, scale=0), server_default="0", nullable=False)
    )
    op.add_column("payments", sa.Column("status_before_refund", sa.Text(), nullable=True))
    op.add_column("sandbox_transfers", sa.Column("reverts", sa.Boolean(), server_default="false", nullable=False))
    op.create_index("ix_sandbox_transfers_tx_id", "sandbox_transfers", ["tx_id"], unique=False)
    op.drop_constraint("ck_addresses_purpose", "addresses")
    op.create_check_constraint(op.f("ck_addresses_purpose"), "addresses", "purpose IN ('payment', 'wallet', 'gas')")
    op.drop_constraint("ck_deposits_available_within", "deposits")
    op.drop_constraint("ck_deposits_only_settled_available", "deposits")
    op.create_check_constraint(
        op.f("ck_deposits_shares_not_negative"), "deposits", "available_units >= 0 AND returned_units >= 0"
    )
    op.create_check_constraint(
        op.f("ck_deposits_available_within"), "deposits", "available_units + returned_units <= units"
    )
    op.create_check_constraint(
        op.f("ck_deposits_released_within"), "deposits", "released_units BETWEEN 0 AND available_units"
    )
    op.create_check_constraint(
        op.f("ck_deposits_only_settled_available"),
        "deposits",
        "status = 'settled' OR available_units + returned_units = 0",
    )
    op.create_check_constraint(
        op.f("ck_deposits_resolution"), "deposits", "resolution IN ('accepted', 'released', 'refunded')"
    )
