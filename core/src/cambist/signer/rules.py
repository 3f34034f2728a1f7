"""The operator's rules for the signer, in the units and addresses that payloads speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from cambist.domain.money import AmountError, parse_units
from cambist.plugin import AddressFamily, ChainInfo, InvalidAddressError, Token
from cambist.settings import Settings, SettingsError

FRESH_ADDRESS_DELAY_S = 86_400


def asset_name(chain: str, contract: str | None) -> str:
    """Return the name of an asset: its contract's, for symbols can be configured anew."""
    return f"{chain}/{contract or 'native'}"


class Rules(Struct, frozen=True, kw_only=True):
    """What may be signed. Amounts are in smallest units; what has no entry has no limit.

    By asset: the most that leaves within an hour, the part of it that may go to fresh addresses without a delay, and
    the amount from which a person must agree. By chain: the only addresses that money may go to, the most a
    transaction may cost and all of them within an hour, and the contracts that may get power over an address of ours.
    """

    hourly_caps: Mapping[str, int] = field(default_factory=dict)
    fresh_address_caps: Mapping[str, int] = field(default_factory=dict)
    fresh_address_delay_s: int = 0
    approval_limits: Mapping[str, int] = field(default_factory=dict)
    allowed_addresses: Mapping[str, frozenset[str]] = field(default_factory=dict)
    fee_caps: Mapping[str, int] = field(default_factory=dict)
    fee_hourly_caps: Mapping[str, int] = field(default_factory=dict)
    delegates: Mapping[str, frozenset[str]] = field(default_factory=dict)


def load_rules(settings: Settings, chains: Mapping[str, ChainInfo], families: Mapping[str, AddressFamily]) -> Rules:
    """Read ``[signer]``.

    Raises SettingsError for what names no chain, token or address: a mistyped rule would otherwise be none.
    """
    reader = _Reader(chains, families)
    signer, delay_s = settings.signer, settings.signer.fresh_address_delay_s
    if delay_s is None:
        delay_s = FRESH_ADDRESS_DELAY_S if settings.production else 0
    return Rules(
        hourly_caps=reader.amounts("hourly_caps", signer.hourly_caps),
        fresh_address_caps=reader.amounts("fresh_address_caps", signer.fresh_address_caps),
        fresh_address_delay_s=delay_s,
        approval_limits=reader.amounts("approval_limits", signer.approval_limits),
        allowed_addresses=reader.addresses("allowed_addresses", signer.allowed_addresses),
        fee_caps=reader.fees("fee_caps", signer.fee_caps),
        fee_hourly_caps=reader.fees("fee_hourly_caps", signer.fee_hourly_caps),
        delegates=reader.addresses("delegates", signer.delegates),
    )


def unlimited(rules: Rules, chains: Mapping[str, ChainInfo]) -> Sequence[str]:
    """Return what a stolen database and API could take without limit, a sentence for each rule that is missing."""
    live = [chain for chain in chains.values() if chain.availability == "live"]
    tokens = {
        asset_name(chain.id, token.contract): f"{chain.id}/{token.symbol}" for chain in live for token in chain.tokens
    }
    fees = {chain.id: chain.id for chain in live}
    wanted = [("hourly_caps", tokens), ("fee_caps", fees), ("fee_hourly_caps", fees)]
    if rules.fresh_address_delay_s:
        wanted.insert(1, ("fresh_address_caps", tokens))
    found = []
    for setting, names in wanted:
        missing = [label for name, label in names.items() if name not in getattr(rules, setting)]
        if missing:
            found.append(f"signer.{setting} has no entry for {', '.join(missing)}")
    return found


class _Reader:
    def __init__(self, chains: Mapping[str, ChainInfo], families: Mapping[str, AddressFamily]) -> None:
        self._chains = chains
        self._families = families

    def amounts(self, setting: str, table: Mapping[str, str]) -> Mapping[str, int]:
        found = {}
        for name, text in table.items():
            chain_id, _, symbol = name.partition("/")
            token = self._chain(setting, chain_id).token(symbol)
            if token is None:
                raise SettingsError(f"signer.{setting}: {name!r} names no token of {chain_id}, as in 'ethereum/USDT'.")
            found[asset_name(chain_id, token.contract)] = _units(setting, name, text, token)
        return found

    def fees(self, setting: str, table: Mapping[str, str]) -> Mapping[str, int]:
        return {name: _units(setting, name, text, self._chain(setting, name).native) for name, text in table.items()}

    def addresses(self, setting: str, table: Mapping[str, Sequence[str]]) -> Mapping[str, frozenset[str]]:
        found = {}
        for name, texts in table.items():
            family = self._families[self._chain(setting, name).family]
            try:
                found[name] = frozenset(family.normalize_address(text) for text in texts)
            except InvalidAddressError as error:
                raise SettingsError(f"signer.{setting}.{name}: {error}.") from error
        return found

    def _chain(self, setting: str, chain_id: str) -> ChainInfo:
        chain = self._chains.get(chain_id)
        if chain is None:
            raise SettingsError(f"signer.{setting}: there is no chain {chain_id!r}.")
        return chain


def _units(setting: str, name: str, text: str, token: Token) -> int:
    try:
        return parse_units(text, token.decimals)
    except AmountError as error:
        raise SettingsError(f"signer.{setting}: the amount of {name!r} {error}.") from error
