"""What operators' lists are of: how each is selected, which indexes serve it, and what it can be filtered by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute

from cambist.db.models import Account, Address, Deposit, Exchange, Merchant, Payment, Payout, Project, Tracker
from cambist.db.models.base import Base
from cambist.db.structs import AnySelect, Column, literally
from cambist.domain import exchanges, payments, payouts
from cambist.domain.intents import PAYOUTS, IntentKind
from cambist.services.errors import InvalidError, NotFoundError
from cambist.services.listing import ListOf

from .rows import AccountRow, DepositRow, ExchangeRow, Owned, PaymentRow, SentRow, TrackerRow


class Name(StrEnum):
    """The lists there are."""

    PAYMENTS = "payments"
    DEPOSITS = "deposits"
    PAYOUTS = "payouts"
    REFUNDS = "refunds"
    WITHDRAWALS = "withdrawals"
    EXCHANGES = "exchanges"
    ACCOUNTS = "accounts"
    TRACKERS = "trackers"


class Kind:
    """One list. ``owners`` are the columns of merchant and project that an index begins with.

    Where there is none, the column is among the ``filters``.
    """

    def __init__(  # noqa: PLR0913  what a list is of
        self,
        row: type[Owned],
        spec: ListOf,
        public_id: InstrumentedAttribute[str],
        statement: AnySelect,
        *,
        missing: str,
        owners: Mapping[str, Column],
        filters: Mapping[str, Column],
        where: ColumnElement[bool] | None = None,
        statuses: Iterable[str] = (),
    ) -> None:
        self._statuses = [str(one) for one in statuses]
        self.row, self.spec, self.public_id, self.statement = row, spec, public_id, statement
        self.owners, self.filters, self._missing = owners, filters, missing
        self.where = [] if where is None else [where]

    def check(self, values: Mapping[str, str | None]) -> None:
        """Refuse what this list has nothing of. Raises InvalidError."""
        for field, value in values.items():
            if value is not None and field not in self.filters:
                raise InvalidError.field(field, "is not what these can be asked for by")
        status = values["status"]
        if status is not None and status not in self._statuses:
            raise InvalidError.field("status", f"must be one of {', '.join(self._statuses)}")

    def missing(self) -> NotFoundError:
        """Return the refusal for one that is not there."""
        noun = self._missing.lower().replace("_", " ")
        return NotFoundError(f"{self._missing}_NOT_FOUND", f"There is no such {noun}.")


def _selected(row: type[Owned], table: type[Base], merchant: Column, project: Column, **others: Column) -> AnySelect:
    """Return the statement of a row: each field is a column of that name, or the one given for it."""
    owner = {
        "merchant_id": Merchant.merchant_id,
        "merchant_name": Merchant.name,
        "project_id": Project.project_id,
        "project_name": Project.name,
    }
    known: dict[str, Any] = owner | others
    names = [*row.__struct_fields__, *(name for name in others if name not in row.__struct_fields__)]
    columns = [known[name] if name in known else getattr(table, name) for name in names]
    selected = select(*(column.label(name) for name, column in zip(names, columns, strict=True))).select_from(table)
    return selected.outerjoin(Project, Project.id == project).outerjoin(Merchant, Merchant.id == merchant)


def _named(table: type[Base]) -> dict[str, Column]:
    return {name: getattr(table, name) for name in ("status", "chain", "token", "mode") if hasattr(table, name)}


_held = Deposit.units - Deposit.available_units - Deposit.returned_units
# What came to no payment and no account of a project's belongs to the merchant as a whole.
_project_of_deposit = func.coalesce(
    select(Payment.project_pk).where(Payment.id == Deposit.payment_pk).correlate(Deposit).scalar_subquery(),
    select(Account.project_pk).where(Account.id == Deposit.account_pk).correlate(Deposit).scalar_subquery(),
)
_SENT = {
    Name.PAYOUTS: literally(Payout.kind, *PAYOUTS),
    Name.REFUNDS: literally(Payout.kind, IntentKind.REFUND),
    Name.WITHDRAWALS: literally(Payout.kind, IntentKind.WITHDRAWAL),
}


def _sent(name: Name, missing: str) -> Kind:
    return Kind(
        SentRow,
        ListOf(Payout.id, Payout.created_at),
        Payout.payout_id,
        _selected(
            SentRow,
            Payout,
            Payout.merchant_pk,
            Payout.project_pk,
            id=Payout.payout_id,
            amount=Payout.units,
            tx_hash=Payout.tx_id,
            completed_at=Payout.finished_at,
            decimals=Payout.decimals,
            waits_for_text=Payout.waits_for,
            error_code=Payout.error,
        ),
        missing=missing,
        owners={"merchant": Payout.merchant_pk},
        filters=_named(Payout) | {"project": Payout.project_pk},
        statuses=payouts.Status,
        where=_SENT[name],
    )


KINDS: Mapping[Name, Kind] = {
    Name.PAYMENTS: Kind(
        PaymentRow,
        ListOf(Payment.id, Payment.created_at, indexed=[Payment.status]),
        Payment.payment_id,
        _selected(
            PaymentRow,
            Payment,
            Payment.merchant_pk,
            Payment.project_pk,
            expected_amount=Payment.expected_units,
            received_amount=Payment.received_units,
            deposit_address=Payment.address,
            tx_hash=Payment.tx_id,
            decimals=Payment.decimals,
        ),
        missing="PAYMENT",
        owners={"project": Payment.project_pk, "merchant": Payment.merchant_pk},
        filters=_named(Payment),
        statuses=payments.Status,
    ),
    Name.DEPOSITS: Kind(
        DepositRow,
        ListOf(Deposit.id, Deposit.first_seen_at),
        Deposit.deposit_id,
        _selected(
            DepositRow,
            Deposit,
            Deposit.merchant_pk,
            _project_of_deposit,
            created_at=Deposit.first_seen_at,
            amount=Deposit.units,
            held_amount=_held,
            address=Address.address,
            from_address=Deposit.sender,
            tx_hash=Deposit.tx_id,
            block_number=Deposit.height,
            payment_id=Payment.payment_id,
            account_id=Account.account_id,
            decimals=Deposit.decimals,
        )
        .outerjoin(Address, Address.id == Deposit.address_pk)
        .outerjoin(Payment, Payment.id == Deposit.payment_pk)
        .outerjoin(Account, Account.id == Deposit.account_pk),
        missing="DEPOSIT",
        owners={"merchant": Deposit.merchant_pk},
        filters=_named(Deposit) | {"project": _project_of_deposit},
        statuses=("detected", "confirmed", "orphaned"),
    ),
    Name.PAYOUTS: _sent(Name.PAYOUTS, "PAYOUT"),
    Name.REFUNDS: _sent(Name.REFUNDS, "REFUND"),
    Name.WITHDRAWALS: _sent(Name.WITHDRAWALS, "WITHDRAWAL"),
    Name.EXCHANGES: Kind(
        ExchangeRow,
        ListOf(Exchange.id, Exchange.created_at),
        Exchange.txn_id,
        _selected(
            ExchangeRow,
            Exchange,
            Exchange.merchant_pk,
            Exchange.project_pk,
            source_amount=Exchange.units,
            dest_amount=Exchange.output_units,
            tx_hash=Exchange.tx_id,
            dest_tx_hash=Exchange.dest_tx_id,
            completed_at=Exchange.finished_at,
            source_decimals=Exchange.source_decimals,
            dest_decimals=Exchange.dest_decimals,
            waits_for_text=Exchange.waits_for,
            error_code=Exchange.error,
        ),
        missing="EXCHANGE",
        owners={"project": Exchange.project_pk},
        filters={
            "status": Exchange.status,
            "chain": Exchange.source_chain,
            "token": Exchange.source_token,
            "mode": Exchange.mode,
            "merchant": Exchange.merchant_pk,
        },
        statuses=exchanges.Status,
    ),
    Name.ACCOUNTS: Kind(
        AccountRow,
        ListOf(Account.id, Account.created_at),
        Account.account_id,
        _selected(AccountRow, Account, Account.merchant_pk, Account.project_pk),
        missing="ACCOUNT",
        owners={"project": Account.project_pk},
        filters={"mode": Account.mode, "merchant": Account.merchant_pk},
    ),
    Name.TRACKERS: Kind(
        TrackerRow,
        ListOf(Tracker.id),
        Tracker.webhook_id,
        _selected(TrackerRow, Tracker, Project.merchant_pk, Tracker.project_pk),
        missing="TRACKER",
        owners={"project": Tracker.project_pk},
        filters={"chain": Tracker.chain, "mode": Tracker.mode, "merchant": Project.merchant_pk},
        where=Tracker.deleted_at.is_(None),
    ),
}
