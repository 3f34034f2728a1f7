"""The operator's answers and bodies."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from cambist.domain.usage import CREDITS_MAX
from cambist.services.platform import PlatformSettings
from cambist_web.schemas import Body, MadeAnswer
from cambist_web.usage.schemas import SystemCredit


class PlatformSettingsAnswer(PlatformSettings, frozen=True, kw_only=True):
    """Every setting, defaults included."""

    success: bool = True


def settings_answer(settings: PlatformSettings) -> PlatformSettingsAnswer:
    return PlatformSettingsAnswer(**msgspec.structs.asdict(settings))


class GrantCredits(Body, frozen=True, kw_only=True):
    """Credits for a merchant, or a correction where `amount` is below zero."""

    amount: Annotated[int, Meta(ge=-CREDITS_MAX, le=CREDITS_MAX)]
    mode: Literal["live", "sandbox"]
    reference: Annotated[str, Meta(min_length=1, max_length=200)]


class CreditsGranted(MadeAnswer, frozen=True, kw_only=True):
    """What the merchant has now. `idempotent` is there, and true, where the reference was used before."""

    merchant_id: str
    system_credit: SystemCredit
