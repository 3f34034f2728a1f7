"""The ledger's invariants as triggers: balances equal the movements, and what is posted stays posted.

Migration 0001 executes these texts. Once released they stay as they are: a change is a new migration with its own.
"""

from __future__ import annotations

FUNCTIONS = (
    """
    CREATE OR REPLACE FUNCTION ledger_apply_movements() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        -- Lock in id order before anything changes, so that concurrent postings wait instead of deadlocking.
        PERFORM 1 FROM ledger_accounts
            WHERE id IN (SELECT debit_account_id FROM posted UNION SELECT credit_account_id FROM posted)
            ORDER BY id FOR NO KEY UPDATE;
        UPDATE ledger_accounts AS account SET balance = account.balance + change.units
        FROM (
            SELECT id, sum(units) AS units FROM (
                SELECT credit_account_id AS id, units FROM posted
                UNION ALL
                SELECT debit_account_id, -units FROM posted
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
)

STATEMENTS = FUNCTIONS + TRIGGERS
"""Everything to execute, in order, after the tables exist."""
