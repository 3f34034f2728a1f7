"""The first schema, as the statements that make it: texts of their own, whatever becomes of the models."""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    """
    CREATE TABLE audit_entries (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        at TIMESTAMP WITH TIME ZONE NOT NULL,
        action TEXT NOT NULL,
        actor_kind TEXT NOT NULL,
        actor TEXT,
        address TEXT,
        merchant_id TEXT,
        project_id TEXT,
        subject TEXT,
        details JSONB DEFAULT '{}' NOT NULL,
        count BIGINT DEFAULT '1' NOT NULL,
        CONSTRAINT pk_audit_entries PRIMARY KEY (id),
        CONSTRAINT ck_audit_entries_actor_kind
            CHECK (actor_kind IN ('merchant', 'key', 'tracker', 'operator', 'stranger', 'gateway')),
        CONSTRAINT ck_audit_entries_count_positive CHECK (count > 0)
    )
    """,
    "CREATE INDEX ix_audit_entries_at ON audit_entries (at, id)",
    "CREATE INDEX ix_audit_entries_merchant_id ON audit_entries (merchant_id, at, id)",
    "CREATE INDEX ix_audit_entries_actor ON audit_entries (actor, at, id)",
    "CREATE INDEX ix_audit_entries_subject ON audit_entries (subject, at, id)",
    "CREATE INDEX ix_audit_entries_address ON audit_entries (address, at, id)",
    "CREATE INDEX ix_audit_entries_action ON audit_entries (action, at, id)",
    """
    CREATE TABLE audit_seals (
        number BIGINT NOT NULL,
        entries INT8MULTIRANGE NOT NULL,
        digests BYTEA NOT NULL,
        previous_hash BYTEA NOT NULL,
        hash BYTEA NOT NULL,
        mac BYTEA NOT NULL,
        sealed_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_audit_seals PRIMARY KEY (number),
        CONSTRAINT ck_audit_seals_number_positive CHECK (number > 0),
        CONSTRAINT ck_audit_seals_digests_whole CHECK (mod(octet_length(digests), 32) = 0)
    )
    """,
    "CREATE INDEX ix_audit_seals_sealed_at ON audit_seals (sealed_at)",
    """
    CREATE TABLE chain_blocks (
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        height BIGINT NOT NULL,
        hash TEXT NOT NULL,
        parent_hash TEXT NOT NULL,
        mined_at TIMESTAMP WITH TIME ZONE NOT NULL,
        kept BOOLEAN DEFAULT 'false' NOT NULL,
        CONSTRAINT pk_chain_blocks PRIMARY KEY (chain, scope, height)
    )
    """,
    "CREATE INDEX ix_chain_blocks_recent ON chain_blocks (chain, scope, height) WHERE NOT kept",
    """
    CREATE TABLE chain_cursors (
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        height BIGINT NOT NULL,
        hash TEXT NOT NULL,
        head BIGINT NOT NULL,
        finalized BIGINT,
        books_from BIGINT,
        updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
        tokens_revision BIGINT DEFAULT '0' NOT NULL,
        histories_begun BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_chain_cursors PRIMARY KEY (chain, scope)
    )
    """,
    """
    CREATE TABLE chain_pauses (
        chain TEXT NOT NULL,
        what TEXT NOT NULL,
        reason TEXT NOT NULL,
        paused_by TEXT NOT NULL,
        paused_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_chain_pauses PRIMARY KEY (chain, what),
        CONSTRAINT ck_chain_pauses_what CHECK (what IN ('watching', 'sending'))
    )
    """,
    """
    CREATE TABLE price_sources_set_aside (
        source TEXT NOT NULL,
        reason TEXT NOT NULL,
        set_aside_by TEXT NOT NULL,
        set_aside_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_price_sources_set_aside PRIMARY KEY (source)
    )
    """,
    """
    CREATE TABLE price_source_states (
        source TEXT NOT NULL,
        verdict TEXT NOT NULL,
        symbols TEXT[] NOT NULL,
        since TIMESTAMP WITH TIME ZONE NOT NULL,
        seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_price_source_states PRIMARY KEY (source),
        CONSTRAINT ck_price_source_states_verdict CHECK (
            verdict IN ('used', 'too_old', 'too_far', 'impossible', 'away')
        )
    )
    """,
    """
    CREATE TABLE prices_missing (
        symbol TEXT NOT NULL,
        reason TEXT NOT NULL,
        since TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_prices_missing PRIMARY KEY (symbol)
    )
    """,
    """
    CREATE TABLE signer_answers (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        answer_id TEXT NOT NULL,
        question_pk BIGINT NOT NULL,
        question TEXT NOT NULL,
        verdict TEXT NOT NULL,
        code TEXT,
        asked_by TEXT NOT NULL,
        asked_at TIMESTAMP WITH TIME ZONE NOT NULL,
        outcome TEXT,
        answered_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_signer_answers PRIMARY KEY (id),
        CONSTRAINT ck_signer_answers_verdict CHECK (verdict IN ('approve', 'deny')),
        CONSTRAINT ck_signer_answers_code_while_waiting CHECK ((outcome IS NULL) = (code IS NOT NULL)),
        CONSTRAINT ck_signer_answers_answered CHECK ((outcome IS NULL) = (answered_at IS NULL)),
        CONSTRAINT uq_signer_answers_answer_id UNIQUE (answer_id)
    )
    """,
    "CREATE INDEX ix_signer_answers_waiting ON signer_answers (id) WHERE outcome IS NULL",
    """
    CREATE TABLE signer_reports (
        id BIGINT NOT NULL,
        report JSONB NOT NULL,
        reported_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_signer_reports PRIMARY KEY (id),
        CONSTRAINT ck_signer_reports_only_one CHECK (id = 1)
    )
    """,
    """
    CREATE TABLE cron_runs (
        name TEXT NOT NULL,
        due_at TIMESTAMP WITH TIME ZONE NOT NULL,
        worker TEXT NOT NULL,
        attempts BIGINT DEFAULT '1' NOT NULL,
        claimed_at TIMESTAMP WITH TIME ZONE NOT NULL,
        leased_until TIMESTAMP WITH TIME ZONE NOT NULL,
        finished_at TIMESTAMP WITH TIME ZONE,
        error TEXT,
        error_code TEXT,
        CONSTRAINT pk_cron_runs PRIMARY KEY (name, due_at)
    )
    """,
    "CREATE INDEX ix_cron_runs_due_at ON cron_runs (due_at)",
    """
    CREATE TABLE gas_stations (
        mode TEXT NOT NULL,
        chain TEXT NOT NULL,
        address TEXT NOT NULL,
        symbol TEXT NOT NULL,
        decimals BIGINT NOT NULL,
        balance NUMERIC(78, 0) NOT NULL,
        staked NUMERIC(78, 0),
        lent NUMERIC(78, 0),
        lendable NUMERIC(78, 0),
        leaving NUMERIC(78, 0),
        withdrawable NUMERIC(78, 0),
        free_at TIMESTAMP WITH TIME ZONE,
        waiting BIGINT DEFAULT '0' NOT NULL,
        is_low BOOLEAN DEFAULT 'false' NOT NULL,
        is_stake_low BOOLEAN DEFAULT 'false' NOT NULL,
        low_below NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        stake_low_below NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        checked_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_gas_stations PRIMARY KEY (mode, chain)
    )
    """,
    """
    CREATE TABLE ledger_transactions (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        mode TEXT NOT NULL,
        kind TEXT NOT NULL,
        reference TEXT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_ledger_transactions PRIMARY KEY (id),
        CONSTRAINT uq_ledger_transactions_kind_reference UNIQUE (kind, reference),
        CONSTRAINT uq_ledger_transactions_id_mode UNIQUE (id, mode)
    )
    """,
    """
    CREATE TABLE plans (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        plan_id TEXT NOT NULL,
        name TEXT NOT NULL,
        has_tracker BOOLEAN NOT NULL,
        chains TEXT[],
        webhooks_max BIGINT NOT NULL,
        addresses_max BIGINT NOT NULL,
        requests_per_minute BIGINT,
        cpt_per_month BIGINT,
        price_usd TEXT,
        is_default BOOLEAN DEFAULT 'false' NOT NULL,
        is_public BOOLEAN DEFAULT 'true' NOT NULL,
        archived_at TIMESTAMP WITH TIME ZONE,
        version BIGINT DEFAULT '0' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_plans PRIMARY KEY (id),
        CONSTRAINT uq_plans_plan_id UNIQUE (plan_id),
        CONSTRAINT uq_plans_name UNIQUE (name),
        CONSTRAINT ck_plans_webhooks_max CHECK (webhooks_max >= 0),
        CONSTRAINT ck_plans_addresses_max CHECK (addresses_max >= 1),
        CONSTRAINT ck_plans_requests_per_minute CHECK (requests_per_minute >= 1),
        CONSTRAINT ck_plans_cpt_per_month CHECK (cpt_per_month >= 1),
        CONSTRAINT ck_plans_default_not_archived CHECK (NOT (is_default AND archived_at IS NOT NULL))
    )
    """,
    "CREATE UNIQUE INDEX uq_plans_default ON plans (is_default) WHERE is_default",
    """
    CREATE TABLE merchants (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        merchant_id TEXT NOT NULL,
        email TEXT NOT NULL,
        name TEXT NOT NULL,
        live BOOLEAN DEFAULT 'false' NOT NULL,
        plan_pk BIGINT,
        suspended_at TIMESTAMP WITH TIME ZONE,
        suspension_reason TEXT,
        limits JSONB DEFAULT '{}' NOT NULL,
        limits_version BIGINT DEFAULT '0' NOT NULL,
        live_coins_version BIGINT DEFAULT '0' NOT NULL,
        sandbox_coins_version BIGINT DEFAULT '0' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_merchants PRIMARY KEY (id),
        CONSTRAINT ck_merchants_suspension_whole CHECK ((suspended_at IS NULL) = (suspension_reason IS NULL)),
        CONSTRAINT uq_merchants_merchant_id UNIQUE (merchant_id),
        CONSTRAINT uq_merchants_email UNIQUE (email),
        CONSTRAINT fk_merchants_plan_pk_plans FOREIGN KEY(plan_pk) REFERENCES plans (id)
    )
    """,
    "CREATE INDEX ix_merchants_plan_pk ON merchants (plan_pk)",
    "CREATE INDEX ix_merchants_suspended ON merchants (id) WHERE suspended_at IS NOT NULL",
    """
    CREATE TABLE members (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        member_id TEXT NOT NULL,
        merchant_pk BIGINT NOT NULL,
        email TEXT NOT NULL,
        name TEXT NOT NULL,
        password_hash TEXT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        role TEXT DEFAULT 'owner' NOT NULL,
        project_pks BIGINT[],
        version BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_members PRIMARY KEY (id),
        CONSTRAINT ck_members_role CHECK (role IN ('owner', 'admin', 'finance', 'developer', 'viewer')),
        CONSTRAINT ck_members_project_pks CHECK (role NOT IN ('owner', 'admin') OR project_pks IS NULL),
        CONSTRAINT uq_members_member_id UNIQUE (member_id),
        CONSTRAINT fk_members_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id),
        CONSTRAINT uq_members_email UNIQUE (email)
    )
    """,
    "CREATE INDEX ix_members_merchant_pk ON members (merchant_pk)",
    """
    CREATE TABLE member_invitations (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        invitation_id TEXT NOT NULL,
        merchant_pk BIGINT NOT NULL,
        invited_by_pk BIGINT NOT NULL,
        email TEXT NOT NULL,
        name TEXT NOT NULL,
        role TEXT NOT NULL,
        project_pks BIGINT[],
        token_hash BYTEA NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_member_invitations PRIMARY KEY (id),
        CONSTRAINT uq_member_invitations_merchant_pk_email UNIQUE (merchant_pk, email),
        CONSTRAINT ck_member_invitations_role
            CHECK (role IN ('owner', 'admin', 'finance', 'developer', 'viewer')),
        CONSTRAINT ck_member_invitations_project_pks
            CHECK (role NOT IN ('owner', 'admin') OR project_pks IS NULL),
        CONSTRAINT uq_member_invitations_invitation_id UNIQUE (invitation_id),
        CONSTRAINT fk_member_invitations_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id),
        CONSTRAINT fk_member_invitations_invited_by_pk_members
            FOREIGN KEY(invited_by_pk) REFERENCES members (id) ON DELETE CASCADE,
        CONSTRAINT uq_member_invitations_token_hash UNIQUE (token_hash)
    )
    """,
    "CREATE INDEX ix_member_invitations_invited_by_pk ON member_invitations (invited_by_pk)",
    """
    CREATE TABLE cpt_months (
        merchant_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        month DATE NOT NULL,
        used BIGINT DEFAULT '0' NOT NULL,
        included BIGINT,
        CONSTRAINT pk_cpt_months PRIMARY KEY (merchant_pk, mode, month),
        CONSTRAINT ck_cpt_months_mode CHECK (mode IN ('live', 'sandbox')),
        CONSTRAINT ck_cpt_months_included CHECK (included >= 0),
        CONSTRAINT fk_cpt_months_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    "CREATE INDEX ix_cpt_months_month ON cpt_months (month)",
    """
    CREATE TABLE payout_minimums (
        chain TEXT NOT NULL,
        symbol TEXT NOT NULL,
        units NUMERIC(78, 0) NOT NULL,
        fee_units NUMERIC(78, 0) NOT NULL,
        native_price NUMERIC,
        token_price NUMERIC,
        derived_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_payout_minimums PRIMARY KEY (chain, symbol)
    )
    """,
    """
    CREATE TABLE platform_settings (
        id BIGINT NOT NULL,
        settings JSONB NOT NULL,
        version BIGINT DEFAULT '0' NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_platform_settings PRIMARY KEY (id),
        CONSTRAINT ck_platform_settings_only_one CHECK (id = 1)
    )
    """,
    """
    CREATE TABLE price_points (
        symbol TEXT NOT NULL,
        fiat_currency TEXT NOT NULL,
        observed_at TIMESTAMP WITH TIME ZONE NOT NULL,
        value NUMERIC NOT NULL,
        source TEXT NOT NULL,
        CONSTRAINT pk_price_points PRIMARY KEY (symbol, fiat_currency, observed_at)
    )
    """,
    """
    CREATE TABLE account_keys (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        mode TEXT NOT NULL,
        coin_type BIGINT NOT NULL,
        account_index BIGINT NOT NULL,
        xpub_encrypted BYTEA NOT NULL,
        merchant_pk BIGINT,
        next_index BIGINT DEFAULT '0' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_account_keys PRIMARY KEY (id),
        CONSTRAINT uq_account_keys_mode_coin_type_account_index UNIQUE (mode, coin_type, account_index),
        CONSTRAINT uq_account_keys_mode_coin_type_merchant_pk UNIQUE (mode, coin_type, merchant_pk),
        CONSTRAINT ck_account_keys_mode CHECK (mode IN ('live', 'sandbox')),
        CONSTRAINT ck_account_keys_index_range CHECK (next_index BETWEEN 0 AND 2147483648),
        CONSTRAINT fk_account_keys_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    """
    CREATE INDEX ix_account_keys_stock ON account_keys (mode, coin_type, account_index)
        WHERE merchant_pk IS NULL
    """,
    """
    CREATE TABLE approved_addresses (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        approval_id TEXT NOT NULL,
        merchant_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        chain TEXT NOT NULL,
        address TEXT NOT NULL,
        label TEXT NOT NULL,
        approved_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_approved_addresses PRIMARY KEY (id),
        CONSTRAINT uq_approved_addresses_merchant_pk_mode_chain_address UNIQUE (merchant_pk, mode, chain, address),
        CONSTRAINT uq_approved_addresses_approval_id UNIQUE (approval_id),
        CONSTRAINT fk_approved_addresses_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    """
    CREATE TABLE changes (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
        at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        kind TEXT NOT NULL,
        object_id TEXT NOT NULL,
        merchant_pk BIGINT,
        project_pk BIGINT,
        mode TEXT,
        status TEXT,
        intent_kind TEXT,
        CONSTRAINT pk_changes PRIMARY KEY (id),
        CONSTRAINT ck_changes_mode CHECK (mode IN ('live', 'sandbox'))
    )
    """,
    "CREATE INDEX ix_changes_xid ON changes (xid)",
    """
    CREATE TABLE jobs (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        job_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        arguments JSONB NOT NULL,
        requested_by TEXT NOT NULL,
        merchant_pk BIGINT,
        mode TEXT,
        unique_key TEXT,
        state TEXT DEFAULT 'queued' NOT NULL,
        attempts BIGINT DEFAULT '0' NOT NULL,
        due_at TIMESTAMP WITH TIME ZONE NOT NULL,
        worker TEXT,
        lease_token BIGINT DEFAULT '0' NOT NULL,
        leased_until TIMESTAMP WITH TIME ZONE,
        progress JSONB DEFAULT '{}' NOT NULL,
        result JSONB,
        error TEXT,
        error_code TEXT,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        started_at TIMESTAMP WITH TIME ZONE,
        finished_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_jobs PRIMARY KEY (id),
        CONSTRAINT ck_jobs_state CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
        CONSTRAINT ck_jobs_running_is_leased CHECK ((state = 'running') = (leased_until IS NOT NULL)),
        CONSTRAINT ck_jobs_finished CHECK ((finished_at IS NULL) = (state IN ('queued', 'running'))),
        CONSTRAINT ck_jobs_mode CHECK (mode IN ('live', 'sandbox')),
        CONSTRAINT uq_jobs_job_id UNIQUE (job_id),
        CONSTRAINT fk_jobs_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    "CREATE INDEX ix_jobs_created_at ON jobs (created_at, id)",
    "CREATE INDEX ix_jobs_finished_at ON jobs (finished_at) WHERE finished_at IS NOT NULL",
    "CREATE INDEX ix_jobs_succeeded ON jobs (kind, finished_at, id) WHERE state = 'succeeded'",
    "CREATE UNIQUE INDEX ix_jobs_unfinished ON jobs (kind, unique_key) WHERE state IN ('queued', 'running')",
    """
    CREATE TABLE ledger_accounts (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        mode TEXT NOT NULL,
        merchant_pk BIGINT,
        asset TEXT NOT NULL,
        purpose TEXT NOT NULL,
        guarded BOOLEAN NOT NULL,
        debit_normal BOOLEAN NOT NULL,
        balance NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        CONSTRAINT pk_ledger_accounts PRIMARY KEY (id),
        CONSTRAINT uq_ledger_accounts_mode_merchant_pk_asset_purpose
            UNIQUE NULLS NOT DISTINCT (mode, merchant_pk, asset, purpose),
        CONSTRAINT uq_ledger_accounts_id_asset_mode UNIQUE (id, asset, mode),
        CONSTRAINT ck_ledger_accounts_guarded_balance
            CHECK (NOT guarded OR CASE WHEN debit_normal THEN balance <= 0 ELSE balance >= 0 END),
        CONSTRAINT ck_ledger_accounts_mode CHECK (mode IN ('live', 'sandbox')),
        CONSTRAINT fk_ledger_accounts_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    "CREATE INDEX ix_ledger_accounts_receivable ON ledger_accounts (mode) WHERE purpose = 'receivable'",
    """
    CREATE TABLE operators (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        operator_id TEXT NOT NULL,
        email TEXT NOT NULL,
        name TEXT NOT NULL,
        role TEXT NOT NULL,
        password_hash TEXT NOT NULL,
        disabled_at TIMESTAMP WITH TIME ZONE,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_operators PRIMARY KEY (id),
        CONSTRAINT ck_operators_role CHECK (role IN ('owner', 'operator', 'support', 'auditor')),
        CONSTRAINT uq_operators_operator_id UNIQUE (operator_id),
        CONSTRAINT uq_operators_email UNIQUE (email)
    )
    """,
    """
    CREATE TABLE operator_sessions (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        session_id TEXT NOT NULL,
        operator_pk BIGINT NOT NULL,
        refresh_hash BYTEA NOT NULL,
        previous_hash BYTEA,
        rotated_at TIMESTAMP WITH TIME ZONE,
        ip TEXT,
        user_agent TEXT,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        last_used_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        step_up_until TIMESTAMP WITH TIME ZONE,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        revoked_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_operator_sessions PRIMARY KEY (id),
        CONSTRAINT uq_operator_sessions_session_id UNIQUE (session_id),
        CONSTRAINT fk_operator_sessions_operator_pk_operators
            FOREIGN KEY(operator_pk) REFERENCES operators (id) ON DELETE CASCADE,
        CONSTRAINT uq_operator_sessions_refresh_hash UNIQUE (refresh_hash)
    )
    """,
    "CREATE INDEX ix_operator_sessions_operator_pk ON operator_sessions (operator_pk)",
    """
    CREATE TABLE operator_links (
        token_hash BYTEA NOT NULL,
        operator_pk BIGINT NOT NULL,
        issued_by_pk BIGINT,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        used_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_operator_links PRIMARY KEY (token_hash),
        CONSTRAINT fk_operator_links_operator_pk_operators
            FOREIGN KEY(operator_pk) REFERENCES operators (id) ON DELETE CASCADE,
        CONSTRAINT fk_operator_links_issued_by_pk_operators
            FOREIGN KEY(issued_by_pk) REFERENCES operators (id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX ix_operator_links_issued_by_pk ON operator_links (issued_by_pk)",
    "CREATE INDEX ix_operator_links_operator_pk ON operator_links (operator_pk)",
    """
    CREATE TABLE operator_two_factors (
        operator_pk BIGINT NOT NULL,
        secret_encrypted BYTEA,
        enabled_at TIMESTAMP WITH TIME ZONE,
        pending_encrypted BYTEA,
        pending_at TIMESTAMP WITH TIME ZONE,
        last_step BIGINT DEFAULT '0' NOT NULL,
        wrong_codes BIGINT DEFAULT '0' NOT NULL,
        locked_until TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_operator_two_factors PRIMARY KEY (operator_pk),
        CONSTRAINT ck_operator_two_factors_wrong_codes CHECK (wrong_codes >= 0),
        CONSTRAINT ck_operator_two_factors_enabled CHECK ((secret_encrypted IS NULL) = (enabled_at IS NULL)),
        CONSTRAINT ck_operator_two_factors_pending CHECK ((pending_encrypted IS NULL) = (pending_at IS NULL)),
        CONSTRAINT fk_operator_two_factors_operator_pk_operators
            FOREIGN KEY(operator_pk) REFERENCES operators (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE operator_recovery_codes (
        operator_pk BIGINT NOT NULL,
        code_hash BYTEA NOT NULL,
        used_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_operator_recovery_codes PRIMARY KEY (operator_pk, code_hash),
        CONSTRAINT fk_operator_recovery_codes_operator_pk_operator_two_factors
            FOREIGN KEY(operator_pk) REFERENCES operator_two_factors (operator_pk) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE password_resets (
        token_hash BYTEA NOT NULL,
        member_pk BIGINT NOT NULL,
        issued_by_pk BIGINT,
        issued_by_operator_pk BIGINT,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        used_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_password_resets PRIMARY KEY (token_hash),
        CONSTRAINT fk_password_resets_member_pk_members
            FOREIGN KEY(member_pk) REFERENCES members (id) ON DELETE CASCADE,
        CONSTRAINT fk_password_resets_issued_by_pk_members
            FOREIGN KEY(issued_by_pk) REFERENCES members (id) ON DELETE CASCADE,
        CONSTRAINT fk_password_resets_issued_by_operator_pk_operators
            FOREIGN KEY(issued_by_operator_pk) REFERENCES operators (id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX ix_password_resets_issued_by_operator_pk ON password_resets (issued_by_operator_pk)",
    "CREATE INDEX ix_password_resets_issued_by_pk ON password_resets (issued_by_pk)",
    "CREATE INDEX ix_password_resets_member_pk ON password_resets (member_pk)",
    """
    CREATE TABLE projects (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        project_id TEXT NOT NULL,
        merchant_pk BIGINT NOT NULL,
        name TEXT NOT NULL,
        mode TEXT NOT NULL,
        payment_webhook_url TEXT,
        webhook_secret_encrypted BYTEA,
        webhook_secret_rotated_at TIMESTAMP WITH TIME ZONE,
        previous_secret_encrypted BYTEA,
        previous_secret_until TIMESTAMP WITH TIME ZONE,
        signature_check TEXT,
        signature_checked_at TIMESTAMP WITH TIME ZONE,
        underpayment_tolerance_bps BIGINT DEFAULT '0' NOT NULL,
        grace_s BIGINT DEFAULT '86400' NOT NULL,
        extended_events BOOLEAN DEFAULT 'true' NOT NULL,
        sandbox_auto_mine BOOLEAN DEFAULT 'false' NOT NULL,
        is_active BOOLEAN DEFAULT 'true' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_projects PRIMARY KEY (id),
        CONSTRAINT ck_projects_mode CHECK (mode IN ('live', 'sandbox')),
        CONSTRAINT ck_projects_tolerance CHECK (underpayment_tolerance_bps BETWEEN 0 AND 1000),
        CONSTRAINT ck_projects_grace CHECK (grace_s BETWEEN 0 AND 2592000),
        CONSTRAINT ck_projects_previous_has_end
            CHECK ((previous_secret_encrypted IS NULL) = (previous_secret_until IS NULL)),
        CONSTRAINT ck_projects_signature_check
            CHECK (signature_check IN ('verified', 'unchecked', 'refused', 'unreachable', 'unclear')),
        CONSTRAINT ck_projects_check_has_time CHECK ((signature_check IS NULL) = (signature_checked_at IS NULL)),
        CONSTRAINT uq_projects_project_id UNIQUE (project_id),
        CONSTRAINT fk_projects_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    "CREATE INDEX ix_projects_merchant_pk ON projects (merchant_pk)",
    """
    CREATE TABLE sessions (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        session_id TEXT NOT NULL,
        member_pk BIGINT NOT NULL,
        refresh_hash BYTEA NOT NULL,
        previous_hash BYTEA,
        rotated_at TIMESTAMP WITH TIME ZONE,
        ip TEXT,
        user_agent TEXT,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        last_used_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        step_up_until TIMESTAMP WITH TIME ZONE,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        revoked_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_sessions PRIMARY KEY (id),
        CONSTRAINT uq_sessions_session_id UNIQUE (session_id),
        CONSTRAINT fk_sessions_member_pk_members
            FOREIGN KEY(member_pk) REFERENCES members (id) ON DELETE CASCADE,
        CONSTRAINT uq_sessions_refresh_hash UNIQUE (refresh_hash)
    )
    """,
    "CREATE INDEX ix_sessions_member_pk ON sessions (member_pk)",
    """
    CREATE TABLE two_factor_states (
        member_pk BIGINT NOT NULL,
        secret_encrypted BYTEA,
        enabled_at TIMESTAMP WITH TIME ZONE,
        pending_encrypted BYTEA,
        pending_at TIMESTAMP WITH TIME ZONE,
        last_step BIGINT DEFAULT '0' NOT NULL,
        wrong_codes BIGINT DEFAULT '0' NOT NULL,
        locked_until TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_two_factor_states PRIMARY KEY (member_pk),
        CONSTRAINT ck_two_factor_states_wrong_codes CHECK (wrong_codes >= 0),
        CONSTRAINT ck_two_factor_states_enabled CHECK ((secret_encrypted IS NULL) = (enabled_at IS NULL)),
        CONSTRAINT ck_two_factor_states_pending CHECK ((pending_encrypted IS NULL) = (pending_at IS NULL)),
        CONSTRAINT fk_two_factor_states_member_pk_members
            FOREIGN KEY(member_pk) REFERENCES members (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE usage_records (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        merchant_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        operation TEXT NOT NULL,
        chain TEXT,
        reference TEXT NOT NULL,
        weight BIGINT NOT NULL,
        posted BOOLEAN DEFAULT 'false' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_usage_records PRIMARY KEY (id),
        CONSTRAINT uq_usage_records_operation_reference UNIQUE (operation, reference),
        CONSTRAINT ck_usage_records_weight_positive CHECK (weight > 0),
        CONSTRAINT fk_usage_records_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    "CREATE INDEX ix_usage_records_created_at ON usage_records USING brin (created_at)",
    "CREATE INDEX ix_usage_records_merchant_pk ON usage_records (merchant_pk, mode, created_at, id)",
    "CREATE INDEX ix_usage_records_unposted ON usage_records (merchant_pk, mode) WHERE NOT posted",
    """
    CREATE TABLE api_keys (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        key_id TEXT NOT NULL,
        project_pk BIGINT NOT NULL,
        name TEXT NOT NULL,
        hint TEXT NOT NULL,
        key_hash BYTEA NOT NULL,
        scopes TEXT[] NOT NULL,
        allowed_ips TEXT[] DEFAULT '{}' NOT NULL,
        expires_at TIMESTAMP WITH TIME ZONE,
        last_used_at TIMESTAMP WITH TIME ZONE,
        last_used_ip TEXT,
        created_by TEXT,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        revoked_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_api_keys PRIMARY KEY (id),
        CONSTRAINT uq_api_keys_key_id UNIQUE (key_id),
        CONSTRAINT ck_api_keys_scopes CHECK (cardinality(scopes) > 0 AND scopes <@
            ARRAY['read', 'payments', 'refunds', 'payouts', 'exchange', 'accounts', 'trackers']),
        CONSTRAINT fk_api_keys_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id),
        CONSTRAINT uq_api_keys_key_hash UNIQUE (key_hash)
    )
    """,
    "CREATE INDEX ix_api_keys_project_pk ON api_keys (project_pk)",
    """
    CREATE TABLE coin_settings (
        merchant_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        chain TEXT NOT NULL,
        symbol TEXT NOT NULL,
        enabled BOOLEAN DEFAULT 'true' NOT NULL,
        auto_convert_enabled BOOLEAN DEFAULT 'false' NOT NULL,
        auto_convert_dest_chain TEXT,
        auto_convert_dest_token TEXT,
        auto_convert_project_pk BIGINT,
        auto_convert_due_at TIMESTAMP WITH TIME ZONE,
        auto_convert_refusals BIGINT DEFAULT '0' NOT NULL,
        auto_convert_refusal TEXT,
        auto_convert_message TEXT,
        autopayout_policy TEXT DEFAULT 'off' NOT NULL,
        autopayout_threshold NUMERIC(78, 0),
        autopayout_address TEXT,
        autopayout_project_pk BIGINT,
        min_deposit NUMERIC(78, 0),
        updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_coin_settings PRIMARY KEY (merchant_pk, mode, chain, symbol),
        CONSTRAINT ck_coin_settings_autopayout_policy CHECK (autopayout_policy IN ('off', 'limit')),
        CONSTRAINT ck_coin_settings_autopayout_whole
            CHECK (autopayout_policy = 'off' OR (autopayout_threshold IS NOT NULL AND autopayout_address IS NOT NULL)),
        CONSTRAINT ck_coin_settings_auto_convert_whole
            CHECK (NOT auto_convert_enabled OR (auto_convert_dest_chain IS NOT NULL
            AND auto_convert_dest_token IS NOT NULL AND auto_convert_project_pk IS NOT NULL
            AND auto_convert_due_at IS NOT NULL)),
        CONSTRAINT fk_coin_settings_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id),
        CONSTRAINT fk_coin_settings_auto_convert_project_pk_projects
            FOREIGN KEY(auto_convert_project_pk) REFERENCES projects (id),
        CONSTRAINT fk_coin_settings_autopayout_project_pk_projects
            FOREIGN KEY(autopayout_project_pk) REFERENCES projects (id)
    )
    """,
    """
    CREATE INDEX ix_coin_settings_autopayout ON coin_settings (merchant_pk, mode)
        WHERE autopayout_policy = 'limit'
    """,
    """
    CREATE INDEX ix_coin_settings_auto_convert ON coin_settings (auto_convert_due_at)
        WHERE auto_convert_enabled
    """,
    """
    CREATE TABLE idempotency_keys (
        merchant_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        operation TEXT NOT NULL,
        key TEXT NOT NULL,
        project_pk BIGINT NOT NULL,
        request_hash BYTEA NOT NULL,
        resource_id TEXT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_idempotency_keys PRIMARY KEY (merchant_pk, mode, operation, key),
        CONSTRAINT fk_idempotency_keys_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id),
        CONSTRAINT fk_idempotency_keys_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id)
    )
    """,
    """
    CREATE TABLE job_outputs (
        job_pk BIGINT NOT NULL,
        number BIGINT NOT NULL,
        content BYTEA NOT NULL,
        CONSTRAINT pk_job_outputs PRIMARY KEY (job_pk, number),
        CONSTRAINT fk_job_outputs_job_pk_jobs FOREIGN KEY(job_pk) REFERENCES jobs (id) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE kept_answers (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        asker TEXT NOT NULL,
        operation TEXT NOT NULL,
        key TEXT NOT NULL,
        request_hash BYTEA NOT NULL,
        answer_encrypted BYTEA,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_kept_answers PRIMARY KEY (id),
        CONSTRAINT uq_kept_answers_asker_operation_key UNIQUE (asker, operation, key)
    )
    """,
    "CREATE INDEX ix_kept_answers_created_at ON kept_answers (created_at)",
    """
    CREATE TABLE ledger_movements (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        transaction_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        asset TEXT NOT NULL,
        debit_account_pk BIGINT NOT NULL,
        credit_account_pk BIGINT NOT NULL,
        units NUMERIC(78, 0) NOT NULL,
        CONSTRAINT pk_ledger_movements PRIMARY KEY (id),
        CONSTRAINT ck_ledger_movements_units_positive CHECK (units > 0),
        CONSTRAINT ck_ledger_movements_two_accounts CHECK (debit_account_pk <> credit_account_pk),
        CONSTRAINT fk_ledger_movements_transaction_pk_ledger_transactions
            FOREIGN KEY(transaction_pk, mode) REFERENCES ledger_transactions (id, mode),
        CONSTRAINT fk_ledger_movements_debit_account_pk_ledger_accounts
            FOREIGN KEY(debit_account_pk, asset, mode) REFERENCES ledger_accounts (id, asset, mode),
        CONSTRAINT fk_ledger_movements_credit_account_pk_ledger_accounts
            FOREIGN KEY(credit_account_pk, asset, mode) REFERENCES ledger_accounts (id, asset, mode)
    )
    """,
    "CREATE INDEX ix_ledger_movements_credit ON ledger_movements (credit_account_pk, id)",
    "CREATE INDEX ix_ledger_movements_debit ON ledger_movements (debit_account_pk, id)",
    "CREATE INDEX ix_ledger_movements_transaction_pk ON ledger_movements (transaction_pk)",
    """
    CREATE TABLE payments (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        payment_id TEXT NOT NULL,
        public_id TEXT NOT NULL,
        project_pk BIGINT NOT NULL,
        merchant_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        token TEXT NOT NULL,
        contract TEXT,
        decimals BIGINT NOT NULL,
        address TEXT NOT NULL,
        pricing_mode TEXT NOT NULL,
        amount NUMERIC NOT NULL,
        fiat_currency TEXT,
        exchange_rate NUMERIC,
        rate_source TEXT,
        expected_units NUMERIC(78, 0) NOT NULL,
        received_units NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        order_units NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        accepted_units NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        refunded_units NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        status_before_refund TEXT,
        tolerance_bps BIGINT DEFAULT '0' NOT NULL,
        grace_s BIGINT DEFAULT '0' NOT NULL,
        required_confirmations BIGINT NOT NULL,
        status TEXT DEFAULT 'pending' NOT NULL,
        dirty BOOLEAN DEFAULT 'false' NOT NULL,
        tx_id TEXT,
        order_id TEXT,
        webhook_url TEXT,
        success_url TEXT,
        cancel_url TEXT,
        customer_name TEXT,
        customer_email TEXT,
        metadata JSON,
        expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
        address_mac BYTEA NOT NULL,
        CONSTRAINT pk_payments PRIMARY KEY (id),
        CONSTRAINT ck_payments_expected_positive CHECK (expected_units > 0),
        CONSTRAINT ck_payments_received_not_negative CHECK (received_units >= 0),
        CONSTRAINT ck_payments_confirmations_positive CHECK (required_confirmations >= 1),
        CONSTRAINT ck_payments_status
            CHECK (status IN ('pending', 'detected', 'confirming', 'paid', 'underpaid', 'overpaid', 'expired',
            'failed', 'refunded')),
        CONSTRAINT ck_payments_fiat_has_rate CHECK ((pricing_mode = 'fiat') = (exchange_rate IS NOT NULL)),
        CONSTRAINT uq_payments_payment_id UNIQUE (payment_id),
        CONSTRAINT uq_payments_public_id UNIQUE (public_id),
        CONSTRAINT fk_payments_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id),
        CONSTRAINT fk_payments_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    """
    CREATE INDEX ix_payments_active ON payments (chain, scope)
        WHERE dirty OR status IN ('detected', 'confirming')
    """,
    "CREATE INDEX ix_payments_expiring ON payments (chain, scope, expires_at) WHERE status = 'pending'",
    "CREATE INDEX ix_payments_created_at ON payments (created_at, id)",
    """
    CREATE INDEX ix_payments_customer_email ON payments (lower(customer_email), id)
        WHERE customer_email IS NOT NULL
    """,
    "CREATE INDEX ix_payments_merchant_pk ON payments (merchant_pk, created_at, id)",
    """
    CREATE INDEX ix_payments_order ON payments (order_id, project_pk, created_at, id)
        WHERE order_id IS NOT NULL
    """,
    """
    CREATE INDEX ix_payments_order_id ON payments (order_id, created_at, id)
        WHERE order_id IS NOT NULL
    """,
    "CREATE INDEX ix_payments_project_pk ON payments (project_pk, created_at, id)",
    "CREATE INDEX ix_payments_project_status ON payments (project_pk, status, created_at, id)",
    "CREATE INDEX ix_payments_status ON payments (status, created_at, id)",
    """
    CREATE TABLE payout_batches (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        batch_id TEXT NOT NULL,
        project_pk BIGINT NOT NULL,
        request_hash BYTEA NOT NULL,
        chain TEXT NOT NULL,
        token TEXT NOT NULL,
        total_units NUMERIC(78, 0) NOT NULL,
        accepted BIGINT NOT NULL,
        rejected JSONB NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_payout_batches PRIMARY KEY (id),
        CONSTRAINT uq_payout_batches_batch_id UNIQUE (batch_id),
        CONSTRAINT fk_payout_batches_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id)
    )
    """,
    "CREATE INDEX ix_payout_batches_request ON payout_batches (project_pk, request_hash)",
    """
    CREATE TABLE recovery_codes (
        member_pk BIGINT NOT NULL,
        code_hash BYTEA NOT NULL,
        used_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_recovery_codes PRIMARY KEY (member_pk, code_hash),
        CONSTRAINT fk_recovery_codes_member_pk_two_factor_states
            FOREIGN KEY(member_pk) REFERENCES two_factor_states (member_pk) ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE sandbox_blocks (
        project_pk BIGINT NOT NULL,
        chain TEXT NOT NULL,
        height BIGINT NOT NULL,
        hash TEXT NOT NULL,
        parent_hash TEXT NOT NULL,
        mined_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_sandbox_blocks PRIMARY KEY (project_pk, chain, height),
        CONSTRAINT fk_sandbox_blocks_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id)
    )
    """,
    """
    CREATE TABLE sandbox_chains (
        project_pk BIGINT NOT NULL,
        chain TEXT NOT NULL,
        height BIGINT NOT NULL,
        salt BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_sandbox_chains PRIMARY KEY (project_pk, chain),
        CONSTRAINT ck_sandbox_chains_height CHECK (height >= 0),
        CONSTRAINT fk_sandbox_chains_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id)
    )
    """,
    """
    CREATE TABLE sandbox_transfers (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        project_pk BIGINT NOT NULL,
        chain TEXT NOT NULL,
        tx_id TEXT NOT NULL,
        position TEXT NOT NULL,
        sender TEXT NOT NULL,
        recipient TEXT NOT NULL,
        contract TEXT,
        units NUMERIC(78, 0) NOT NULL,
        height BIGINT,
        reverts BOOLEAN DEFAULT 'false' NOT NULL,
        CONSTRAINT pk_sandbox_transfers PRIMARY KEY (id),
        CONSTRAINT fk_sandbox_transfers_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id)
    )
    """,
    "CREATE INDEX ix_sandbox_transfers_height ON sandbox_transfers (project_pk, chain, height)",
    "CREATE INDEX ix_sandbox_transfers_tx_id ON sandbox_transfers (tx_id)",
    """
    CREATE TABLE accounts (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        account_id TEXT NOT NULL,
        public_id TEXT NOT NULL,
        project_pk BIGINT NOT NULL,
        merchant_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        external_id TEXT NOT NULL,
        metadata JSON,
        is_active BOOLEAN DEFAULT 'true' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_accounts PRIMARY KEY (id),
        CONSTRAINT uq_accounts_project_pk_external_id UNIQUE (project_pk, external_id),
        CONSTRAINT uq_accounts_account_id UNIQUE (account_id),
        CONSTRAINT uq_accounts_public_id UNIQUE (public_id),
        CONSTRAINT fk_accounts_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id),
        CONSTRAINT fk_accounts_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    "CREATE INDEX ix_accounts_created_at ON accounts (created_at, id)",
    "CREATE INDEX ix_accounts_external_id ON accounts (external_id, created_at, id)",
    "CREATE INDEX ix_accounts_project_pk ON accounts (project_pk, created_at, id)",
    """
    CREATE TABLE trackers (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        webhook_id TEXT NOT NULL,
        project_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        url TEXT NOT NULL,
        name TEXT NOT NULL,
        start_block BIGINT NOT NULL,
        reads_past BOOLEAN DEFAULT 'false' NOT NULL,
        max_addresses BIGINT NOT NULL,
        is_active BOOLEAN DEFAULT 'true' NOT NULL,
        metadata JSON,
        token_hash BYTEA NOT NULL,
        token_encrypted BYTEA NOT NULL,
        secret_encrypted BYTEA NOT NULL,
        credentials_rotated_at TIMESTAMP WITH TIME ZONE,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        deleted_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_trackers PRIMARY KEY (id),
        CONSTRAINT ck_trackers_max_addresses CHECK (max_addresses >= 1),
        CONSTRAINT ck_trackers_start_block CHECK (start_block >= 0),
        CONSTRAINT uq_trackers_webhook_id UNIQUE (webhook_id),
        CONSTRAINT fk_trackers_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id),
        CONSTRAINT uq_trackers_token_hash UNIQUE (token_hash)
    )
    """,
    "CREATE INDEX ix_trackers_chain ON trackers (chain, scope)",
    "CREATE INDEX ix_trackers_project_pk_id ON trackers (project_pk, id)",
    """
    CREATE TABLE tracker_addresses (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        tracker_pk BIGINT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        address TEXT NOT NULL,
        label TEXT,
        metadata JSON,
        added_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_tracker_addresses PRIMARY KEY (id),
        CONSTRAINT uq_tracker_addresses_tracker_pk_address UNIQUE (tracker_pk, address),
        CONSTRAINT fk_tracker_addresses_tracker_pk_trackers FOREIGN KEY(tracker_pk) REFERENCES trackers (id)
    )
    """,
    (
        "CREATE INDEX ix_tracker_addresses_address ON tracker_addresses (address, chain, scope, tracker_pk)"
        " INCLUDE (label)"
    ),
    "CREATE INDEX ix_tracker_addresses_tracker_pk_id ON tracker_addresses (tracker_pk, id)",
    """
    CREATE TABLE tracker_histories (
        tracker_pk BIGINT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        state TEXT DEFAULT 'reading' NOT NULL,
        from_block BIGINT,
        to_block BIGINT,
        read_block BIGINT,
        again BOOLEAN DEFAULT 'false' NOT NULL,
        xid XID8 DEFAULT pg_current_xact_id() NOT NULL,
        version BIGINT DEFAULT '0' NOT NULL,
        failures BIGINT DEFAULT '0' NOT NULL,
        error TEXT,
        error_code TEXT,
        due_at TIMESTAMP WITH TIME ZONE,
        begun_at TIMESTAMP WITH TIME ZONE,
        untold BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_tracker_histories PRIMARY KEY (tracker_pk),
        CONSTRAINT ck_tracker_histories_state CHECK (state IN ('reading', 'done', 'cancelled')),
        CONSTRAINT ck_tracker_histories_begun CHECK (num_nonnulls(from_block, to_block, read_block) IN (0, 3)),
        CONSTRAINT fk_tracker_histories_tracker_pk_trackers FOREIGN KEY(tracker_pk) REFERENCES trackers (id)
    )
    """,
    "CREATE INDEX ix_tracker_histories_xid ON tracker_histories (chain, scope, xid)",
    "CREATE INDEX ix_tracker_histories_reading ON tracker_histories (chain, scope) WHERE state = 'reading'",
    """
    CREATE TABLE tracked_addresses (
        mode TEXT NOT NULL,
        family TEXT NOT NULL,
        address TEXT NOT NULL,
        xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
        CONSTRAINT pk_tracked_addresses PRIMARY KEY (address, family, mode)
    )
    """,
    "CREATE INDEX ix_tracked_addresses_watch ON tracked_addresses (mode, family, xid)",
    """
    CREATE TABLE chain_endpoints (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        endpoint_id TEXT NOT NULL,
        chain TEXT NOT NULL,
        origin TEXT NOT NULL,
        name TEXT NOT NULL,
        url_encrypted BYTEA,
        state TEXT NOT NULL,
        reason TEXT,
        replaces_pk BIGINT,
        claimed_until TIMESTAMP WITH TIME ZONE,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        changed_at TIMESTAMP WITH TIME ZONE NOT NULL,
        healthy BOOLEAN,
        head BIGINT,
        set_aside TEXT,
        last_error TEXT,
        calls BIGINT,
        failures BIGINT,
        rate_limited BIGINT,
        calls_per_minute BIGINT,
        latency_ms BIGINT,
        seen_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_chain_endpoints PRIMARY KEY (id),
        CONSTRAINT uq_chain_endpoints_endpoint_id UNIQUE (endpoint_id),
        CONSTRAINT ck_chain_endpoints_origin CHECK (origin IN ('file', 'added')),
        CONSTRAINT ck_chain_endpoints_state CHECK (state IN ('checking', 'in_use', 'refused', 'removed', 'absent')),
        CONSTRAINT ck_chain_endpoints_added_with_url CHECK (origin = 'file' OR url_encrypted IS NOT NULL),
        CONSTRAINT fk_chain_endpoints_replaces_pk_chain_endpoints FOREIGN KEY(replaces_pk)
            REFERENCES chain_endpoints (id)
    )
    """,
    "CREATE INDEX ix_chain_endpoints_chain ON chain_endpoints (chain, id)",
    "CREATE INDEX ix_chain_endpoints_checking ON chain_endpoints (id) WHERE state = 'checking'",
    """
    CREATE TABLE chain_states (
        chain TEXT NOT NULL,
        problem TEXT,
        problem_code TEXT,
        setup_problem TEXT,
        setup_problem_code TEXT,
        error TEXT,
        error_code TEXT,
        failing_since TIMESTAMP WITH TIME ZONE,
        quorum BIGINT NOT NULL,
        seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_chain_states PRIMARY KEY (chain)
    )
    """,
    """
    CREATE TABLE chain_tokens (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        token_id TEXT NOT NULL,
        chain TEXT NOT NULL,
        contract TEXT,
        origin TEXT NOT NULL,
        symbol TEXT,
        decimals BIGINT,
        label TEXT,
        state TEXT NOT NULL,
        reason TEXT,
        replaces BOOLEAN DEFAULT 'false' NOT NULL,
        default_enabled BOOLEAN DEFAULT 'true' NOT NULL,
        revision BIGINT,
        since_height BIGINT,
        sendable BOOLEAN,
        claimed_until TIMESTAMP WITH TIME ZONE,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        changed_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_chain_tokens PRIMARY KEY (id),
        CONSTRAINT uq_chain_tokens_token_id UNIQUE (token_id),
        CONSTRAINT ck_chain_tokens_origin CHECK (origin IN ('file', 'added')),
        CONSTRAINT ck_chain_tokens_state CHECK (state IN ('checking', 'enabled', 'disabled', 'refused', 'replaced')),
        CONSTRAINT ck_chain_tokens_in_use_whole CHECK (
            origin = 'file' OR state NOT IN ('enabled', 'disabled', 'replaced')
            OR (symbol IS NOT NULL AND decimals IS NOT NULL AND revision IS NOT NULL)
        )
    )
    """,
    "CREATE INDEX ix_chain_tokens_checking ON chain_tokens (id) WHERE state = 'checking'",
    """
    CREATE UNIQUE INDEX ix_chain_tokens_contract ON chain_tokens (chain, coalesce(contract, ''))
        WHERE state IN ('checking', 'enabled', 'disabled')
    """,
    "CREATE UNIQUE INDEX ix_chain_tokens_symbol ON chain_tokens (chain, symbol) WHERE state IN ('enabled', 'disabled')",
    """
    CREATE TABLE token_merchants (
        token_pk BIGINT NOT NULL,
        merchant_pk BIGINT NOT NULL,
        enabled BOOLEAN NOT NULL,
        CONSTRAINT pk_token_merchants PRIMARY KEY (token_pk, merchant_pk),
        CONSTRAINT fk_token_merchants_token_pk_chain_tokens FOREIGN KEY(token_pk) REFERENCES chain_tokens (id),
        CONSTRAINT fk_token_merchants_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    """
    CREATE TABLE tracker_additions (
        merchant_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        month DATE NOT NULL,
        added BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_tracker_additions PRIMARY KEY (merchant_pk, mode, month),
        CONSTRAINT fk_tracker_additions_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    """
    CREATE TABLE movements (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        tx_id TEXT NOT NULL,
        position TEXT NOT NULL,
        sender TEXT,
        recipient TEXT NOT NULL,
        token TEXT NOT NULL,
        contract TEXT,
        decimals BIGINT NOT NULL,
        units NUMERIC(78, 0) NOT NULL,
        height BIGINT NOT NULL,
        block_hash TEXT NOT NULL,
        mined_at TIMESTAMP WITH TIME ZONE NOT NULL,
        first_mined_at TIMESTAMP WITH TIME ZONE NOT NULL,
        required_confirmations BIGINT NOT NULL,
        status TEXT DEFAULT 'detected' NOT NULL,
        incarnation BIGINT DEFAULT '1' NOT NULL,
        stored_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_movements PRIMARY KEY (id),
        CONSTRAINT ck_movements_units_positive CHECK (units > 0),
        CONSTRAINT ck_movements_status CHECK (status IN ('detected', 'confirmed', 'orphaned'))
    )
    """,
    "CREATE INDEX ix_movements_height ON movements (chain, scope, height)",
    (
        "CREATE UNIQUE INDEX ix_movements_orphaned ON movements (chain, scope, tx_id, position, incarnation)"
        " WHERE status = 'orphaned'"
    ),
    (
        "CREATE UNIQUE INDEX ix_movements_standing ON movements (chain, scope, tx_id, position)"
        " WHERE status <> 'orphaned'"
    ),
    "CREATE INDEX ix_movements_stored_at ON movements USING brin (stored_at)",
    "CREATE INDEX ix_movements_unconfirmed ON movements (chain, scope, height) WHERE status = 'detected'",
    """
    CREATE TABLE movement_stages (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        movement_pk BIGINT NOT NULL,
        stage TEXT NOT NULL,
        head BIGINT NOT NULL,
        at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_movement_stages PRIMARY KEY (id),
        CONSTRAINT ck_movement_stages_stage CHECK (stage IN ('detected', 'confirmed', 'orphaned'))
    )
    """,
    "CREATE INDEX ix_movement_stages_at ON movement_stages USING brin (at)",
    "CREATE INDEX ix_movement_stages_chain ON movement_stages (chain, scope, id)",
    "CREATE INDEX ix_movement_stages_movement_pk ON movement_stages (movement_pk)",
    """
    CREATE TABLE tracker_cursors (
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        stage_pk BIGINT DEFAULT '0' NOT NULL,
        version BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_tracker_cursors PRIMARY KEY (chain, scope)
    )
    """,
    """
    CREATE TABLE deferred_stages (
        stage_pk BIGINT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        movement_pk BIGINT NOT NULL,
        attempts BIGINT DEFAULT '1' NOT NULL,
        due_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_deferred_stages PRIMARY KEY (stage_pk),
        CONSTRAINT fk_deferred_stages_stage_pk_movement_stages FOREIGN KEY(stage_pk) REFERENCES movement_stages (id)
    )
    """,
    "CREATE INDEX ix_deferred_stages_chain ON deferred_stages (chain, scope, due_at)",
    """
    CREATE TABLE tracker_transactions (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        transaction_id TEXT NOT NULL,
        tracker_pk BIGINT NOT NULL,
        movement_pk BIGINT NOT NULL,
        direction TEXT NOT NULL,
        address TEXT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_tracker_transactions PRIMARY KEY (transaction_id),
        CONSTRAINT ck_tracker_transactions_direction CHECK (direction IN ('in', 'out'))
    )
    """,
    "CREATE INDEX ix_tracker_transactions_created_at ON tracker_transactions USING brin (created_at)",
    "CREATE INDEX ix_tracker_transactions_movement_pk ON tracker_transactions (movement_pk, tracker_pk)",
    "CREATE INDEX ix_tracker_transactions_tracker_pk ON tracker_transactions (tracker_pk, created_at, id)",
    """
    CREATE TABLE webhook_endpoints (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        endpoint_id TEXT NOT NULL,
        project_pk BIGINT NOT NULL,
        url TEXT NOT NULL,
        events TEXT[] DEFAULT '{}' NOT NULL,
        secret_encrypted BYTEA,
        secret_rotated_at TIMESTAMP WITH TIME ZONE NOT NULL,
        previous_secret_encrypted BYTEA,
        previous_secret_until TIMESTAMP WITH TIME ZONE,
        signature_check TEXT,
        signature_checked_at TIMESTAMP WITH TIME ZONE,
        paused BOOLEAN DEFAULT 'false' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        deleted_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_webhook_endpoints PRIMARY KEY (id),
        CONSTRAINT ck_webhook_endpoints_secret_until_deleted
            CHECK ((secret_encrypted IS NULL) = (deleted_at IS NOT NULL)),
        CONSTRAINT ck_webhook_endpoints_previous_has_end
            CHECK ((previous_secret_encrypted IS NULL) = (previous_secret_until IS NULL)),
        CONSTRAINT ck_webhook_endpoints_signature_check
            CHECK (signature_check IN ('verified', 'unchecked', 'refused', 'unreachable', 'unclear')),
        CONSTRAINT ck_webhook_endpoints_check_has_time
            CHECK ((signature_check IS NULL) = (signature_checked_at IS NULL)),
        CONSTRAINT uq_webhook_endpoints_endpoint_id UNIQUE (endpoint_id),
        CONSTRAINT fk_webhook_endpoints_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id)
    )
    """,
    "CREATE INDEX ix_webhook_endpoints_project_pk ON webhook_endpoints (project_pk)",
    """
    CREATE TABLE webhook_events (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        event_id TEXT NOT NULL,
        project_pk BIGINT NOT NULL,
        event TEXT NOT NULL,
        resource TEXT NOT NULL,
        resource_id TEXT NOT NULL,
        body BYTEA NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_webhook_events PRIMARY KEY (id),
        CONSTRAINT uq_webhook_events_event_id UNIQUE (event_id),
        CONSTRAINT fk_webhook_events_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id)
    )
    """,
    "CREATE INDEX ix_webhook_events_created_at ON webhook_events USING brin (created_at)",
    "CREATE INDEX ix_webhook_events_event ON webhook_events (project_pk, event, created_at, id)",
    "CREATE INDEX ix_webhook_events_project_pk ON webhook_events (project_pk, created_at, id)",
    "CREATE INDEX ix_webhook_events_resource_id ON webhook_events (resource_id)",
    """
    CREATE TABLE webhook_deliveries (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        delivery_id TEXT COLLATE "C" NOT NULL,
        project_pk BIGINT NOT NULL,
        event_pk BIGINT,
        endpoint_pk BIGINT,
        tracker_pk BIGINT,
        event TEXT NOT NULL,
        resource_id TEXT NOT NULL,
        url TEXT,
        body BYTEA,
        target_key BIGINT GENERATED ALWAYS AS (CASE
            WHEN tracker_pk IS NOT NULL THEN 4611686018427387904 + tracker_pk
            WHEN endpoint_pk IS NOT NULL THEN endpoint_pk
            ELSE 2305843009213693952 + (hashtextextended(lower(substring(url, '^[^/]*//[^/?#]*')), project_pk)
                & 2305843009213693951)
        END) STORED,
        status TEXT DEFAULT 'pending' NOT NULL,
        attempts BIGINT DEFAULT '0' NOT NULL,
        attempts_total BIGINT DEFAULT '0' NOT NULL,
        due_at TIMESTAMP WITH TIME ZONE NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        delivered_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_webhook_deliveries PRIMARY KEY (id),
        CONSTRAINT ck_webhook_deliveries_status
            CHECK (status IN ('pending', 'paused', 'delivered', 'dropped', 'no_target', 'cancelled', 'tested')),
        CONSTRAINT ck_webhook_deliveries_one_target CHECK (num_nonnulls(endpoint_pk, tracker_pk) <= 1),
        CONSTRAINT ck_webhook_deliveries_event_or_tracker
            CHECK (num_nonnulls(event_pk, tracker_pk) = CASE status WHEN 'tested' THEN 0 ELSE 1 END),
        CONSTRAINT ck_webhook_deliveries_one_body CHECK (num_nonnulls(event_pk, body) = 1),
        CONSTRAINT uq_webhook_deliveries_delivery_id UNIQUE (delivery_id),
        CONSTRAINT fk_webhook_deliveries_event_pk_webhook_events
            FOREIGN KEY(event_pk) REFERENCES webhook_events (id),
        CONSTRAINT fk_webhook_deliveries_endpoint_pk_webhook_endpoints
            FOREIGN KEY(endpoint_pk) REFERENCES webhook_endpoints (id)
    )
    """,
    "CREATE INDEX ix_webhook_deliveries_created_at ON webhook_deliveries USING brin (created_at)",
    "CREATE INDEX ix_webhook_deliveries_due ON webhook_deliveries (due_at, id) WHERE status = 'pending'",
    (
        "CREATE INDEX ix_webhook_deliveries_endpoint_pk ON webhook_deliveries (endpoint_pk, created_at, id)"
        " WHERE endpoint_pk IS NOT NULL"
    ),
    "CREATE INDEX ix_webhook_deliveries_event_pk ON webhook_deliveries (event_pk) WHERE event_pk IS NOT NULL",
    (
        "CREATE INDEX ix_webhook_deliveries_ended_badly ON webhook_deliveries (status, id)"
        " WHERE status IN ('dropped', 'paused', 'no_target', 'cancelled')"
    ),
    "CREATE INDEX ix_webhook_deliveries_failing ON webhook_deliveries (id) WHERE status = 'pending' AND attempts > 0",
    (
        "CREATE INDEX ix_webhook_deliveries_failed ON webhook_deliveries (project_pk, created_at)"
        " WHERE status IN ('dropped', 'no_target')"
    ),
    (
        "CREATE INDEX ix_webhook_deliveries_open ON webhook_deliveries (endpoint_pk, status, id)"
        " WHERE endpoint_pk IS NOT NULL AND status IN ('pending', 'paused')"
    ),
    "CREATE INDEX ix_webhook_deliveries_project_pk ON webhook_deliveries (project_pk, created_at, id)",
    (
        "CREATE INDEX ix_webhook_deliveries_resource ON webhook_deliveries (resource_id)"
        " WHERE tracker_pk IS NULL AND status IN ('pending', 'paused')"
    ),
    (
        "CREATE INDEX ix_webhook_deliveries_target ON webhook_deliveries (target_key, due_at, id)"
        " WHERE status = 'pending'"
    ),
    """
    CREATE TABLE addresses (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        mode TEXT NOT NULL,
        family TEXT NOT NULL,
        address TEXT NOT NULL,
        purpose TEXT DEFAULT 'payment' NOT NULL,
        merchant_pk BIGINT,
        payment_pk BIGINT,
        account_pk BIGINT,
        account_index BIGINT NOT NULL,
        change BIGINT NOT NULL,
        address_index BIGINT NOT NULL,
        xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
        CONSTRAINT pk_addresses PRIMARY KEY (id),
        CONSTRAINT uq_addresses_mode_family_address UNIQUE (mode, family, address),
        CONSTRAINT uq_addresses_mode_family_account_index_change_address_index
            UNIQUE (mode, family, account_index, change, address_index),
        CONSTRAINT ck_addresses_purpose CHECK (purpose IN ('payment', 'account', 'wallet', 'gas')),
        CONSTRAINT ck_addresses_account_has_owner CHECK (account_pk IS NULL OR purpose = 'account'),
        CONSTRAINT ck_addresses_account_has_branch CHECK ((purpose = 'account') = (change = 2)),
        CONSTRAINT ck_addresses_platform_owns_gas CHECK ((purpose = 'gas') = (merchant_pk IS NULL)),
        CONSTRAINT fk_addresses_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id),
        CONSTRAINT fk_addresses_payment_pk_payments FOREIGN KEY(payment_pk) REFERENCES payments (id),
        CONSTRAINT fk_addresses_account_pk_accounts FOREIGN KEY(account_pk) REFERENCES accounts (id)
    )
    """,
    """
    CREATE UNIQUE INDEX ix_addresses_account_pk_family ON addresses (account_pk, family)
        WHERE account_pk IS NOT NULL
    """,
    "CREATE INDEX ix_addresses_own ON addresses (mode, family, merchant_pk) WHERE purpose IN ('wallet', 'gas')",
    "CREATE INDEX ix_addresses_payment_pk ON addresses (payment_pk)",
    "CREATE INDEX ix_addresses_watch ON addresses (mode, family, xid)",
    """
    CREATE TABLE account_chains (
        account_pk BIGINT NOT NULL,
        chain TEXT NOT NULL,
        address_pk BIGINT NOT NULL,
        address_mac BYTEA NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pk_account_chains PRIMARY KEY (account_pk, chain),
        CONSTRAINT fk_account_chains_account_pk_accounts FOREIGN KEY(account_pk) REFERENCES accounts (id),
        CONSTRAINT fk_account_chains_address_pk_addresses FOREIGN KEY(address_pk) REFERENCES addresses (id)
    )
    """,
    "CREATE INDEX ix_account_chains_address_pk ON account_chains (address_pk)",
    """
    CREATE TABLE webhook_attempts (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        delivery_pk BIGINT NOT NULL,
        number BIGINT NOT NULL,
        attempted_at TIMESTAMP WITH TIME ZONE NOT NULL,
        duration_ms BIGINT NOT NULL,
        status_code BIGINT,
        error TEXT,
        response TEXT,
        CONSTRAINT pk_webhook_attempts PRIMARY KEY (id),
        CONSTRAINT fk_webhook_attempts_delivery_pk_webhook_deliveries
            FOREIGN KEY(delivery_pk) REFERENCES webhook_deliveries (id)
    )
    """,
    "CREATE INDEX ix_webhook_attempts_delivery_pk ON webhook_attempts (delivery_pk)",
    """
    CREATE TABLE outbound_intents (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        reference TEXT NOT NULL,
        intent_id TEXT GENERATED ALWAYS AS ('int_' || md5(reference)) STORED NOT NULL,
        kind TEXT NOT NULL,
        mode TEXT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        merchant_pk BIGINT,
        source_address_pk BIGINT NOT NULL,
        recipient_address_pk BIGINT,
        to_address TEXT NOT NULL,
        tag TEXT,
        action TEXT DEFAULT 'transfer' NOT NULL,
        token TEXT NOT NULL,
        contract TEXT,
        decimals BIGINT NOT NULL,
        units NUMERIC(78, 0) NOT NULL,
        asked_by TEXT DEFAULT 'platform' NOT NULL,
        work_max BIGINT,
        call_data BYTEA,
        call_value NUMERIC(78, 0),
        call_valid_until TIMESTAMP WITH TIME ZONE,
        priority BIGINT DEFAULT '100' NOT NULL,
        sweep_pk BIGINT,
        state TEXT DEFAULT 'waiting' NOT NULL,
        reason TEXT,
        cancel_asked_at TIMESTAMP WITH TIME ZONE,
        cancel_asked_by TEXT,
        given_up_reason TEXT,
        signed_sequence BIGINT,
        signed_tx_id TEXT,
        settle_tx_id TEXT,
        settle_asked_at TIMESTAMP WITH TIME ZONE,
        settle_refusal TEXT,
        due_at TIMESTAMP WITH TIME ZONE NOT NULL,
        gave_way_until TIMESTAMP WITH TIME ZONE,
        retried_at TIMESTAMP WITH TIME ZONE,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
        finished_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_outbound_intents PRIMARY KEY (id),
        CONSTRAINT ck_outbound_intents_units_positive
            CHECK (units > 0 OR (units = 0 AND action IN ('nothing', 'approve'))),
        CONSTRAINT ck_outbound_intents_call_whole
            CHECK (num_nulls(call_data, call_value, call_valid_until) IN (0, 3)
            AND (call_data IS NULL OR action = 'call')),
        CONSTRAINT ck_outbound_intents_state CHECK (state IN ('waiting', 'sending', 'done', 'failed')),
        CONSTRAINT ck_outbound_intents_kind
            CHECK (kind IN ('payout', 'refund', 'withdrawal', 'auto_payout', 'collection', 'sweep', 'repair',
            'top_up', 'loan', 'loan_return', 'stake', 'unstake', 'withdraw_stake', 'approval', 'swap', 'bridge')),
        CONSTRAINT ck_outbound_intents_asked_by CHECK (asked_by IN ('session', 'key', 'operator', 'platform')),
        CONSTRAINT ck_outbound_intents_action
            CHECK (action IN ('transfer', 'nothing', 'approve', 'call', 'lend', 'reclaim', 'stake', 'unstake',
            'withdraw')),
        CONSTRAINT ck_outbound_intents_cancel_whole
            CHECK (num_nulls(cancel_asked_at, cancel_asked_by) IN (0, 2)),
        CONSTRAINT ck_outbound_intents_given_up_cancelling
            CHECK (given_up_reason IS NULL OR cancel_asked_at IS NOT NULL),
        CONSTRAINT ck_outbound_intents_cancel_asked_by
            CHECK (cancel_asked_by IN ('session', 'key', 'operator', 'platform')),
        CONSTRAINT uq_outbound_intents_reference UNIQUE (reference),
        CONSTRAINT uq_outbound_intents_intent_id UNIQUE (intent_id),
        CONSTRAINT fk_outbound_intents_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id),
        CONSTRAINT fk_outbound_intents_source_address_pk_addresses
            FOREIGN KEY(source_address_pk) REFERENCES addresses (id),
        CONSTRAINT fk_outbound_intents_recipient_address_pk_addresses
            FOREIGN KEY(recipient_address_pk) REFERENCES addresses (id),
        CONSTRAINT fk_outbound_intents_sweep_pk_outbound_intents
            FOREIGN KEY(sweep_pk) REFERENCES outbound_intents (id)
    )
    """,
    """
    CREATE INDEX ix_outbound_intents_all_collections ON outbound_intents (mode, created_at, id)
        WHERE kind = 'collection'
    """,
    """
    CREATE INDEX ix_outbound_intents_cancelling ON outbound_intents (chain, scope, id)
        WHERE state = 'waiting' AND cancel_asked_at IS NOT NULL
    """,
    """
    CREATE INDEX ix_outbound_intents_collections ON outbound_intents (merchant_pk, mode, created_at, id)
        WHERE kind = 'collection'
    """,
    """
    CREATE INDEX ix_outbound_intents_coming ON outbound_intents (recipient_address_pk, chain)
        WHERE state IN ('waiting', 'sending')
    """,
    """
    CREATE INDEX ix_outbound_intents_failed ON outbound_intents (source_address_pk, chain)
        WHERE state = 'failed' AND kind = 'collection'
    """,
    "CREATE INDEX ix_outbound_intents_gas ON outbound_intents (recipient_address_pk, chain) WHERE kind = 'top_up'",
    """
    CREATE INDEX ix_outbound_intents_gave_way ON outbound_intents (chain, scope)
        WHERE state = 'waiting' AND due_at = gave_way_until AND cancel_asked_at IS NULL
    """,
    """
    CREATE INDEX ix_outbound_intents_loans ON outbound_intents (chain, scope, recipient_address_pk)
        WHERE kind IN ('loan', 'loan_return')
    """,
    """
    CREATE INDEX ix_outbound_intents_open ON outbound_intents (source_address_pk, chain)
        WHERE state IN ('waiting', 'sending')
    """,
    """
    CREATE INDEX ix_outbound_intents_queue ON outbound_intents (mode, created_at, id)
        WHERE state IN ('waiting', 'sending')
    """,
    """
    CREATE INDEX ix_outbound_intents_stakes ON outbound_intents (created_at, id)
        WHERE kind IN ('stake', 'unstake', 'withdraw_stake')
    """,
    "CREATE INDEX ix_outbound_intents_sweep ON outbound_intents (sweep_pk) WHERE sweep_pk IS NOT NULL",
    """
    CREATE INDEX ix_outbound_intents_swept ON outbound_intents (source_address_pk)
        WHERE state = 'sending' AND sweep_pk IS NOT NULL
    """,
    "CREATE INDEX ix_outbound_intents_waiting ON outbound_intents (chain, scope, due_at) WHERE state = 'waiting'",
    """
    CREATE TABLE outbound_senders (
        address_pk BIGINT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        next_sequence BIGINT DEFAULT '0' NOT NULL,
        mined_sequence BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_outbound_senders PRIMARY KEY (address_pk, chain, scope),
        CONSTRAINT fk_outbound_senders_address_pk_addresses FOREIGN KEY(address_pk) REFERENCES addresses (id)
    )
    """,
    """
    CREATE TABLE deposits (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        deposit_id TEXT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        tx_id TEXT NOT NULL,
        position TEXT NOT NULL,
        mode TEXT NOT NULL,
        merchant_pk BIGINT,
        address_pk BIGINT NOT NULL,
        payment_pk BIGINT,
        account_pk BIGINT,
        matches BOOLEAN NOT NULL,
        held_reason TEXT,
        token TEXT NOT NULL,
        contract TEXT,
        decimals BIGINT NOT NULL,
        units NUMERIC(78, 0) NOT NULL,
        available_units NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        returned_units NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        released_units NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        collection_pk BIGINT,
        resolution TEXT,
        resolved_at TIMESTAMP WITH TIME ZONE,
        sender TEXT,
        height BIGINT NOT NULL,
        block_hash TEXT NOT NULL,
        ordinal BIGINT NOT NULL,
        mined_at TIMESTAMP WITH TIME ZONE NOT NULL,
        required_confirmations BIGINT NOT NULL,
        status TEXT DEFAULT 'detected' NOT NULL,
        incarnation BIGINT DEFAULT '1' NOT NULL,
        fiat JSONB,
        fiat_reason TEXT,
        first_seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        detected_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        confirmed_at TIMESTAMP WITH TIME ZONE,
        orphaned_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_deposits PRIMARY KEY (id),
        CONSTRAINT uq_deposits_tx_id_chain_scope_position UNIQUE (tx_id, chain, scope, position),
        CONSTRAINT ck_deposits_units_positive CHECK (units > 0),
        CONSTRAINT ck_deposits_shares_not_negative CHECK (available_units >= 0 AND returned_units >= 0),
        CONSTRAINT ck_deposits_available_within CHECK (available_units + returned_units <= units),
        CONSTRAINT ck_deposits_released_within CHECK (released_units BETWEEN 0 AND available_units),
        CONSTRAINT ck_deposits_only_confirmed_available
            CHECK (status = 'confirmed' OR available_units + returned_units = 0),
        CONSTRAINT ck_deposits_resolution CHECK (resolution IN ('accepted', 'released', 'refunded')),
        CONSTRAINT ck_deposits_status CHECK (status IN ('detected', 'confirmed', 'orphaned')),
        CONSTRAINT ck_deposits_held_reason CHECK (held_reason IN ('wrong_chain', 'below_minimum')),
        CONSTRAINT ck_deposits_fiat_reason CHECK (fiat_reason IN ('pending', 'no_price')),
        CONSTRAINT ck_deposits_held_for_a_reason CHECK (held_reason IS NULL OR NOT matches),
        CONSTRAINT uq_deposits_deposit_id UNIQUE (deposit_id),
        CONSTRAINT fk_deposits_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id),
        CONSTRAINT fk_deposits_address_pk_addresses FOREIGN KEY(address_pk) REFERENCES addresses (id),
        CONSTRAINT fk_deposits_payment_pk_payments FOREIGN KEY(payment_pk) REFERENCES payments (id),
        CONSTRAINT fk_deposits_account_pk_accounts FOREIGN KEY(account_pk) REFERENCES accounts (id),
        CONSTRAINT fk_deposits_collection_pk_outbound_intents
            FOREIGN KEY(collection_pk) REFERENCES outbound_intents (id)
    )
    """,
    """
    CREATE INDEX ix_deposits_account_pk ON deposits (account_pk, first_seen_at, id)
        WHERE account_pk IS NOT NULL
    """,
    "CREATE INDEX ix_deposits_first_seen_at ON deposits (first_seen_at, id)",
    "CREATE INDEX ix_deposits_merchant_pk ON deposits (merchant_pk, first_seen_at, id)",
    "CREATE INDEX ix_deposits_collection_pk ON deposits (collection_pk)",
    "CREATE INDEX ix_deposits_height ON deposits (chain, scope, height)",
    """
    CREATE INDEX ix_deposits_held ON deposits (merchant_pk, mode, first_seen_at, id)
        WHERE status = 'confirmed' AND available_units + returned_units < units
    """,
    """
    CREATE INDEX ix_deposits_all_held ON deposits (first_seen_at, id)
        WHERE status = 'confirmed' AND available_units + returned_units < units
    """,
    "CREATE INDEX ix_deposits_payment_pk ON deposits (payment_pk)",
    "CREATE INDEX ix_deposits_without_fiat ON deposits (id) WHERE fiat_reason = 'pending'",
    """
    CREATE INDEX ix_deposits_uncollected ON deposits (chain, scope, merchant_pk)
        WHERE status = 'confirmed' AND collection_pk IS NULL
    """,
    "CREATE INDEX ix_deposits_unconfirmed ON deposits (chain, scope, height) WHERE status = 'detected'",
    """
    CREATE TABLE outbound_slots (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        intent_pk BIGINT NOT NULL,
        address_pk BIGINT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        sequence BIGINT,
        state TEXT DEFAULT 'open' NOT NULL,
        missing_since BIGINT,
        raise_asked_at TIMESTAMP WITH TIME ZONE,
        raise_fee_max NUMERIC(78, 0),
        raise_refusal TEXT,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_outbound_slots PRIMARY KEY (id),
        CONSTRAINT uq_outbound_slots_address_pk_chain_scope_sequence UNIQUE (address_pk, chain, scope, sequence),
        CONSTRAINT ck_outbound_slots_state CHECK (state IN ('open', 'done', 'reverted', 'cancelled', 'dead')),
        CONSTRAINT fk_outbound_slots_intent_pk_outbound_intents
            FOREIGN KEY(intent_pk) REFERENCES outbound_intents (id),
        CONSTRAINT fk_outbound_slots_address_pk_addresses FOREIGN KEY(address_pk) REFERENCES addresses (id)
    )
    """,
    "CREATE INDEX ix_outbound_slots_intent_pk ON outbound_slots (intent_pk)",
    """
    CREATE INDEX ix_outbound_slots_lost ON outbound_slots (chain, scope, created_at)
        WHERE state = 'dead' AND missing_since IS NOT NULL
    """,
    "CREATE INDEX ix_outbound_slots_open ON outbound_slots (chain, scope, id) WHERE state = 'open'",
    """
    CREATE UNIQUE INDEX uq_outbound_slots_one_per_intent ON outbound_slots (intent_pk)
        WHERE state IN ('open', 'done', 'reverted')
    """,
    """
    CREATE TABLE outbound_txs (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        slot_pk BIGINT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        role TEXT DEFAULT 'main' NOT NULL,
        tx_id TEXT NOT NULL,
        raw BYTEA NOT NULL,
        fee_limit NUMERIC(78, 0) NOT NULL,
        fee_price NUMERIC(78, 0) NOT NULL,
        fee_tip NUMERIC(78, 0),
        fee_extra NUMERIC(78, 0) NOT NULL,
        fee_covered NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        valid_until BIGINT,
        state TEXT DEFAULT 'stored' NOT NULL,
        succeeded BOOLEAN,
        fee_paid NUMERIC(78, 0),
        height BIGINT,
        block_hash TEXT,
        read_height BIGINT,
        read_hash TEXT,
        incarnation BIGINT DEFAULT '0' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        sent_at TIMESTAMP WITH TIME ZONE,
        tried_at TIMESTAMP WITH TIME ZONE,
        tries BIGINT DEFAULT '0' NOT NULL,
        CONSTRAINT pk_outbound_txs PRIMARY KEY (id),
        CONSTRAINT uq_outbound_txs_tx_id_chain_scope UNIQUE (tx_id, chain, scope),
        CONSTRAINT ck_outbound_txs_role CHECK (role IN ('main', 'cancel')),
        CONSTRAINT ck_outbound_txs_state CHECK (state IN ('stored', 'sent', 'mined', 'final', 'gone')),
        CONSTRAINT fk_outbound_txs_slot_pk_outbound_slots FOREIGN KEY(slot_pk) REFERENCES outbound_slots (id)
    )
    """,
    "CREATE INDEX ix_outbound_txs_created_at ON outbound_txs (created_at) WHERE state = 'final'",
    "CREATE INDEX ix_outbound_txs_height ON outbound_txs (chain, scope, height) WHERE state = 'final'",
    """
    CREATE INDEX ix_outbound_txs_open ON outbound_txs (chain, scope, id)
        WHERE state IN ('stored', 'sent', 'mined')
    """,
    "CREATE INDEX ix_outbound_txs_slot_pk ON outbound_txs (slot_pk)",
    """
    CREATE TABLE uncollected_funds (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        uncollected_id TEXT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        address_pk BIGINT NOT NULL,
        merchant_pk BIGINT NOT NULL,
        token TEXT NOT NULL,
        contract TEXT,
        decimals BIGINT NOT NULL,
        units NUMERIC(78, 0) NOT NULL,
        reason TEXT NOT NULL,
        detail TEXT,
        value_usd NUMERIC,
        fee_usd NUMERIC,
        until TIMESTAMP WITH TIME ZONE,
        judged_at TIMESTAMP WITH TIME ZONE NOT NULL,
        asked_at TIMESTAMP WITH TIME ZONE,
        asked_fee_share_bps BIGINT,
        hindrance TEXT,
        hindrance_detail TEXT,
        hindered_at TIMESTAMP WITH TIME ZONE,
        refusal TEXT,
        refused_at TIMESTAMP WITH TIME ZONE,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        CONSTRAINT pk_uncollected_funds PRIMARY KEY (id),
        CONSTRAINT uq_uncollected_funds_uncollected_id UNIQUE (uncollected_id),
        CONSTRAINT ck_uncollected_funds_units_positive CHECK (units > 0),
        CONSTRAINT ck_uncollected_funds_asked_whole CHECK (asked_fee_share_bps IS NULL OR asked_at IS NOT NULL),
        CONSTRAINT ck_uncollected_funds_asked_below_all CHECK (asked_fee_share_bps BETWEEN 0 AND 9999),
        CONSTRAINT ck_uncollected_funds_hindrance_whole CHECK (
            num_nulls(hindrance, hindered_at) IN (0, 2) AND (hindrance IS NULL OR asked_at IS NOT NULL)
            AND (hindrance_detail IS NULL OR hindrance IS NOT NULL)
        ),
        CONSTRAINT ck_uncollected_funds_refusal_whole CHECK (num_nulls(refusal, refused_at) IN (0, 2)),
        CONSTRAINT ck_uncollected_funds_reason CHECK (reason IN (
            'token_not_sendable', 'failed_lately', 'collecting_off', 'fees_above_ceiling', 'refused', 'price_missing',
            'fee_above_value', 'below_minimum', 'fee_above_share'
        )),
        CONSTRAINT ck_uncollected_funds_refusal CHECK (refusal IN (
            'token_not_sendable', 'failed_lately', 'collecting_off', 'fees_above_ceiling', 'refused', 'price_missing',
            'fee_above_value', 'below_minimum', 'fee_above_share'
        )),
        CONSTRAINT ck_uncollected_funds_hindrance CHECK (
            hindrance IN ('no_gas_station', 'no_node_answers', 'cost_unknown')
        ),
        CONSTRAINT fk_uncollected_funds_address_pk_addresses FOREIGN KEY(address_pk) REFERENCES addresses (id),
        CONSTRAINT fk_uncollected_funds_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id)
    )
    """,
    """
    CREATE UNIQUE INDEX uq_uncollected_funds_one_each
        ON uncollected_funds (chain, scope, address_pk, coalesce(contract, ''))
    """,
    "CREATE INDEX ix_uncollected_funds_created_at ON uncollected_funds (created_at, id)",
    "CREATE INDEX ix_uncollected_funds_merchant_pk ON uncollected_funds (merchant_pk, created_at, id)",
    "CREATE INDEX ix_uncollected_funds_reason ON uncollected_funds (reason, created_at, id)",
    """
    CREATE INDEX ix_uncollected_funds_asked ON uncollected_funds (chain, scope, asked_at)
        WHERE asked_at IS NOT NULL
    """,
    """
    CREATE TABLE payouts (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        payout_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        project_pk BIGINT NOT NULL,
        merchant_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        chain TEXT NOT NULL,
        scope BIGINT NOT NULL,
        token TEXT NOT NULL,
        contract TEXT,
        decimals BIGINT NOT NULL,
        to_address TEXT NOT NULL,
        to_tag TEXT,
        units NUMERIC(78, 0) NOT NULL,
        held_units NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        asked_by TEXT DEFAULT 'platform' NOT NULL,
        status TEXT DEFAULT 'requested' NOT NULL,
        batch_pk BIGINT,
        payment_pk BIGINT,
        deposit_pk BIGINT,
        intent_pk BIGINT,
        reason TEXT,
        error TEXT,
        waits_for TEXT,
        tx_id TEXT,
        sandbox_fails BOOLEAN DEFAULT 'false' NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
        broadcast_at TIMESTAMP WITH TIME ZONE,
        finished_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_payouts PRIMARY KEY (id),
        CONSTRAINT ck_payouts_units_positive CHECK (units > 0),
        CONSTRAINT ck_payouts_held_within CHECK (held_units BETWEEN 0 AND units),
        CONSTRAINT ck_payouts_kind CHECK (kind IN ('payout', 'refund', 'withdrawal', 'auto_payout')),
        CONSTRAINT ck_payouts_status
            CHECK (status IN ('requested', 'processing', 'broadcast', 'completed', 'failed', 'cancelling',
            'cancelled')),
        CONSTRAINT ck_payouts_mode CHECK (mode IN ('live', 'sandbox')),
        CONSTRAINT ck_payouts_asked_by CHECK (asked_by IN ('session', 'key', 'operator', 'platform')),
        CONSTRAINT uq_payouts_payout_id UNIQUE (payout_id),
        CONSTRAINT fk_payouts_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id),
        CONSTRAINT fk_payouts_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id),
        CONSTRAINT fk_payouts_batch_pk_payout_batches FOREIGN KEY(batch_pk) REFERENCES payout_batches (id),
        CONSTRAINT fk_payouts_payment_pk_payments FOREIGN KEY(payment_pk) REFERENCES payments (id),
        CONSTRAINT fk_payouts_deposit_pk_deposits FOREIGN KEY(deposit_pk) REFERENCES deposits (id),
        CONSTRAINT uq_payouts_intent_pk UNIQUE (intent_pk),
        CONSTRAINT fk_payouts_intent_pk_outbound_intents FOREIGN KEY(intent_pk) REFERENCES outbound_intents (id)
    )
    """,
    "CREATE INDEX ix_payouts_batch_pk ON payouts (batch_pk)",
    "CREATE INDEX ix_payouts_day ON payouts (merchant_pk, mode, chain, created_at)",
    "CREATE INDEX ix_payouts_deposit_pk ON payouts (deposit_pk)",
    "CREATE INDEX ix_payouts_failed ON payouts (merchant_pk, mode, finished_at) WHERE status = 'failed'",
    """
    CREATE INDEX ix_payouts_open ON payouts (merchant_pk, mode, chain)
        WHERE status IN ('requested', 'processing', 'broadcast', 'cancelling')
    """,
    "CREATE INDEX ix_payouts_payment_pk ON payouts (payment_pk)",
    """
    CREATE INDEX ix_payouts_payouts ON payouts (project_pk, created_at, id)
        WHERE kind IN ('payout', 'auto_payout')
    """,
    """
    CREATE INDEX ix_payouts_all_payouts ON payouts (created_at, id)
        WHERE kind IN ('payout', 'auto_payout')
    """,
    "CREATE INDEX ix_payouts_all_refunds ON payouts (created_at, id) WHERE kind = 'refund'",
    "CREATE INDEX ix_payouts_all_withdrawals ON payouts (created_at, id) WHERE kind = 'withdrawal'",
    """
    CREATE INDEX ix_payouts_merchants_payouts ON payouts (merchant_pk, created_at, id)
        WHERE kind IN ('payout', 'auto_payout')
    """,
    "CREATE INDEX ix_payouts_merchants_refunds ON payouts (merchant_pk, created_at, id) WHERE kind = 'refund'",
    "CREATE INDEX ix_payouts_to_address ON payouts (to_address, created_at, id)",
    "CREATE INDEX ix_payouts_project_to_address ON payouts (project_pk, to_address, created_at, id)",
    "CREATE INDEX ix_payouts_refunds ON payouts (project_pk, created_at, id) WHERE kind = 'refund'",
    "CREATE INDEX ix_payouts_withdrawals ON payouts (merchant_pk, created_at, id) WHERE kind = 'withdrawal'",
    """
    CREATE TABLE exchanges (
        id BIGINT GENERATED ALWAYS AS IDENTITY,
        txn_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        made_for TEXT NOT NULL,
        project_pk BIGINT NOT NULL,
        merchant_pk BIGINT NOT NULL,
        mode TEXT NOT NULL,
        scope BIGINT NOT NULL,
        provider TEXT NOT NULL,
        source_chain TEXT NOT NULL,
        source_token TEXT NOT NULL,
        source_contract TEXT,
        source_decimals BIGINT NOT NULL,
        source_pk BIGINT NOT NULL,
        units NUMERIC(78, 0) NOT NULL,
        fee_units NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        dest_chain TEXT NOT NULL,
        dest_token TEXT NOT NULL,
        dest_contract TEXT,
        dest_decimals BIGINT NOT NULL,
        recipient TEXT NOT NULL,
        recipient_pk BIGINT,
        payout_pk BIGINT,
        quoted_units NUMERIC(78, 0) NOT NULL,
        units_min NUMERIC(78, 0) NOT NULL,
        slippage_bps BIGINT NOT NULL,
        fee_bps BIGINT DEFAULT '0' NOT NULL,
        asked_by TEXT DEFAULT 'platform' NOT NULL,
        status TEXT DEFAULT 'pending' NOT NULL,
        step TEXT DEFAULT 'queued' NOT NULL,
        waits_for TEXT,
        error TEXT,
        intent_pk BIGINT,
        approvals BIGINT DEFAULT '0' NOT NULL,
        spender TEXT,
        has_turn BOOLEAN DEFAULT 'false' NOT NULL,
        attempts BIGINT DEFAULT '0' NOT NULL,
        tx_id TEXT,
        deposit JSONB,
        fill_from BIGINT,
        searched_to BIGINT,
        is_closed BOOLEAN DEFAULT 'false' NOT NULL,
        closings BIGINT DEFAULT '0' NOT NULL,
        dest_tx_id TEXT,
        output_units NUMERIC(78, 0),
        unseen_units NUMERIC(78, 0) DEFAULT '0' NOT NULL,
        unseen_height BIGINT,
        unseen_hash TEXT,
        refunds JSONB DEFAULT '{}' NOT NULL,
        sandbox_fails TEXT,
        sandbox_refund_tx_id TEXT,
        due_at TIMESTAMP WITH TIME ZONE,
        give_up_at TIMESTAMP WITH TIME ZONE NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
        broadcast_at TIMESTAMP WITH TIME ZONE,
        finished_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT pk_exchanges PRIMARY KEY (id),
        CONSTRAINT ck_exchanges_units_positive
            CHECK (units > 0 AND units_min > 0 AND fee_units BETWEEN 0 AND units - 1),
        CONSTRAINT ck_exchanges_kind_fits CHECK ((kind = 'swap') = (source_chain = dest_chain)),
        CONSTRAINT ck_exchanges_kind CHECK (kind IN ('swap', 'bridge')),
        CONSTRAINT ck_exchanges_made_for CHECK (made_for IN ('manual', 'auto', 'payout')),
        CONSTRAINT ck_exchanges_status CHECK (status IN ('pending', 'succeeded', 'failed')),
        CONSTRAINT ck_exchanges_step
            CHECK (step IN ('queued', 'sent', 'arriving', 'filling', 'refunding', 'clearing', 'ended')),
        CONSTRAINT ck_exchanges_mode CHECK (mode IN ('live', 'sandbox')),
        CONSTRAINT ck_exchanges_asked_by CHECK (asked_by IN ('session', 'key', 'operator', 'platform')),
        CONSTRAINT ck_exchanges_sandbox_fails CHECK (sandbox_fails IN ('revert', 'expire')),
        CONSTRAINT ck_exchanges_looked_at_until_ended CHECK ((due_at IS NULL) = (step = 'ended')),
        CONSTRAINT uq_exchanges_txn_id UNIQUE (txn_id),
        CONSTRAINT fk_exchanges_project_pk_projects FOREIGN KEY(project_pk) REFERENCES projects (id),
        CONSTRAINT fk_exchanges_merchant_pk_merchants FOREIGN KEY(merchant_pk) REFERENCES merchants (id),
        CONSTRAINT fk_exchanges_source_pk_addresses FOREIGN KEY(source_pk) REFERENCES addresses (id),
        CONSTRAINT fk_exchanges_recipient_pk_addresses FOREIGN KEY(recipient_pk) REFERENCES addresses (id),
        CONSTRAINT fk_exchanges_payout_pk_payouts FOREIGN KEY(payout_pk) REFERENCES payouts (id),
        CONSTRAINT uq_exchanges_intent_pk UNIQUE (intent_pk),
        CONSTRAINT fk_exchanges_intent_pk_outbound_intents
            FOREIGN KEY(intent_pk) REFERENCES outbound_intents (id)
    )
    """,
    """
    CREATE INDEX ix_exchanges_unseen ON exchanges (dest_chain, scope, unseen_height)
        WHERE unseen_height IS NOT NULL
    """,
    "CREATE INDEX ix_exchanges_awaited ON exchanges (dest_chain, scope, recipient_pk) WHERE step = 'filling'",
    """
    CREATE INDEX ix_exchanges_day ON exchanges (merchant_pk, mode, source_chain, created_at)
        WHERE made_for = 'payout'
    """,
    "CREATE INDEX ix_exchanges_due ON exchanges (due_at) WHERE due_at IS NOT NULL",
    """
    CREATE INDEX ix_exchanges_auto_failed ON exchanges (merchant_pk, mode, source_chain, source_token, finished_at)
        WHERE made_for = 'auto' AND status = 'failed'
    """,
    """
    CREATE INDEX ix_exchanges_open ON exchanges (merchant_pk, mode, source_chain, source_token)
        WHERE status = 'pending'
    """,
    "CREATE INDEX ix_exchanges_payout_pk ON exchanges (payout_pk)",
    "CREATE INDEX ix_exchanges_created_at ON exchanges (created_at, id)",
    "CREATE INDEX ix_exchanges_project ON exchanges (project_pk, created_at, id)",
    """
    CREATE UNIQUE INDEX uq_exchanges_turn ON exchanges (source_pk, source_chain, scope, source_contract, spender)
        WHERE has_turn
    """,
    """
    CREATE TABLE exchange_parts (
        exchange_pk BIGINT NOT NULL,
        deposit_pk BIGINT NOT NULL,
        incarnation BIGINT NOT NULL,
        role TEXT NOT NULL,
        units NUMERIC(78, 0) NOT NULL,
        is_gone BOOLEAN DEFAULT 'false' NOT NULL,
        CONSTRAINT pk_exchange_parts PRIMARY KEY (exchange_pk, deposit_pk),
        CONSTRAINT ck_exchange_parts_units_positive CHECK (units > 0),
        CONSTRAINT ck_exchange_parts_role CHECK (role IN ('output', 'returned', 'refund')),
        CONSTRAINT fk_exchange_parts_exchange_pk_exchanges FOREIGN KEY(exchange_pk) REFERENCES exchanges (id),
        CONSTRAINT fk_exchange_parts_deposit_pk_deposits FOREIGN KEY(deposit_pk) REFERENCES deposits (id)
    )
    """,
    "CREATE INDEX ix_exchange_parts_deposit_pk ON exchange_parts (deposit_pk)",
    "CREATE INDEX ix_exchange_parts_gone ON exchange_parts (exchange_pk) WHERE is_gone",
    """
    CREATE TABLE refund_parts (
        payout_pk BIGINT NOT NULL,
        deposit_pk BIGINT NOT NULL,
        incarnation BIGINT NOT NULL,
        units NUMERIC(78, 0) NOT NULL,
        CONSTRAINT pk_refund_parts PRIMARY KEY (payout_pk, deposit_pk),
        CONSTRAINT ck_refund_parts_units_positive CHECK (units > 0),
        CONSTRAINT fk_refund_parts_payout_pk_payouts FOREIGN KEY(payout_pk) REFERENCES payouts (id),
        CONSTRAINT fk_refund_parts_deposit_pk_deposits FOREIGN KEY(deposit_pk) REFERENCES deposits (id)
    )
    """,
    "CREATE INDEX ix_refund_parts_deposit_pk ON refund_parts (deposit_pk)",
)

# The ledger's invariants: balances equal the movements, and what is posted stays posted. So does the audit log.
FUNCTIONS = (
    """
    CREATE OR REPLACE FUNCTION ledger_apply_movements() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        -- Lock in id order before anything changes, so that concurrent postings wait instead of deadlocking.
        PERFORM 1 FROM ledger_accounts
            WHERE id IN (SELECT debit_account_pk FROM posted UNION SELECT credit_account_pk FROM posted)
            ORDER BY id FOR NO KEY UPDATE;
        UPDATE ledger_accounts AS account SET balance = account.balance + change.units
        FROM (
            SELECT id, sum(units) AS units FROM (
                SELECT credit_account_pk AS id, units FROM posted
                UNION ALL
                SELECT debit_account_pk, -units FROM posted
            ) AS sides GROUP BY id
        ) AS change
        WHERE account.id = change.id AND change.units <> 0;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION ledger_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the ledger is append-only: % on % refused', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION ledger_guard_account() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'INSERT' THEN
            IF NEW.balance <> 0 THEN
                RAISE EXCEPTION 'a ledger account starts empty' USING ERRCODE = 'integrity_constraint_violation';
            END IF;
            RETURN NEW;
        END IF;
        -- Depth 1 is a statement from outside; only the movements' own trigger changes a balance.
        IF pg_trigger_depth() < 2 OR (to_jsonb(NEW) - 'balance') <> (to_jsonb(OLD) - 'balance') THEN
            RAISE EXCEPTION 'ledger accounts change only by movements' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the audit log is append-only: % on % refused', TG_OP, TG_TABLE_NAME
            USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    # What pages may show is noted in `changes`, in the transaction that changes it: see the class Change.
    """
    CREATE OR REPLACE FUNCTION note_payment() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, merchant_pk, project_pk, mode, status)
            VALUES ('payment', NEW.payment_id, NEW.merchant_pk, NEW.project_pk, NEW.mode, NEW.status);
        -- What is held for it waits for a decision once the order waits for its money no more.
        IF TG_OP = 'UPDATE' AND (OLD.status IN ('pending', 'detected', 'confirming'))
            <> (NEW.status IN ('pending', 'detected', 'confirming'))
        THEN
            INSERT INTO changes (kind, object_id, merchant_pk, project_pk, mode, status)
                SELECT 'resolution', deposit_id, NEW.merchant_pk, NEW.project_pk, NEW.mode, resolution
                FROM deposits WHERE payment_pk = NEW.id AND status = 'confirmed'
                AND available_units + returned_units < units LIMIT 20;
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_deposit() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        project bigint;
        order_status text;
    BEGIN
        IF NEW.payment_pk IS NOT NULL THEN
            SELECT project_pk, status INTO project, order_status FROM payments WHERE id = NEW.payment_pk;
        ELSIF NEW.account_pk IS NOT NULL THEN
            SELECT project_pk INTO project FROM accounts WHERE id = NEW.account_pk;
        ELSIF NEW.scope > 0 THEN
            project := NEW.scope;
        END IF;
        INSERT INTO changes (kind, object_id, merchant_pk, project_pk, mode, status)
            VALUES (CASE WHEN NEW.account_pk IS NULL THEN 'deposit' ELSE 'account_deposit' END,
                NEW.deposit_id, NEW.merchant_pk, project, NEW.mode, NEW.status);
        IF NEW.merchant_pk IS NOT NULL AND NEW.status <> 'detected' AND (
            NEW.resolution IS NOT NULL OR NEW.held_reason IS NOT NULL OR NOT NEW.matches
            OR coalesce(order_status NOT IN ('pending', 'detected', 'confirming'), NEW.account_pk IS NULL)
        ) THEN
            INSERT INTO changes (kind, object_id, merchant_pk, project_pk, mode, status)
                VALUES ('resolution', NEW.deposit_id, NEW.merchant_pk, project, NEW.mode, NEW.resolution);
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_payout() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, merchant_pk, project_pk, mode, status)
            VALUES (CASE WHEN NEW.kind IN ('refund', 'withdrawal') THEN NEW.kind ELSE 'payout' END,
                NEW.payout_id, NEW.merchant_pk, NEW.project_pk, NEW.mode, NEW.status);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_exchange() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, merchant_pk, project_pk, mode, status)
            VALUES ('exchange', NEW.txn_id, NEW.merchant_pk, NEW.project_pk, NEW.mode, NEW.status);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_tracker() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        tracker bigint;
    BEGIN
        IF TG_TABLE_NAME = 'trackers' THEN
            tracker := NEW.id;
        ELSE
            tracker := NEW.tracker_pk;
        END IF;
        INSERT INTO changes (kind, object_id, merchant_pk, project_pk, mode, status)
            SELECT 'tracker', t.webhook_id, p.merchant_pk, t.project_pk, t.mode,
                CASE WHEN t.deleted_at IS NOT NULL THEN 'deleted' WHEN t.is_active THEN 'active' ELSE 'inactive' END
            FROM trackers t JOIN projects p ON p.id = t.project_pk
            WHERE t.id = tracker;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_delivery() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, merchant_pk, project_pk, mode, status)
            SELECT 'delivery', NEW.delivery_id, p.merchant_pk, p.id, p.mode,
                CASE WHEN NEW.status = 'pending' AND NEW.attempts > 0 THEN 'failing' ELSE NEW.status END
            FROM projects p WHERE p.id = NEW.project_pk;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_intent() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        project bigint;
    BEGIN
        -- What it is for names it a statement later, and is noted itself when it is made.
        IF TG_OP = 'UPDATE' THEN
            project := coalesce((SELECT project_pk FROM payouts WHERE intent_pk = NEW.id),
                (SELECT project_pk FROM exchanges WHERE intent_pk = NEW.id));
        END IF;
        INSERT INTO changes (kind, object_id, merchant_pk, project_pk, mode, status, intent_kind)
            VALUES ('outbound', NEW.intent_id, NEW.merchant_pk, project, NEW.mode, NEW.state, NEW.kind);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_slot() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, merchant_pk, project_pk, mode, status, intent_kind)
            SELECT 'outbound', i.intent_id, i.merchant_pk, coalesce(p.project_pk, e.project_pk), i.mode, i.state, i.kind
            FROM outbound_intents i LEFT JOIN payouts p ON p.intent_pk = i.id
                LEFT JOIN exchanges e ON e.intent_pk = i.id
            WHERE i.id = NEW.intent_pk;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_job() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, merchant_pk, mode, status)
            VALUES ('job', NEW.job_id, NEW.merchant_pk, NEW.mode, NEW.state);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_cron() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, status) VALUES ('cron', NEW.name, 'failed');
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_chain() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id) VALUES ('chain', NEW.chain);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_chain_state() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        failed boolean := false;
        fails boolean := NEW.problem IS NOT NULL OR NEW.error IS NOT NULL;
    BEGIN
        IF TG_OP = 'UPDATE' THEN
            failed := OLD.problem IS NOT NULL OR OLD.error IS NOT NULL;
        END IF;
        INSERT INTO changes (kind, object_id, status) VALUES ('chain', NEW.chain,
            CASE WHEN fails AND NOT failed THEN 'failing' WHEN failed AND NOT fails THEN 'recovered' END);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_token() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, status) VALUES ('token', NEW.token_id, NEW.state);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_pause() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            INSERT INTO changes (kind, object_id, status) VALUES ('chain', OLD.chain, 'resumed');
        ELSE
            INSERT INTO changes (kind, object_id, status) VALUES ('chain', NEW.chain, 'paused');
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_gas_station() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, mode, status)
            VALUES ('gas_station', NEW.chain, NEW.mode, CASE WHEN NEW.is_low OR NEW.is_stake_low THEN 'low' END);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_merchant() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, merchant_pk) VALUES ('merchant', NEW.merchant_id, NEW.id);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_signer() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, status) VALUES ('signer', '',
            CASE WHEN jsonb_array_length(NEW.report -> 'questions') > 0 THEN 'asking' END);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_signer_answer() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, status)
            VALUES ('signer', NEW.answer_id, coalesce(NEW.outcome, 'waiting'));
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_price_source() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, status) VALUES ('price_source', NEW.source, NEW.verdict);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_source_set_aside() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            INSERT INTO changes (kind, object_id, status) VALUES ('price_source', OLD.source, 'taken_back');
        ELSE
            INSERT INTO changes (kind, object_id, status) VALUES ('price_source', NEW.source, 'set_aside');
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_price() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            INSERT INTO changes (kind, object_id, status) VALUES ('price', OLD.symbol, 'found');
        ELSE
            INSERT INTO changes (kind, object_id, status) VALUES ('price', NEW.symbol, 'missing');
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_uncollected() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        one uncollected_funds;
    BEGIN
        IF TG_OP = 'DELETE' THEN
            one := OLD;
        ELSE
            one := NEW;
        END IF;
        INSERT INTO changes (kind, object_id, merchant_pk, mode, status)
            VALUES ('uncollected', one.uncollected_id, one.merchant_pk,
                CASE WHEN one.scope = 0 THEN 'live' ELSE 'sandbox' END,
                CASE WHEN TG_OP = 'DELETE' THEN 'gone' WHEN one.asked_at IS NOT NULL THEN 'asked' END);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_settings() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id) VALUES ('setting', '');
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_plan() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, status)
            VALUES ('plan', NEW.plan_id, CASE WHEN NEW.archived_at IS NOT NULL THEN 'archived' END);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_operator() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO changes (kind, object_id, status)
            VALUES ('operator', NEW.operator_id, CASE WHEN NEW.disabled_at IS NOT NULL THEN 'disabled' END);
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_member() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            INSERT INTO changes (kind, object_id, merchant_pk, status)
                VALUES ('member', OLD.member_id, OLD.merchant_pk, 'gone');
        ELSE
            INSERT INTO changes (kind, object_id, merchant_pk, status)
                VALUES ('member', NEW.member_id, NEW.merchant_pk, NEW.role);
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_invitation() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            INSERT INTO changes (kind, object_id, merchant_pk, status)
                VALUES ('invitation', OLD.invitation_id, OLD.merchant_pk, 'gone');
        ELSE
            INSERT INTO changes (kind, object_id, merchant_pk, status)
                VALUES ('invitation', NEW.invitation_id, NEW.merchant_pk, 'open');
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_member_two_factor() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        whose bigint;
    BEGIN
        IF TG_OP = 'DELETE' THEN
            whose := OLD.member_pk;
        ELSE
            whose := NEW.member_pk;
        END IF;
        INSERT INTO changes (kind, object_id, merchant_pk, status)
            SELECT 'member', member_id, merchant_pk, role FROM members WHERE id = whose;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE FUNCTION note_operator_two_factor() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        whose bigint;
    BEGIN
        IF TG_OP = 'DELETE' THEN
            whose := OLD.operator_pk;
        ELSE
            whose := NEW.operator_pk;
        END IF;
        INSERT INTO changes (kind, object_id, status)
            SELECT 'operator', operator_id, CASE WHEN disabled_at IS NOT NULL THEN 'disabled' END
            FROM operators WHERE id = whose;
        RETURN NULL;
    END $$
    """,
)

