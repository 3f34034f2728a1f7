"""Bodies and answers of projects and their webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from cambist.services.identity.projects import GRACE_HOURS_MAX, Changes, Project
from cambist.services.webhooks.log import AttemptView, DeliveryView
from cambist_web.schemas import Answer, Body, Name, PageAnswer

Url = Annotated[str, Meta(min_length=1, max_length=2048)]
Json = Annotated[Any, Meta(description="The body as it was sent, byte for byte.")]
EventName = Annotated[str, Meta(min_length=1, max_length=64)]


class CreateProject(Body, frozen=True, kw_only=True):
    """A new project. Its mode stays what it is."""

    name: Name
    mode: Literal["live", "sandbox"]
    payment_webhook_url: Url | None = None


class ChangeProject(Body, frozen=True, kw_only=True):
    """What shall be different; what is left out stays. `webhookSigning: false` takes the signing secret away."""

    name: Name | UnsetType = UNSET
    payment_webhook_url: Url | UnsetType | None = UNSET
    webhook_signing: bool | UnsetType = UNSET
    underpayment_tolerance_percent: Decimal | UnsetType = UNSET
    grace_hours: Annotated[int, Meta(ge=0, le=GRACE_HOURS_MAX)] | UnsetType = UNSET
    extended_events: bool | UnsetType = UNSET
    sandbox_auto_mine: bool | UnsetType = UNSET
    is_active: bool | UnsetType = UNSET


class ProjectView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A project, as its merchant sees it."""

    project_id: str
    name: str
    mode: str
    payment_webhook_url: str | None
    webhook_signing: bool
    webhook_secret_rotated_at: datetime | None
    underpayment_tolerance_percent: float
    grace_hours: int
    extended_events: bool
    sandbox_auto_mine: bool
    is_active: bool
    created_at: datetime


class ProjectAnswer(Answer, frozen=True, kw_only=True):
    """One project. `webhookSecret` is there once, when it is new."""

    project: ProjectView
    webhook_secret: str | UnsetType = UNSET


class ProjectList(Answer, frozen=True, kw_only=True):
    """A merchant's projects."""

    projects: Sequence[ProjectView]


class SecretRotated(Answer, frozen=True, kw_only=True):
    """The new signing secret, shown once."""

    message: str
    webhook_secret: str
    rotated_at: datetime


class TestWebhook(Body, frozen=True, kw_only=True):
    """Which event to pretend, and where to send it, if not to the project's URL."""

    event: EventName
    url: Url | None = None


class TestResult(Answer, frozen=True, kw_only=True):
    """What came of a test delivery."""

    delivered: bool
    status_code: int | None
    duration_ms: int
    signature: str
    timestamp: str
    payload: Json
    response_body: str | None
    error: str | None


class AttemptAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """One attempt to deliver an event."""

    number: int
    attempted_at: datetime
    duration_ms: int
    status_code: int | None
    error: str | None
    response_body: str | None


class DeliveryAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """One event, what became of it, and every attempt to deliver it."""

    delivery_id: str
    event: str
    resource_id: str
    url: str | None
    status: str
    created_at: datetime
    delivered_at: datetime | None
    next_attempt_at: datetime | None
    payload: Json
    attempts: Sequence[AttemptAnswer]


class DeliveryDetail(Answer, frozen=True, kw_only=True):
    """One delivery."""

    delivery: DeliveryAnswer


class DeliveryList(PageAnswer, frozen=True, kw_only=True):
    """One page of a project's deliveries, newest first."""

    deliveries: Sequence[DeliveryAnswer]


def changes_of(data: ChangeProject) -> Changes:
    return Changes(**{name: getattr(data, name) for name in data.__struct_fields__})


def project_view(project: Project) -> ProjectView:
    return ProjectView(
        project_id=project.project_id,
        name=project.name,
        mode=project.mode,
        payment_webhook_url=project.payment_webhook_url,
        webhook_signing=project.signs_webhooks,
        webhook_secret_rotated_at=project.secret_rotated_at,
        underpayment_tolerance_percent=float(project.underpayment_tolerance_percent),
        grace_hours=project.grace_hours,
        extended_events=project.extended_events,
        sandbox_auto_mine=project.sandbox_auto_mine,
        is_active=project.is_active,
        created_at=project.created_at,
    )


def delivery_answer(delivery: DeliveryView) -> DeliveryAnswer:
    shown = {name: getattr(delivery, name) for name in delivery.__struct_fields__}
    return DeliveryAnswer(**shown | {"attempts": [_attempt(attempt) for attempt in delivery.attempts]})


def _attempt(attempt: AttemptView) -> AttemptAnswer:
    return AttemptAnswer(
        number=attempt.number,
        attempted_at=attempt.attempted_at,
        duration_ms=attempt.duration_ms,
        status_code=attempt.status_code,
        error=attempt.error,
        response_body=attempt.response,
    )
