"""What nodes answer to a transaction, in the network's own words, and what it means for who sent it."""

from __future__ import annotations

import pytest
from coincurve import PrivateKey

from cambist.plugin import Fee, SignedTx, Step, Token, Units
from cambist_tron.addresses import hex_of, of_point, spell
from cambist_tron.broadcasts import verdict_on
from cambist_tron.family import TronFamily
from cambist_tron.replies import Submitted
from cambist_tron.writing import PLACEHOLDER_TIP, unsigned

KEY = PrivateKey(b"\x07" * 32)
OWNER = of_point(KEY.public_key.format(compressed=False)[1:])
OTHER = spell(b"\x5a" * 20)
VALIDATE = "CONTRACT_VALIDATE_ERROR"


def a_tx() -> SignedTx:
    family = TronFamily()
    trx = Token(symbol="TRX", contract=None, decimals=6, label="TRON")
    step = Step(sender=OWNER, to_address=OTHER, token=trx, amount=Units(5), fee=Fee(limit=265, price=1000))
    tx = unsigned(step, PLACEHOLDER_TIP, 1)
    return family.seal(tx, KEY.sign_recoverable(family.digest(tx.payload), hasher=None))


TX = a_tx()


@pytest.mark.parametrize(
    "said, state",
    [
        (Submitted(result=True, code="SUCCESS", txid=TX.tx_id), "accepted"),
        (Submitted(result=True, txid=TX.tx_id), "accepted"),
        (Submitted(result=True), "accepted"),
        (Submitted(result=True, txid="00" * 32), "unknown"),
        (Submitted(code="DUP_TRANSACTION_ERROR", message="Dup transaction.", txid=TX.tx_id), "accepted"),
        (Submitted(code="DUP_TRANSACTION_ERROR", message="Transaction already exists."), "accepted"),
        (Submitted(), "unknown"),
        (Submitted(code="SERVER_BUSY", message="Server busy."), "unknown"),
        (Submitted(code="NO_CONNECTION", message="No connection."), "unknown"),
        (Submitted(code="NOT_ENOUGH_EFFECTIVE_CONNECTION", message="P2P broadcast failed."), "unknown"),
        (Submitted(code="BLOCK_UNSOLIDIFIED", message="Block unsolidified."), "unknown"),
        (Submitted(code="OTHER_ERROR", message="Error: null"), "unknown"),
        (Submitted(code="A_CODE_OF_NEXT_YEAR"), "unknown"),
        (Submitted(code="SIGERROR", message="Validate signature error: wrong"), "rejected"),
        (Submitted(code="TAPOS_ERROR", message="Tapos check error."), "expired"),
        (Submitted(code="TRANSACTION_EXPIRATION_ERROR", message="Transaction expired"), "expired"),
        (Submitted(code="TOO_BIG_TRANSACTION_ERROR", message="too big"), "rejected"),
        (Submitted(code="BANDWITH_ERROR", message="Account resource insufficient error."), "unfunded"),
        (Submitted(code="CONTRACT_EXE_ERROR", message="Contract execute error : insufficient balance"), "unfunded"),
        (Submitted(code="CONTRACT_EXE_ERROR", message="Contract execute error : overflow"), "rejected"),
    ],
)
def test_each_code_has_its_meaning(said: Submitted, state: str) -> None:
    """What nobody knows the meaning of is unknown: the transaction may be out."""
    verdict = verdict_on(said, TX)
    assert verdict.state == state
    assert bool(verdict.reason) == (state != "accepted")


@pytest.mark.parametrize(
    "message, state",
    [
        ("Validate TransferContract error, balance is not sufficient.", "unfunded"),
        ("Validate TransferContract error, no OwnerAccount.", "unfunded"),
        (f"account [{OWNER}] does not exist", "unfunded"),
        (f"Account[{hex_of(OWNER)}] does not exist", "unfunded"),
        (f"Account[{hex_of(OTHER)}] does not exist", "rejected"),
        ("frozenBalance must be less than or equal to accountBalance", "unfunded"),
        ("delegateBalance must be less than or equal to available FreezeEnergyV2 balance", "rejected"),
        ("insufficient delegateFrozenBalance(Energy), request=5, unlock_balance=0", "rejected"),
        ("Cannot transfer TRX to yourself.", "rejected"),
        ("Cannot transfer TRX to a smartContract.", "rejected"),
        ("No contract or not a smart contract", "rejected"),
        ("Amount must be greater than 0.", "rejected"),
    ],
)
def test_what_a_contract_lacks_is_told_from_what_is_wrong_with_it(message: str, state: str) -> None:
    """Coin can be brought; and an account that is missing may be the sender's, or somebody else's."""
    verdict = verdict_on(Submitted(code=VALIDATE, message=f"Contract validate error : {message}"), TX)
    assert verdict.state == state
    assert message in verdict.reason


def test_bytes_that_nobody_can_read_have_no_owner() -> None:
    """They are judged all the same."""
    told = Submitted(code=VALIDATE, message=f"account [{OWNER}] does not exist")
    assert verdict_on(told, SignedTx(tx_id=TX.tx_id, raw=TX.raw[:-3])).state == "rejected"


def test_messages_in_hex_are_read_and_cut() -> None:
    """Some providers write them so; and nobody can fill a log with one."""
    told = verdict_on(Submitted(code="TAPOS_ERROR", message=b"Tapos check error.".hex()), TX)
    assert told.reason == "TAPOS_ERROR Tapos check error."
    assert len(verdict_on(Submitted(code="SIGERROR", message="x" * 10_000), TX).reason) < 300
    assert "\n" not in verdict_on(Submitted(code="SIGERROR", message="a\nb\0c"), TX).reason
