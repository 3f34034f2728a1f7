"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from cambist.db.models import triggers
from cambist.db.models.base import Xid8

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "chain_blocks",
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("scope", sa.BigInteger(), nullable=False),
        sa.Column("height", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("parent_hash", sa.Text(), nullable=False),
        sa.Column("mined_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kept", sa.Boolean(), server_default="false", nullable=False),
        sa.PrimaryKeyConstraint("chain", "scope", "height", name=op.f("pk_chain_blocks")),
    )
    op.create_index(
        "ix_chain_blocks_recent",
        "chain_blocks",
        ["chain", "scope", "height"],
        unique=False,
        postgresql_where=sa.text("NOT kept"),
    )
    op.create_table(
        "chain_cursors",
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("scope", sa.BigInteger(), nullable=False),
        sa.Column("height", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("head", sa.BigInteger(), nullable=False),
        sa.Column("finalized", sa.BigInteger(), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("chain", "scope", name=op.f("pk_chain_cursors")),
    )
    op.create_table(
        "ledger_transactions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_transactions")),
        sa.UniqueConstraint("id", "mode", name=op.f("uq_ledger_transactions_id_mode")),
        sa.UniqueConstraint("kind", "reference", name=op.f("uq_ledger_transactions_kind_reference")),
    )
    op.create_table(
        "merchants",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("merchant_id", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_merchants")),
        sa.UniqueConstraint("email", name=op.f("uq_merchants_email")),
        sa.UniqueConstraint("merchant_id", name=op.f("uq_merchants_merchant_id")),
    )
    op.create_table(
        "account_keys",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("coin_type", sa.BigInteger(), nullable=False),
        sa.Column("account_index", sa.BigInteger(), nullable=False),
        sa.Column("xpub_encrypted", sa.LargeBinary(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=True),
        sa.Column("next_index", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("mode IN ('live', 'sandbox')", name=op.f("ck_account_keys_mode")),
        sa.CheckConstraint("next_index BETWEEN 0 AND 2147483648", name=op.f("ck_account_keys_index_range")),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_account_keys_merchant_id_merchants")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account_keys")),
        sa.UniqueConstraint(
            "mode", "coin_type", "account_index", name=op.f("uq_account_keys_mode_coin_type_account_index")
        ),
        sa.UniqueConstraint(
            "mode", "coin_type", "merchant_id", name=op.f("uq_account_keys_mode_coin_type_merchant_id")
        ),
    )
    op.create_index(
        "ix_account_keys_stock",
        "account_keys",
        ["mode", "coin_type", "account_index"],
        unique=False,
        postgresql_where=sa.text("merchant_id IS NULL"),
    )
    op.create_table(
        "ledger_accounts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=True),
        sa.Column("asset", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("guarded", sa.Boolean(), nullable=False),
        sa.Column("debit_normal", sa.Boolean(), nullable=False),
        sa.Column("balance", sa.Numeric(78, 0), server_default="0", nullable=False),
        sa.CheckConstraint("mode IN ('live', 'sandbox')", name=op.f("ck_ledger_accounts_mode")),
        sa.CheckConstraint(
            "NOT guarded OR CASE WHEN debit_normal THEN balance <= 0 ELSE balance >= 0 END",
            name=op.f("ck_ledger_accounts_guarded_balance"),
        ),
        sa.ForeignKeyConstraint(
            ["merchant_id"], ["merchants.id"], name=op.f("fk_ledger_accounts_merchant_id_merchants")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_accounts")),
        sa.UniqueConstraint("id", "asset", "mode", name=op.f("uq_ledger_accounts_id_asset_mode")),
        sa.UniqueConstraint(
            "mode",
            "merchant_id",
            "asset",
            "purpose",
            name=op.f("uq_ledger_accounts_mode_merchant_id_asset_purpose"),
            postgresql_nulls_not_distinct=True,
        ),
    )
    op.create_table(
        "password_resets",
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["merchant_id"], ["merchants.id"], name=op.f("fk_password_resets_merchant_id_merchants"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_password_resets")),
    )
    op.create_index(op.f("ix_password_resets_merchant_id"), "password_resets", ["merchant_id"], unique=False)
    op.create_table(
        "projects",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("payment_webhook_url", sa.Text(), nullable=True),
        sa.Column("webhook_secret_encrypted", sa.LargeBinary(), nullable=True),
        sa.Column("webhook_secret_rotated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("underpayment_tolerance_bps", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("grace_s", sa.BigInteger(), server_default="86400", nullable=False),
        sa.Column("extended_events", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("sandbox_auto_mine", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("is_active", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("mode IN ('live', 'sandbox')", name=op.f("ck_projects_mode")),
        sa.CheckConstraint("grace_s BETWEEN 0 AND 2592000", name=op.f("ck_projects_grace")),
        sa.CheckConstraint("underpayment_tolerance_bps BETWEEN 0 AND 1000", name=op.f("ck_projects_tolerance")),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_projects_merchant_id_merchants")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("project_id", name=op.f("uq_projects_project_id")),
    )
    op.create_index(op.f("ix_projects_merchant_id"), "projects", ["merchant_id"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("refresh_hash", sa.LargeBinary(), nullable=False),
        sa.Column("previous_hash", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["merchant_id"], ["merchants.id"], name=op.f("fk_sessions_merchant_id_merchants"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sessions")),
        sa.UniqueConstraint("refresh_hash", name=op.f("uq_sessions_refresh_hash")),
        sa.UniqueConstraint("session_id", name=op.f("uq_sessions_session_id")),
    )
    op.create_index(op.f("ix_sessions_merchant_id"), "sessions", ["merchant_id"], unique=False)
    op.create_index(op.f("ix_sessions_previous_hash"), "sessions", ["previous_hash"], unique=False)
    op.create_table(
        "api_keys",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_api_keys_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
        sa.UniqueConstraint("key_id", name=op.f("uq_api_keys_key_id")),
    )
    op.create_index(op.f("ix_api_keys_project_id"), "api_keys", ["project_id"], unique=False)
    op.create_table(
        "idempotency_keys",
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("request_hash", sa.LargeBinary(), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["merchant_id"], ["merchants.id"], name=op.f("fk_idempotency_keys_merchant_id_merchants")
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_idempotency_keys_project_id_projects")),
        sa.PrimaryKeyConstraint("merchant_id", "mode", "operation", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "ledger_movements",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("transaction_id", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("asset", sa.Text(), nullable=False),
        sa.Column("debit_account_id", sa.BigInteger(), nullable=False),
        sa.Column("credit_account_id", sa.BigInteger(), nullable=False),
        sa.Column("units", sa.Numeric(78, 0), nullable=False),
        sa.CheckConstraint("debit_account_id <> credit_account_id", name=op.f("ck_ledger_movements_two_accounts")),
        sa.CheckConstraint("units > 0", name=op.f("ck_ledger_movements_units_positive")),
        sa.ForeignKeyConstraint(
            ["credit_account_id", "asset", "mode"],
            ["ledger_accounts.id", "ledger_accounts.asset", "ledger_accounts.mode"],
            name=op.f("fk_ledger_movements_credit_account_id_ledger_accounts"),
        ),
        sa.ForeignKeyConstraint(
            ["debit_account_id", "asset", "mode"],
            ["ledger_accounts.id", "ledger_accounts.asset", "ledger_accounts.mode"],
            name=op.f("fk_ledger_movements_debit_account_id_ledger_accounts"),
        ),
        sa.ForeignKeyConstraint(
            ["transaction_id", "mode"],
            ["ledger_transactions.id", "ledger_transactions.mode"],
            name=op.f("fk_ledger_movements_transaction_id_ledger_transactions"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_movements")),
    )
    op.create_index("ix_ledger_movements_credit", "ledger_movements", ["credit_account_id", "id"], unique=False)
    op.create_index("ix_ledger_movements_debit", "ledger_movements", ["debit_account_id", "id"], unique=False)
    op.create_index(op.f("ix_ledger_movements_transaction_id"), "ledger_movements", ["transaction_id"], unique=False)
    op.create_table(
        "payments",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("payment_id", sa.Text(), nullable=False),
        sa.Column("public_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("scope", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("contract", sa.Text(), nullable=True),
        sa.Column("decimals", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("pricing_mode", sa.Text(), nullable=False),
        sa.Column("amount", sa.Numeric(), nullable=False),
        sa.Column("fiat_currency", sa.Text(), nullable=True),
        sa.Column("exchange_rate", sa.Numeric(), nullable=True),
        sa.Column("rate_source", sa.Text(), nullable=True),
        sa.Column("expected_units", sa.Numeric(78, 0), nullable=False),
        sa.Column("received_units", sa.Numeric(78, 0), server_default="0", nullable=False),
        sa.Column("order_units", sa.Numeric(78, 0), server_default="0", nullable=False),
        sa.Column("tolerance_bps", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("grace_s", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("required_confirmations", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("dirty", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("tx_id", sa.Text(), nullable=True),
        sa.Column("order_id", sa.Text(), nullable=True),
        sa.Column("webhook_url", sa.Text(), nullable=True),
        sa.Column("success_url", sa.Text(), nullable=True),
        sa.Column("cancel_url", sa.Text(), nullable=True),
        sa.Column("customer_name", sa.Text(), nullable=True),
        sa.Column("customer_email", sa.Text(), nullable=True),
        sa.Column("metadata", postgresql.JSON(astext_type=sa.Text()), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "(pricing_mode = 'fiat') = (exchange_rate IS NOT NULL)", name=op.f("ck_payments_fiat_has_rate")
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'detected', 'confirming', 'paid', 'underpaid', 'overpaid', 'expired', 'failed', 'refunded')",  # noqa: E501
            name=op.f("ck_payments_status"),
        ),
        sa.CheckConstraint("expected_units > 0", name=op.f("ck_payments_expected_positive")),
        sa.CheckConstraint("received_units >= 0", name=op.f("ck_payments_received_not_negative")),
        sa.CheckConstraint("required_confirmations >= 1", name=op.f("ck_payments_confirmations_positive")),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_payments_merchant_id_merchants")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_payments_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_payments")),
        sa.UniqueConstraint("payment_id", name=op.f("uq_payments_payment_id")),
        sa.UniqueConstraint("public_id", name=op.f("uq_payments_public_id")),
    )
    op.create_index(
        "ix_payments_active",
        "payments",
        ["chain", "scope"],
        unique=False,
        postgresql_where=sa.text("dirty OR status IN ('detected', 'confirming')"),
    )
    op.create_index(
        "ix_payments_expiring",
        "payments",
        ["chain", "scope", "expires_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index("ix_payments_project_id_id", "payments", ["project_id", "id"], unique=False)
    op.create_table(
        "sandbox_blocks",
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("height", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("parent_hash", sa.Text(), nullable=False),
        sa.Column("mined_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_sandbox_blocks_project_id_projects")),
        sa.PrimaryKeyConstraint("project_id", "chain", "height", name=op.f("pk_sandbox_blocks")),
    )
    op.create_table(
        "sandbox_chains",
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("height", sa.BigInteger(), nullable=False),
        sa.Column("salt", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("height >= 0", name=op.f("ck_sandbox_chains_height")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_sandbox_chains_project_id_projects")),
        sa.PrimaryKeyConstraint("project_id", "chain", name=op.f("pk_sandbox_chains")),
    )
    op.create_table(
        "sandbox_transfers",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("tx_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("contract", sa.Text(), nullable=True),
        sa.Column("units", sa.Numeric(78, 0), nullable=False),
        sa.Column("height", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_sandbox_transfers_project_id_projects")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sandbox_transfers")),
    )
    op.create_index("ix_sandbox_transfers_height", "sandbox_transfers", ["project_id", "chain", "height"], unique=False)
    op.create_table(
        "webhook_deliveries",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("delivery_id", sa.Text(), nullable=False),
        sa.Column("project_id", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("resource_id", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("attempts_total", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('pending', 'delivered', 'dropped', 'no_target')", name=op.f("ck_webhook_deliveries_status")
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_webhook_deliveries_project_id_projects")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_deliveries")),
        sa.UniqueConstraint("delivery_id", name=op.f("uq_webhook_deliveries_delivery_id")),
    )
    op.create_index(
        "ix_webhook_deliveries_due",
        "webhook_deliveries",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index("ix_webhook_deliveries_project_id_id", "webhook_deliveries", ["project_id", "id"], unique=False)
    op.create_index(
        "ix_webhook_deliveries_resource",
        "webhook_deliveries",
        ["resource_id", "id"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_table(
        "addresses",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), server_default="payment", nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=True),
        sa.Column("payment_id", sa.BigInteger(), nullable=True),
        sa.Column("account_index", sa.BigInteger(), nullable=False),
        sa.Column("change", sa.BigInteger(), nullable=False),
        sa.Column("address_index", sa.BigInteger(), nullable=False),
        sa.Column("xid", Xid8(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.CheckConstraint("(purpose = 'gas') = (merchant_id IS NULL)", name=op.f("ck_addresses_platform_owns_gas")),
        sa.CheckConstraint("purpose IN ('payment', 'gas')", name=op.f("ck_addresses_purpose")),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_addresses_merchant_id_merchants")),
        sa.ForeignKeyConstraint(["payment_id"], ["payments.id"], name=op.f("fk_addresses_payment_id_payments")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_addresses")),
        sa.UniqueConstraint(
            "mode",
            "family",
            "account_index",
            "change",
            "address_index",
            name=op.f("uq_addresses_mode_family_account_index_change_address_index"),
        ),
        sa.UniqueConstraint("mode", "family", "address", name=op.f("uq_addresses_mode_family_address")),
    )
    op.create_index(op.f("ix_addresses_payment_id"), "addresses", ["payment_id"], unique=False)
    op.create_index("ix_addresses_watch", "addresses", ["mode", "family", "xid"], unique=False)
    op.create_table(
        "webhook_attempts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("delivery_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("attempted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_ms", sa.BigInteger(), nullable=False),
        sa.Column("status_code", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("response", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["delivery_id"], ["webhook_deliveries.id"], name=op.f("fk_webhook_attempts_delivery_id_webhook_deliveries")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_attempts")),
    )
    op.create_index(op.f("ix_webhook_attempts_delivery_id"), "webhook_attempts", ["delivery_id"], unique=False)
    op.create_table(
        "deposits",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("deposit_id", sa.Text(), nullable=False),
        sa.Column("chain", sa.Text(), nullable=False),
        sa.Column("scope", sa.BigInteger(), nullable=False),
        sa.Column("tx_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("merchant_id", sa.BigInteger(), nullable=False),
        sa.Column("address_id", sa.BigInteger(), nullable=False),
        sa.Column("payment_id", sa.BigInteger(), nullable=True),
        sa.Column("matches", sa.Boolean(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("contract", sa.Text(), nullable=True),
        sa.Column("decimals", sa.BigInteger(), nullable=False),
        sa.Column("units", sa.Numeric(78, 0), nullable=False),
        sa.Column("available_units", sa.Numeric(78, 0), server_default="0", nullable=False),
        sa.Column("sender", sa.Text(), nullable=True),
        sa.Column("height", sa.BigInteger(), nullable=False),
        sa.Column("block_hash", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("mined_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("required_confirmations", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), server_default="detected", nullable=False),
        sa.Column("incarnation", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("detected_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("settled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("orphaned_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status = 'settled' OR available_units = 0", name=op.f("ck_deposits_only_settled_available")
        ),
        sa.CheckConstraint("status IN ('detected', 'settled', 'orphaned')", name=op.f("ck_deposits_status")),
        sa.CheckConstraint("available_units BETWEEN 0 AND units", name=op.f("ck_deposits_available_within")),
        sa.CheckConstraint("units > 0", name=op.f("ck_deposits_units_positive")),
        sa.ForeignKeyConstraint(["address_id"], ["addresses.id"], name=op.f("fk_deposits_address_id_addresses")),
        sa.ForeignKeyConstraint(["merchant_id"], ["merchants.id"], name=op.f("fk_deposits_merchant_id_merchants")),
        sa.ForeignKeyConstraint(["payment_id"], ["payments.id"], name=op.f("fk_deposits_payment_id_payments")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deposits")),
        sa.UniqueConstraint("chain", "scope", "tx_id", "position", name=op.f("uq_deposits_chain_scope_tx_id_position")),
        sa.UniqueConstraint("deposit_id", name=op.f("uq_deposits_deposit_id")),
    )
    op.create_index("ix_deposits_height", "deposits", ["chain", "scope", "height"], unique=False)
    op.create_index(op.f("ix_deposits_payment_id"), "deposits", ["payment_id"], unique=False)
    op.create_index(
        "ix_deposits_unsettled",
        "deposits",
        ["chain", "scope", "height"],
        unique=False,
        postgresql_where=sa.text("status = 'detected'"),
    )
    for statement in triggers.STATEMENTS:
        op.execute(statement)
