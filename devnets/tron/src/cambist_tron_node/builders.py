"""Transactions that the node builds, weighs and takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError

from . import proto, signatures
from .accounts import permission_message
from .asking import Answer, Ask, BadRequestError, Handler
from .keys import SignatureMalformedError
from .refusals import RefusedError
from .schema import ENUMS
from .system import carry_out
from .transactions import (
    CREATE_ACCOUNT,
    DELEGATE,
    STAKE,
    TRANSFER,
    TRANSFER_ASSET,
    UNDELEGATE,
    UNSTAKE,
    UPDATE_PERMISSIONS,
    WITHDRAW,
    NoContractError,
    Transaction,
    build,
)

_LIFETIME_MS: Final = 60_000
_PERMISSIONS: Final = range(1 << 31)

_KINDS: Final[Mapping[str, str]] = {
    "createtransaction": TRANSFER,
    "transferasset": TRANSFER_ASSET,
    "createaccount": CREATE_ACCOUNT,
    "freezebalancev2": STAKE,
    "unfreezebalancev2": UNSTAKE,
    "withdrawexpireunfreeze": WITHDRAW,
    "delegateresource": DELEGATE,
    "undelegateresource": UNDELEGATE,
    "accountpermissionupdate": UPDATE_PERMISSIONS,
}


def created(ask: Ask) -> Answer:
    """Build an unsigned transaction, once it could be carried out on what the node knows."""
    kind = _KINDS[ask.path]
    try:
        transaction = on_head(ask, kind, proto.from_json(kind, ask.values, visible=ask.visible))
    except proto.MalformedError as error:
        raise BadRequestError("org.tron.core.services.http.JsonFormat$ParseException", str(error)) from error
    ledger = ask.chain.state.ledger
    ledger.begin()
    try:
        carry_out(ask.chain.state, transaction)
    except RefusedError as error:
        return {"Error": error.error}
    finally:
        ledger.rollback()
    return built(ask, transaction)


def built(ask: Ask, transaction: Transaction) -> Answer:
    """Return an unsigned transaction as this asker wants it."""
    return {"visible": ask.visible, **transaction.to_json(visible=ask.visible)}


def on_head(ask: Ask, kind: str, held: Any, **raw: Any) -> Transaction:  # noqa: ANN401 - messages, fields of Raw
    """Return an unsigned transaction that refers to the newest block, and lives a minute."""
    head, visible_text = ask.chain.blocks.head, str(ask.values.get("extra_data") or "")
    try:
        memo = visible_text.encode() if ask.visible else bytes.fromhex(visible_text)
    except ValueError as error:
        raise BadRequestError("org.bouncycastle.util.encoders.DecoderException", str(error)) from error
    return build(
        kind, held, permission=ask.number("Permission_id", among=_PERMISSIONS),
        ref_block_bytes=head.id[6:8], ref_block_hash=head.id[8:16],
        expiration=head.timestamp_ms + _LIFETIME_MS, timestamp=ask.chain.unique_ms(), data=memo, **raw,
    )  # fmt: skip


async def broadcast(ask: Ask) -> Answer:
    """Take a signed transaction as JSON; what the client says its bytes are does not count."""
    answer = await _broadcast(ask, _transaction(ask))
    message = answer.pop("message", None)
    if message is not None:
        answer["message"] = message if ask.visible else message.encode().hex()
    if answer["code"] == "SUCCESS":
        del answer["code"]
    else:
        del answer["result"]
    return answer


async def broadcast_hex(ask: Ask) -> Answer:
    try:
        transaction = Transaction.parse(ask.hex("transaction"))
    except DecodeError as error:
        raise BadRequestError("com.google.protobuf.InvalidProtocolBufferException", str(error)) from error
    answer = await _broadcast(ask, transaction)
    return {"message": "", **answer, "transaction": str(transaction.to_json(visible=True))}


def sign_weight(ask: Ask) -> Answer:
    """Tell who has signed a transaction, and whether that is enough. It need not be signed at all."""
    transaction = _transaction(ask)
    answer = proto.new("TransactionSignWeight")
    answer.transaction.txid = transaction.id
    answer.transaction.result.result = True
    codes = ENUMS["SIGN_WEIGHT_CODE"]
    try:
        permission = _weighed(ask, transaction)
        answer.permission.CopyFrom(permission_message(permission))
        if transaction.proto.signature:
            approval = signatures.approval(permission, transaction)
            answer.approved_list.extend(approval.signers)
            answer.current_weight = approval.weight
        enough = answer.current_weight >= permission.threshold
        answer.result.code = codes["ENOUGH_PERMISSION" if enough else "NOT_ENOUGH_PERMISSION"]
    except SignatureMalformedError as error:
        answer.result.code, answer.result.message = codes["SIGNATURE_FORMAT_ERROR"], str(error)
    except signatures.NotPermittedError as error:
        answer.result.code, answer.result.message = codes["PERMISSION_ERROR"], str(error)
    except NoContractError:
        answer.result.code, answer.result.message = codes["OTHER_ERROR"], "Invalid transaction: no valid contract"
    return _with_transaction(ask, answer, transaction)


def approved_list(ask: Ask) -> Answer:
    """Tell who has signed a transaction."""
    transaction = _transaction(ask)
    answer = proto.new("TransactionApprovedList")
    answer.transaction.txid = transaction.id
    answer.transaction.result.result = True
    try:
        answer.approved_list.extend(transaction.signers)
    except SignatureMalformedError as error:
        answer.result.code, answer.result.message = ENUMS["APPROVED_CODE"]["SIGNATURE_FORMAT_ERROR"], str(error)
    answer.result.SetInParent()
    return _with_transaction(ask, answer, transaction)


def _with_transaction(ask: Ask, answer: Any, transaction: Transaction) -> Answer:  # noqa: ANN401 - a message
    shown = ask.shown(answer)
    shown.setdefault("result", {})
    shown["transaction"]["transaction"] = transaction.to_json(visible=ask.visible)
    return shown


def _weighed(ask: Ask, transaction: Transaction) -> Any:  # noqa: ANN401 - a Permission
    account = ask.view.state.account(transaction.owner)
    if account is None:
        raise signatures.NotPermittedError("Account does not exist!")
    permission = account.permission(transaction.permission)
    if permission is None:
        raise signatures.NotPermittedError("Permission for this, does not exist!")
    if transaction.permission:
        if permission.kind != ENUMS["PERMISSION_TYPE"]["Active"]:
            raise signatures.NotPermittedError("Permission type is wrong!")
        if not signatures.allows(permission, transaction):
            raise signatures.NotPermittedError("Permission denied!")
    return permission


def _transaction(ask: Ask) -> Transaction:
    if "raw_data" not in ask.values:
        raise BadRequestError("java.lang.NullPointerException", "null")
    try:
        return Transaction.from_json(ask.values, visible=ask.visible)
    except proto.MalformedError as error:
        raise BadRequestError("java.lang.NullPointerException", f"null ({error})") from error


async def _broadcast(ask: Ask, transaction: Transaction) -> dict[str, Any]:
    answer: dict[str, Any] = {"result": True, "code": "SUCCESS", "txid": transaction.id.hex()}
    try:
        await ask.chain.broadcast(transaction)
    except RefusedError as error:
        answer |= {"result": False, "code": error.code, "message": error.message}
    return answer


BUILDERS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(_KINDS, created),
    "broadcasttransaction": broadcast,
    "broadcasthex": broadcast_hex,
    "getsignweight": sign_weight,
    "getapprovedlist": approved_list,
}
