"""Between rows and Structs: a Struct's fields name the columns that are selected, and a row of them becomes one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy import ARRAY, ColumnElement, Row, Select, bindparam, func, literal_column
from sqlalchemy.orm import InstrumentedAttribute

from .models.base import Base

S = TypeVar("S", bound=Struct)

Column: TypeAlias = ColumnElement[Any] | InstrumentedAttribute[Any]
AnyRow: TypeAlias = Row[*tuple[Any, ...]]
AnySelect: TypeAlias = Select[*tuple[Any, ...]]


def columns_of(into: type[Struct], table: type[Base], **others: Column) -> Sequence[ColumnElement[Any]]:
    """Return a column for every field: the one given under its name, or the table's own.

    The field ``pk`` is the table's ``id``. A field that has a default is left out where there is no such column.
    Raises AttributeError for any other field without a column.
    """
    columns: list[ColumnElement[Any]] = []
    for field in msgspec.structs.fields(into):
        column = others.get(field.name)
        if column is None:
            name = "id" if field.name == "pk" else field.name
            if not field.required and not hasattr(table, name):
                continue
            column = getattr(table, name)
        columns.append(column.label(field.name))
    return columns


def to_struct(into: type[S], row: AnyRow) -> S:
    """Return a row as a Struct, each field from the column of its name. Raises msgspec.ValidationError."""
    return msgspec.convert(row, into, from_attributes=True)


def transposed(rows: Sequence[tuple[Any, ...]]) -> Sequence[list[Any]]:
    """Return rows, of which there is one at least, as columns: what a statement with ``unnest`` takes."""
    return [list(column) for column in zip(*rows, strict=True)]


def one_of(column: Column, values: Sequence[Any]) -> ColumnElement[bool]:
    """Return ``column = ANY(values)``: one prepared statement for any number of values, unlike IN."""
    return column == func.any(bindparam(None, list(values), type_=ARRAY(column.type)))


def one_of_given(column: Column, name: str) -> ColumnElement[bool]:
    """Return ``column = ANY(values)`` for a statement that is made once: the values come under this name with each use.

    SQLAlchemy recognises such a statement at once, where for one that is made anew it looks at all columns.
    """
    return column == func.any(bindparam(name, type_=ARRAY(column.type)))


def literally(column: Column, *values: str) -> ColumnElement[bool]:
    """Return ``column IN (values)`` with the values, which are constants, in the text.

    A partial index is in no plan that PostgreSQL keeps for all values, unless the text itself says what it holds.
    """
    return column.in_([literal_column(f"'{value}'") for value in values])
