"""Examples of bodies and answers for the API's description, made from the Structs that are read and answered.

A field has the value that ``values.py`` has under its name; where that would not fit, the one that
``own_values.py`` has under its Struct's name and its own. Whatever a Struct gets a field for fails until
there is a value for it, so that no example goes stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import msgspec
from litestar.handlers import BaseRouteHandler
from litestar.response import Stream
from msgspec import inspect

from cambist.services.accounting.statements.export import COLUMNS
from cambist_web.live.messages import ChangeMessage, changes_event
from cambist_web.live.response import LiveStream
from cambist_web.schemas import with_moments

from .own_values import OWN_VALUES
from .values import MOMENT
from .values import VALUES as NAMED_VALUES

VALUES: Mapping[str, Any] = {**NAMED_VALUES, **OWN_VALUES}

SHOWN: Mapping[str, frozenset[str]] = {
    name: frozenset(fields.split())
    for name, fields in {
        "Ask": "fiat_currency",
        "AskReconcile": "chains",
        "RedeliverMany": "events limit",
        "ApprovalRequest": "label totp_code",
        "ChangePlan": "version max_webhooks archived",
        "ChangeAddress": "label metadata",
        "ChangeTracker": "url name max_addresses",
        "ChangeMember": "role",
        "ChangeProject": "payment_webhook_url grace_hours",
        "ChangeMessage": "id project_id mode status",
        "CoinView": "least_amount",
        "CollectNow": "max_fee_share_bps",
        "BridgeOrder": "slippage",
        "CoinPatch": "autopayout_policy autopayout_threshold autopayout_address",
        "CreateAccount": "metadata",
        "CreatePayment": "order_id success_url cancel_url customer_email metadata",
        "ChangeEndpoint": "paused",
        "CreateEndpoint": "events",
        "CreateProject": "payment_webhook_url",
        "ChainStatus": "head height lag_blocks lag_seconds polled_at sending_paused",
        "CreateTracker": "metadata start_block max_addresses project_id",
        "Deposit": "payment_id",
        "DepositAnswer": "payment",
        "GasStationView": "stake",
        "Login": "totp_code",
        "NewEndpoint": "label",
        "NewToken": "label",
        "TokenPatch": "enabled default_enabled merchants",
        "NewPlan": "requests_per_minute cpt_per_month price_usd",
        "NewAddress": "label metadata",
        "NewTracker": "metadata start_block max_addresses",
        "NewKey": "name scopes allowed_ips",
        "NewInvitation": "project_ids",
        "PayoutRequest": "amount",
        "PlatformPatch": "version payout_enabled limits",
        "Recalculate": "expires_in_minutes",
        "RedeliverEvent": "endpoint_id",
        "RefundRequest": "amount reason",
        "RotateSecret": "overlap_minutes",
        "RaiseFee": "max_fee",
        "StakeBody": "amount",
        "TokenView": "least_amount",
        "SwapOrder": "slippage",
        "TransactionView": "payment_id deposit_id",
        "WithdrawalRequest": "totp_code",
    }.items()
}
"""The fields that examples have though they could be left out. Answers have all that are never left out besides."""


@cache
def type_info(kind: Any) -> inspect.Type:  # noqa: ANN401  any type
    """Return what ``msgspec`` says of a type, found out once: it reads the annotations of every Struct in it anew."""
    return inspect.type_info(kind)


def answered_by(handler: BaseRouteHandler) -> Any:  # noqa: ANN401  any type
    """Return the type of what a handler answers, out of the ``Response`` that it may be in."""
    field = handler.parsed_fn_signature.return_type
    return field.inner_types[0].annotation if field.inner_types else field.annotation


def body_example(kind: Any) -> Any:  # noqa: ANN401  a handler's type, and JSON
    """Return a body as a merchant would send it. Raises LookupError for a field without a value."""
    return _example("", "", type_info(kind))


def answer_example(kind: Any) -> Any:  # noqa: ANN401  as above
    """Return an answer as it would be sent. Raises LookupError, and msgspec.ValidationError for a value of no use."""
    if kind is LiveStream:
        return changes_event([msgspec.convert(body_example(ChangeMessage), ChangeMessage)], "8Jm2").decode()
    if kind is Stream:
        return ",".join(COLUMNS)  # the statement as a file
    return msgspec.to_builtins(with_moments(msgspec.convert(body_example(kind), kind)))


def example_of(cls: type[msgspec.Struct], name: str) -> Any:  # noqa: ANN401  JSON
    """Return an example of one field; of one that has no value, what it is by default. Raises LookupError."""
    info = cast(inspect.StructType, type_info(cls))
    field = next(field for field in info.fields if field.name == name)
    try:
        return _example(cls.__name__, name, field.type)
    except LookupError:
        if field.default in {msgspec.NODEFAULT, msgspec.UNSET, None}:
            raise
        return msgspec.to_builtins(field.default)


def _example(owner: str, name: str, kind: inspect.Type) -> Any:  # noqa: ANN401  one for each kind of type
    for key in (f"{owner}.{name}", name):
        # A text is what the field is elsewhere, where it names what stands here as a whole.
        if key in VALUES and not (isinstance(kind, inspect.StructType) and isinstance(VALUES[key], str)):
            return VALUES[key]
    match _plain(kind):
        case inspect.StructType(cls=cls, fields=fields):
            shown = SHOWN.get(cls.__name__, frozenset())
            wanted = [field for field in fields if field.required or field.name in shown]
            return {field.encode_name: _example(cls.__name__, field.name, field.type) for field in wanted}
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            return [_example(owner, name, item)]
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.EnumType(cls=cls):
            return next(iter(cls)).value
        case inspect.BoolType():
            return True
        case inspect.DateTimeType():
            return MOMENT
    raise LookupError(f"{owner}.{name} has no example in VALUES")


def _plain(kind: inspect.Type) -> inspect.Type:
    """Return the type without its bounds and without None."""
    if isinstance(kind, inspect.Metadata):
        return _plain(kind.type)
    if isinstance(kind, inspect.UnionType):
        return _plain(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
    return kind
