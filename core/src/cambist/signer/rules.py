"""The operator's rules for the signer, in the units and addresses that payloads speak of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from msgspec import Struct, field, structs

from cambist.domain.destinations import normalized
from cambist.domain.intents import AskedBy
from cambist.domain.money import AmountError, parse_amount, parse_units
from cambist.plugin import AddressFamily, ChainInfo, InvalidAddressError, Token
from cambist.settings import UNLIMITED, AskerSettings, Settings, SettingsError
from cambist.settings import Caps as SettingsCaps

FRESH_ADDRESS_DELAY_S = 86_400
SESSION_FRESH_PAYOUTS_PER_HOUR = 20

REQUIRED = ("hourly_caps", "fee_caps", "fee_hourly_caps")
"""The settings without which nothing is signed in production."""

Caps = Mapping[str, int | None]
"""By name; None where the operator said that there is no limit."""


def asset_name(chain: str, contract: str | None) -> str:
    """Return the name of an asset: its contract's, for symbols can be configured anew."""
    return f"{chain}/{contract or 'native'}"


class AskerRules(Struct, frozen=True, kw_only=True):
    """What one kind of asker may have signed within an hour, for each merchant. What has no entry has no limit here."""

    hourly_caps: Caps = field(default_factory=dict)
    fresh_address_caps: Caps = field(default_factory=dict)
    fresh_payouts_per_hour: int | None = None


class Rules(Struct, frozen=True, kw_only=True):
    """What may be signed. Amounts are in smallest units; what has no entry has no limit.

    By asset: the most that leaves within an hour, the part of it that may go to fresh addresses without a delay, and
    the amount from which a person must agree. By chain: the only addresses that money may go to, the most a
    transaction may cost and all of them within an hour, and the contracts that may get power over an address of ours.
    By the assets that are sold and bought: how many smallest units at least must come for one.
    By who asks: caps of their own. Who is not in ``askers`` sends nothing to a fresh address before its delay.
    """

    hourly_caps: Caps = field(default_factory=dict)
    fresh_address_caps: Caps = field(default_factory=dict)
    askers: Mapping[str, AskerRules] = field(default_factory=dict)
    fresh_address_delay_s: int = 0
    approval_limits: Mapping[str, int] = field(default_factory=dict)
    allowed_addresses: Mapping[str, frozenset[str]] = field(default_factory=dict)
    fee_caps: Caps = field(default_factory=dict)
    fee_hourly_caps: Caps = field(default_factory=dict)
    delegates: Mapping[str, frozenset[str]] = field(default_factory=dict)
    floor_rates: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)


def load_rules(settings: Settings, chains: Mapping[str, ChainInfo], families: Mapping[str, AddressFamily]) -> Rules:
    """Read ``[signer]``.

    Raises SettingsError for what names no chain, token or address: a mistyped rule would otherwise be none.
    """
    reader = _Reader(chains, families)
    signer, delay_s = settings.signer, settings.signer.fresh_address_delay_s
    if delay_s is None:
        delay_s = FRESH_ADDRESS_DELAY_S if settings.production else 0
    shared = reader.caps("fresh_address_caps", signer.fresh_address_caps)
    return Rules(
        hourly_caps=reader.caps("hourly_caps", signer.hourly_caps),
        fresh_address_caps=shared,
        askers={
            AskedBy.SESSION: _session_rules(reader.asker("session", signer.session), shared, chains),
            AskedBy.KEY: reader.asker("key", signer.key),
        },
        fresh_address_delay_s=delay_s,
        approval_limits=reader.amounts("approval_limits", signer.approval_limits),
        allowed_addresses=reader.addresses("allowed_addresses", signer.allowed_addresses),
        fee_caps=reader.fee_caps("fee_caps", signer.fee_caps),
        fee_hourly_caps=reader.fee_caps("fee_hourly_caps", signer.fee_hourly_caps),
        delegates=reader.addresses("delegates", signer.delegates),
        floor_rates=reader.rates("floor_rates", signer.floor_rates),
    )


def _session_rules(found: AskerRules, shared: Caps, chains: Mapping[str, ChainInfo]) -> AskerRules:
    """Return the caps of sessions. Where an asset has no cap for fresh addresses, own or shared, it is 0."""
    own: dict[str, int | None] = dict.fromkeys(_assets(chains.values()).keys() - shared.keys(), 0)
    return structs.replace(found, fresh_address_caps=own | dict(found.fresh_address_caps))


def _assets(chains: Iterable[ChainInfo]) -> dict[str, Token]:
    return {asset_name(chain.id, token.contract): token for chain in chains for token in chain.tokens}


def unlimited(rules: Rules, chains: Mapping[str, ChainInfo]) -> Sequence[str]:
    """Return what a stolen database and API could take without limit, a sentence for each rule that is missing."""
    wanted = [*REQUIRED, "fresh_address_caps"] if rules.fresh_address_delay_s else REQUIRED
    return _missing(rules, chains, wanted)


def check_caps(rules: Rules, chains: Mapping[str, ChainInfo]) -> None:
    """Check that the caps are set which bound a theft of real money. Raises SettingsError, naming what lacks.

    Said to be "unlimited" on purpose, nothing lacks.
    """
    if sentences := _missing(rules, chains, REQUIRED):
        raise SettingsError(f"{sentences[0]}: in production each needs an amount, or {UNLIMITED!r} to have none.")


