"""What all tables share: naming of constraints, and column types whose Python side is exact."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from sqlalchemy import BigInteger, CheckConstraint, DateTime, MetaData, Numeric
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase
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
        """Name the type in DDL."""
        return "xid8"


def kind_is_one_of(kinds: Iterable[str]) -> CheckConstraint:
    """Return the constraint that the column ``kind`` holds one of these."""
    return CheckConstraint(f"kind IN ({', '.join(repr(str(kind)) for kind in kinds)})", name="kind")


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
        dict: JSONB,
        datetime: DateTime(timezone=True),
    }