TRIGGERS = (
    """
    CREATE TRIGGER ledger_movements_apply AFTER INSERT ON ledger_movements
        REFERENCING NEW TABLE AS posted FOR EACH STATEMENT EXECUTE FUNCTION ledger_apply_movements()
    """,
    """
    CREATE TRIGGER ledger_movements_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_movements
        FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change()
    """,
    """
    CREATE TRIGGER ledger_transactions_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_transactions
        FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change()
    """,
    """
    CREATE TRIGGER ledger_accounts_no_delete BEFORE DELETE OR TRUNCATE ON ledger_accounts
        FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change()
    """,
    """
    CREATE TRIGGER ledger_accounts_guard BEFORE INSERT OR UPDATE ON ledger_accounts
        FOR EACH ROW EXECUTE FUNCTION ledger_guard_account()
    """,
    """
    CREATE TRIGGER audit_entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
        FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change()
    """,
    """
    CREATE TRIGGER audit_seals_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_seals
        FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse_change()
    """,
    """
    CREATE TRIGGER payments_note_new AFTER INSERT ON payments
        FOR EACH ROW EXECUTE FUNCTION note_payment()
    """,
    """
    CREATE TRIGGER payments_note AFTER UPDATE ON payments
        FOR EACH ROW WHEN ((OLD.status, OLD.received_units, OLD.refunded_units, OLD.expires_at)
            IS DISTINCT FROM (NEW.status, NEW.received_units, NEW.refunded_units, NEW.expires_at))
        EXECUTE FUNCTION note_payment()
    """,
    """
    CREATE TRIGGER deposits_note_new AFTER INSERT ON deposits
        FOR EACH ROW EXECUTE FUNCTION note_deposit()
    """,
    """
    CREATE TRIGGER deposits_note AFTER UPDATE ON deposits
        FOR EACH ROW WHEN ((OLD.status, OLD.resolution, OLD.available_units, OLD.returned_units, OLD.incarnation)
            IS DISTINCT FROM (NEW.status, NEW.resolution, NEW.available_units, NEW.returned_units, NEW.incarnation))
        EXECUTE FUNCTION note_deposit()
    """,
    """
    CREATE TRIGGER payouts_note_new AFTER INSERT ON payouts
        FOR EACH ROW EXECUTE FUNCTION note_payout()
    """,
    """
    CREATE TRIGGER payouts_note AFTER UPDATE ON payouts
        FOR EACH ROW WHEN ((OLD.status, OLD.waits_for, OLD.tx_id, OLD.error)
            IS DISTINCT FROM (NEW.status, NEW.waits_for, NEW.tx_id, NEW.error))
        EXECUTE FUNCTION note_payout()
    """,
    """
    CREATE TRIGGER exchanges_note_new AFTER INSERT ON exchanges
        FOR EACH ROW EXECUTE FUNCTION note_exchange()
    """,
    """
    CREATE TRIGGER exchanges_note AFTER UPDATE ON exchanges
        FOR EACH ROW WHEN ((OLD.status, OLD.step, OLD.waits_for, OLD.is_closed)
            IS DISTINCT FROM (NEW.status, NEW.step, NEW.waits_for, NEW.is_closed))
        EXECUTE FUNCTION note_exchange()
    """,
    """
    CREATE TRIGGER trackers_note_new AFTER INSERT ON trackers
        FOR EACH ROW EXECUTE FUNCTION note_tracker()
    """,
    """
    CREATE TRIGGER trackers_note AFTER UPDATE ON trackers
        FOR EACH ROW WHEN ((OLD.is_active, OLD.deleted_at, OLD.updated_at)
            IS DISTINCT FROM (NEW.is_active, NEW.deleted_at, NEW.updated_at))
        EXECUTE FUNCTION note_tracker()
    """,
    """
    CREATE TRIGGER tracker_histories_note AFTER UPDATE ON tracker_histories
        FOR EACH ROW WHEN ((OLD.state, OLD.read_block, OLD.again, OLD.error)
            IS DISTINCT FROM (NEW.state, NEW.read_block, NEW.again, NEW.error))
        EXECUTE FUNCTION note_tracker()
    """,
    """
    CREATE TRIGGER webhook_deliveries_note AFTER UPDATE ON webhook_deliveries
        FOR EACH ROW WHEN (OLD.status <> NEW.status AND (NEW.status IN ('dropped', 'cancelled')
            OR OLD.status = 'dropped' OR OLD.attempts > 0) OR NEW.status = 'pending' AND OLD.attempts < NEW.attempts)
        EXECUTE FUNCTION note_delivery()
    """,
    """
    CREATE TRIGGER outbound_intents_note_new AFTER INSERT ON outbound_intents
        FOR EACH ROW EXECUTE FUNCTION note_intent()
    """,
    """
    CREATE TRIGGER outbound_intents_note AFTER UPDATE ON outbound_intents
        FOR EACH ROW WHEN ((OLD.state, OLD.reason, OLD.cancel_asked_at, OLD.given_up_reason, OLD.settle_asked_at,
                OLD.settle_refusal)
            IS DISTINCT FROM (NEW.state, NEW.reason, NEW.cancel_asked_at, NEW.given_up_reason, NEW.settle_asked_at,
                NEW.settle_refusal))
        EXECUTE FUNCTION note_intent()
    """,
    """
    CREATE TRIGGER outbound_slots_note AFTER UPDATE ON outbound_slots
        FOR EACH ROW WHEN ((OLD.raise_asked_at, OLD.raise_fee_max, OLD.raise_refusal)
            IS DISTINCT FROM (NEW.raise_asked_at, NEW.raise_fee_max, NEW.raise_refusal))
        EXECUTE FUNCTION note_slot()
    """,
    """
    CREATE TRIGGER jobs_note_new AFTER INSERT ON jobs
        FOR EACH ROW EXECUTE FUNCTION note_job()
    """,
    """
    CREATE TRIGGER jobs_note AFTER UPDATE ON jobs
        FOR EACH ROW WHEN ((OLD.state, OLD.progress, OLD.error, OLD.due_at)
            IS DISTINCT FROM (NEW.state, NEW.progress, NEW.error, NEW.due_at))
        EXECUTE FUNCTION note_job()
    """,
    """
    CREATE TRIGGER cron_runs_note AFTER UPDATE ON cron_runs
        FOR EACH ROW WHEN (OLD.error IS NULL AND NEW.error IS NOT NULL)
        EXECUTE FUNCTION note_cron()
    """,
    """
    CREATE TRIGGER chain_cursors_note_new AFTER INSERT ON chain_cursors
        FOR EACH ROW WHEN (NEW.scope = 0) EXECUTE FUNCTION note_chain()
    """,
    """
    CREATE TRIGGER chain_cursors_note AFTER UPDATE ON chain_cursors
        FOR EACH ROW WHEN (NEW.scope = 0 AND (OLD.height, OLD.head) IS DISTINCT FROM (NEW.height, NEW.head))
        EXECUTE FUNCTION note_chain()
    """,
    # Workers write down every second what they see of chains: how often an endpoint was called is nothing to tell.
    """
    CREATE TRIGGER chain_states_note_new AFTER INSERT ON chain_states
        FOR EACH ROW EXECUTE FUNCTION note_chain_state()
    """,
    """
    CREATE TRIGGER chain_states_note AFTER UPDATE ON chain_states
        FOR EACH ROW WHEN ((OLD.problem, OLD.setup_problem, OLD.error, OLD.failing_since, OLD.quorum)
            IS DISTINCT FROM (NEW.problem, NEW.setup_problem, NEW.error, NEW.failing_since, NEW.quorum))
        EXECUTE FUNCTION note_chain_state()
    """,
    """
    CREATE TRIGGER chain_endpoints_note_new AFTER INSERT ON chain_endpoints
        FOR EACH ROW EXECUTE FUNCTION note_chain()
    """,
    """
    CREATE TRIGGER chain_endpoints_note AFTER UPDATE ON chain_endpoints
        FOR EACH ROW WHEN ((OLD.state, OLD.reason, OLD.healthy, OLD.set_aside, OLD.last_error)
            IS DISTINCT FROM (NEW.state, NEW.reason, NEW.healthy, NEW.set_aside, NEW.last_error))
        EXECUTE FUNCTION note_chain()
    """,
    """
    CREATE TRIGGER chain_tokens_note_new AFTER INSERT ON chain_tokens
        FOR EACH ROW EXECUTE FUNCTION note_token()
    """,
    """
    CREATE TRIGGER chain_tokens_note AFTER UPDATE ON chain_tokens
        FOR EACH ROW WHEN ((OLD.state, OLD.reason, OLD.symbol, OLD.label, OLD.default_enabled, OLD.since_height,
                OLD.sendable)
            IS DISTINCT FROM (NEW.state, NEW.reason, NEW.symbol, NEW.label, NEW.default_enabled, NEW.since_height,
                NEW.sendable))
        EXECUTE FUNCTION note_token()
    """,
    """
    CREATE TRIGGER chain_pauses_note AFTER INSERT OR UPDATE OR DELETE ON chain_pauses
        FOR EACH ROW EXECUTE FUNCTION note_pause()
    """,
    """
    CREATE TRIGGER gas_stations_note_new AFTER INSERT ON gas_stations
        FOR EACH ROW EXECUTE FUNCTION note_gas_station()
    """,
    """
    CREATE TRIGGER gas_stations_note AFTER UPDATE ON gas_stations
        FOR EACH ROW WHEN ((OLD.balance, OLD.waiting, OLD.is_low, OLD.is_stake_low)
            IS DISTINCT FROM (NEW.balance, NEW.waiting, NEW.is_low, NEW.is_stake_low))
        EXECUTE FUNCTION note_gas_station()
    """,
    """
    CREATE TRIGGER merchants_note_new AFTER INSERT ON merchants
        FOR EACH ROW EXECUTE FUNCTION note_merchant()
    """,
    """
    CREATE TRIGGER merchants_note AFTER UPDATE ON merchants
        FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
        EXECUTE FUNCTION note_merchant()
    """,
    """
    CREATE TRIGGER signer_reports_note_new AFTER INSERT ON signer_reports
        FOR EACH ROW EXECUTE FUNCTION note_signer()
    """,
    """
    CREATE TRIGGER signer_reports_note AFTER UPDATE ON signer_reports
        FOR EACH ROW WHEN (OLD.report IS DISTINCT FROM NEW.report)
        EXECUTE FUNCTION note_signer()
    """,
    """
    CREATE TRIGGER signer_answers_note_new AFTER INSERT ON signer_answers
        FOR EACH ROW EXECUTE FUNCTION note_signer_answer()
    """,
    """
    CREATE TRIGGER signer_answers_note AFTER UPDATE ON signer_answers
        FOR EACH ROW WHEN (OLD.outcome IS DISTINCT FROM NEW.outcome)
        EXECUTE FUNCTION note_signer_answer()
    """,
    """
    CREATE TRIGGER price_source_states_note_new AFTER INSERT ON price_source_states
        FOR EACH ROW WHEN (NEW.verdict <> 'used')
        EXECUTE FUNCTION note_price_source()
    """,
    """
    CREATE TRIGGER price_source_states_note AFTER UPDATE ON price_source_states
        FOR EACH ROW WHEN ((OLD.verdict, OLD.symbols) IS DISTINCT FROM (NEW.verdict, NEW.symbols))
        EXECUTE FUNCTION note_price_source()
    """,
    """
    CREATE TRIGGER price_sources_set_aside_note AFTER INSERT OR UPDATE OR DELETE ON price_sources_set_aside
        FOR EACH ROW EXECUTE FUNCTION note_source_set_aside()
    """,
    """
    CREATE TRIGGER prices_missing_note AFTER INSERT OR UPDATE OR DELETE ON prices_missing
        FOR EACH ROW EXECUTE FUNCTION note_price()
    """,
    """
    CREATE TRIGGER uncollected_funds_note_new AFTER INSERT OR DELETE ON uncollected_funds
        FOR EACH ROW EXECUTE FUNCTION note_uncollected()
    """,
    """
    CREATE TRIGGER uncollected_funds_note AFTER UPDATE ON uncollected_funds
        FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
        EXECUTE FUNCTION note_uncollected()
    """,
    """
    CREATE TRIGGER platform_settings_note AFTER INSERT OR UPDATE ON platform_settings
        FOR EACH ROW EXECUTE FUNCTION note_settings()
    """,
    """
    CREATE TRIGGER plans_note_new AFTER INSERT ON plans
        FOR EACH ROW EXECUTE FUNCTION note_plan()
    """,
    """
    CREATE TRIGGER plans_note AFTER UPDATE ON plans
        FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*)
        EXECUTE FUNCTION note_plan()
    """,
    """
    CREATE TRIGGER operators_note_new AFTER INSERT ON operators
        FOR EACH ROW EXECUTE FUNCTION note_operator()
    """,
    """
    CREATE TRIGGER operators_note AFTER UPDATE ON operators
        FOR EACH ROW WHEN ((OLD.email, OLD.name, OLD.role, OLD.disabled_at)
            IS DISTINCT FROM (NEW.email, NEW.name, NEW.role, NEW.disabled_at))
        EXECUTE FUNCTION note_operator()
    """,
    """
    CREATE TRIGGER members_note_new AFTER INSERT OR DELETE ON members
        FOR EACH ROW EXECUTE FUNCTION note_member()
    """,
    """
    CREATE TRIGGER members_note AFTER UPDATE ON members
        FOR EACH ROW WHEN ((OLD.email, OLD.name, OLD.role, OLD.project_pks, OLD.version)
            IS DISTINCT FROM (NEW.email, NEW.name, NEW.role, NEW.project_pks, NEW.version))
        EXECUTE FUNCTION note_member()
    """,
    """
    CREATE TRIGGER member_invitations_note AFTER INSERT OR UPDATE OR DELETE ON member_invitations
        FOR EACH ROW EXECUTE FUNCTION note_invitation()
    """,
    """
    CREATE TRIGGER two_factor_states_note AFTER UPDATE ON two_factor_states
        FOR EACH ROW WHEN ((OLD.secret_encrypted IS NULL) <> (NEW.secret_encrypted IS NULL))
        EXECUTE FUNCTION note_member_two_factor()
    """,
    """
    CREATE TRIGGER two_factor_states_note_gone AFTER DELETE ON two_factor_states
        FOR EACH ROW WHEN (OLD.secret_encrypted IS NOT NULL)
        EXECUTE FUNCTION note_member_two_factor()
    """,
    """
    CREATE TRIGGER operator_two_factors_note AFTER UPDATE ON operator_two_factors
        FOR EACH ROW WHEN ((OLD.secret_encrypted IS NULL) <> (NEW.secret_encrypted IS NULL))
        EXECUTE FUNCTION note_operator_two_factor()
    """,
    """
    CREATE TRIGGER operator_two_factors_note_gone AFTER DELETE ON operator_two_factors
        FOR EACH ROW WHEN (OLD.secret_encrypted IS NOT NULL)
        EXECUTE FUNCTION note_operator_two_factor()
    """,
)


def upgrade() -> None:
    for statement in (*TABLES, *FUNCTIONS, *TRIGGERS):
        op.execute(statement)
