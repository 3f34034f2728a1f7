"""What all tables share: naming of constraints, and column types whose Python side is exact."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Annotated, TypeAlias

from sqlalchemy import BigInteger, CheckConstraint, DateTime, Identity, Index, MetaData, Numeric, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, mapped_column
from sqlalchemy.types import Text, TypeDecorator, UserDefinedType


class UnitsType(TypeDecorator[int]):
    """An amount in smallest units: NUMERIC(78,0) in the database, int in Python."""

    impl = Numeric(78, 0)
    cache_ok = True

    def process_result_value(self, value: Decimal | None, dialect: Dialect) -> int | None:  # noqa: ARG002  inherited
        """Leave Decimal behind at the door."""
        return None if value is None else int(value)


class Xid8(UserDefinedType[int]):
    """PostgreSQL's 64-bit transaction id."""

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "xid8"


PrimaryKey: TypeAlias = Annotated[int, mapped_column(Identity(always=True), primary_key=True)]


def listed(values: Iterable[str]) -> str:
    """Return constants as the text between the brackets of ``IN``."""
    return ", ".join(f"'{value}'" for value in values)


def holds_one_of(column: str, *values: str) -> CheckConstraint:
    """Return the constraint that a column holds one of these."""
    return CheckConstraint(f"{column} IN ({listed(values)})", name=column)


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """Return an index of those rows alone."""
    return Index(name, *columns, unique=unique, postgresql_where=text(where))


class Base(DeclarativeBase):
    """Declares tables. Queries are Core statements on connections; nothing is loaded as an object."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012  SQLAlchemy's own way to declare it
        int: BigInteger,
        str: Text,
        dict[str, object]: JSONB,
        datetime: DateTime(timezone=True),
    }
