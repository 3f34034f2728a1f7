"""What a person has answered the signer over the API happens now, and not when the engine would have asked again."""

from __future__ import annotations

import pytest

from cambist.domain.payouts import Status
from cambist.services.signing import answers, reports
from cambist.signer import answers as codes

from .test_outbound_cancel import AMOUNT, KEY, asking_signer, treasury

__all__ = ["treasury"]

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "verdict, becomes", [("approve", Status.BROADCAST), ("deny", Status.CANCELLED)], ids=["approve", "deny"]
)
async def test_what_a_person_has_decided_about_is_due_at_once(treasury, clock, ids, tmp_path, verdict, becomes):
    await treasury.ready()
    signer = treasury.signer = asking_signer(treasury, tmp_path)
    engine = treasury.engine()
    decided = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    (asked,) = (await signer.report()).questions
    waiting = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    await engine.tick()
    report = await signer.report()
    code = codes.code_for(KEY, verdict, asked.question, int(clock.now().timestamp()))
    async with treasury.db.transaction() as conn:
        await reports.save(conn, report, clock.now())
        said = {"question": asked.question, "verdict": verdict, "code": code, "asked_by": "op_1"}
        await answers.give(conn, ids, str(asked.pk), now=clock.now(), **said)
    assert await answers.hand_on(treasury.db, signer, clock) == 1
    for _ in range(3):
        await engine.tick()
    assert (await treasury.payout(decided)).status == becomes
    row = await treasury.payout(waiting)
    assert (row.status, row.waits_for) == (Status.PROCESSING, "signer: APPROVAL_NEEDED")
    await signer.aclose()
