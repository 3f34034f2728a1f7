"""Every table, one module per noun."""

from .accounts import Account, AccountChain
from .audit import AuditEntry, AuditSeal
from .base import Base
from .chains import ChainEndpoint, ChainState, ChainToken, TokenMerchant
from .changes import Change
from .collections import UncollectedFunds
from .deposits import ChainBlock, Cursor, Deposit
from .exchanges import Exchange, ExchangePart
from .jobs import CronRun, Job, JobOutput
from .ledger import LedgerAccount, LedgerMovement, LedgerTransaction
from .merchants import (
    AccountKey,
    Member,
    MemberInvitation,
    Merchant,
    PasswordReset,
    RecoveryCode,
    Session,
    TwoFactorState,
)
from .operators import Operator, OperatorLink, OperatorRecoveryCode, OperatorSession, OperatorTwoFactor
from .outbound import GasStation, OutboundIntent, OutboundSender, OutboundSlot, OutboundTx
from .payments import Address, IdempotencyKey, KeptAnswer, Payment
from .payouts import ApprovedAddress, CoinSettings, Payout, PayoutBatch, RefundPart
from .people import PasswordLink, Person, PersonRecoveryCode, PersonSession, PersonTwoFactor
from .plans import CptMonth, Plan
from .platform import (
    ChainPause,
    PayoutMinimum,
    PlatformSettings,
    PriceMissing,
    PricePoint,
    PriceSourceSetAside,
    PriceSourceState,
    SignerAnswer,
    SignerReport,
    UsageRecord,
)
from .projects import ApiKey, Project
from .sandbox import SandboxBlock, SandboxChain, SandboxTransfer
from .trackers import (
    DeferredStage,
    Movement,
    MovementStage,
    TrackedAddress,
    Tracker,
    TrackerAddress,
    TrackerCursor,
    TrackerHistory,
    TrackerTransaction,
)
from .webhooks import WebhookAttempt, WebhookDelivery, WebhookEndpoint, WebhookEvent