def said_unlimited(rules: Rules, chains: Mapping[str, ChainInfo]) -> Sequence[str]:
    """Return where the operator said that there is no limit, a sentence for each setting."""
    found = []
    for setting, names in _limited(chains).items():
        free = [label for name, label in names.items() if getattr(rules, setting).get(name, 0) is None]
        if free:
            found.append(f"signer.{setting} is unlimited for {', '.join(free)}")
    return found


def _missing(rules: Rules, chains: Mapping[str, ChainInfo], settings: Sequence[str]) -> list[str]:
    found = []
    for setting, names in _limited(chains).items():
        missing = [label for name, label in names.items() if name not in getattr(rules, setting)]
        if missing and setting in settings:
            found.append(f"signer.{setting} has no entry for {', '.join(missing)}")
    return found


def _limited(chains: Mapping[str, ChainInfo]) -> Mapping[str, Mapping[str, str]]:
    """Return by setting what needs a cap: its name in the rules, and as it is written in the settings."""
    live = [chain for chain in chains.values() if chain.availability == "live"]
    tokens = {
        asset_name(chain.id, token.contract): f"{chain.id}/{token.symbol}" for chain in live for token in chain.tokens
    }
    fees = {chain.id: chain.id for chain in live}
    return {"hourly_caps": tokens, "fresh_address_caps": tokens, "fee_caps": fees, "fee_hourly_caps": fees}


class _Reader:
    def __init__(self, chains: Mapping[str, ChainInfo], families: Mapping[str, AddressFamily]) -> None:
        self._chains = chains
        self._families = families

    def amounts(self, setting: str, table: Mapping[str, str]) -> Mapping[str, int]:
        found = {}
        for name, text in table.items():
            asset, token = self._token(setting, name)
            found[asset] = _units(setting, name, text, token)
        return found

    def caps(self, setting: str, table: SettingsCaps) -> Caps:
        if isinstance(table, str):
            return dict.fromkeys(_assets(self._chains.values()))
        found: dict[str, int | None] = {}
        for name, text in table.items():
            asset, token = self._token(setting, name)
            found[asset] = None if text == UNLIMITED else _units(setting, name, text, token)
        return found

    def fee_caps(self, setting: str, table: SettingsCaps) -> Caps:
        if isinstance(table, str):
            return dict.fromkeys(self._chains)
        found: dict[str, int | None] = {}
        for name, text in table.items():
            native = self._chain(setting, name).native
            found[name] = None if text == UNLIMITED else _units(setting, name, text, native)
        return found

    def asker(self, name: str, asker: AskerSettings) -> AskerRules:
        count = asker.fresh_payouts_per_hour
        if count is None and name == AskedBy.SESSION:
            count = SESSION_FRESH_PAYOUTS_PER_HOUR
        return AskerRules(
            hourly_caps=self.caps(f"{name}.hourly_caps", asker.hourly_caps),
            fresh_address_caps=self.caps(f"{name}.fresh_address_caps", asker.fresh_address_caps),
            fresh_payouts_per_hour=None if isinstance(count, str) else count,
        )

    def rates(self, setting: str, table: Mapping[str, str]) -> Mapping[tuple[str, str], Fraction]:
        found = {}
        for name, text in table.items():
            sold, arrow, bought = name.partition(" -> ")
            if not arrow:
                raise SettingsError(f"signer.{setting}: {name!r} is no pair, as in 'ethereum/ETH -> ethereum/USDT'.")
            (sold_asset, sold_token), (bought_asset, bought_token) = (
                self._token(setting, one) for one in (sold, bought)
            )
            rate = _rate(setting, name, text)
            found[sold_asset, bought_asset] = rate * 10**bought_token.decimals / 10**sold_token.decimals
        return found

    def _token(self, setting: str, name: str) -> tuple[str, Token]:
        chain_id, _, symbol = name.partition("/")
        token = self._chain(setting, chain_id).token(symbol)
        if token is None:
            raise SettingsError(f"signer.{setting}: {name!r} names no token of {chain_id}, as in 'ethereum/USDT'.")
        return asset_name(chain_id, token.contract), token

    def addresses(self, setting: str, table: Mapping[str, Sequence[str]]) -> Mapping[str, frozenset[str]]:
        found = {}
        for name, texts in table.items():
            family = self._families[self._chain(setting, name).family]
            try:
                found[name] = frozenset(normalized(family, text) for text in texts)
            except InvalidAddressError as error:
                raise SettingsError(f"signer.{setting}.{name}: {error}.") from error
        return found

    def _chain(self, setting: str, chain_id: str) -> ChainInfo:
        chain = self._chains.get(chain_id)
        if chain is None:
            raise SettingsError(f"signer.{setting}: there is no chain {chain_id!r}.")
        return chain


def _rate(setting: str, name: str, text: str) -> Fraction:
    try:
        rate = Fraction(parse_amount(text))
    except AmountError as error:
        raise SettingsError(f"signer.{setting}: the rate of {name!r} {error}.") from error
    if not rate:
        raise SettingsError(f"signer.{setting}: the rate of {name!r} is zero, which is no floor.")
    return rate


def _units(setting: str, name: str, text: str, token: Token) -> int:
    try:
        return parse_units(text, token.decimals)
    except AmountError as error:
        raise SettingsError(f"signer.{setting}: the amount of {name!r} {error}.") from error
