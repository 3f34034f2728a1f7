"""A sentence for each field and parameter of the API, by its name: what the description says of it.

Where a name means something else in one Struct, ``openapi_own_words.py`` has a sentence for that Struct's field.
A field that holds a Struct, or several, needs none: the Struct's docstring is shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from .openapi_words_m_to_z import M_TO_Z

_A_TO_L = """
accepted_rows               How many rows became payouts.
access_token                The token for `Authorization: Bearer`.
action                      What is done with the stake.
added                       How many addresses were added.
added_at                    When the address was added.
address                     The address, as its chain spells it.
addresses                   How many addresses there are.
addresses_max               How many addresses a tracker may watch.
addresses_most              How many addresses the fullest tracker watches.
age_seconds                 How many seconds ago that was.
allowed_ips                 Addresses and networks from which the key is taken; empty for every address.
amount                      The amount, a decimal number as text.
api_key                     The key, shown this once.
api_method                  Credits for one call of the API.
approval_id                 The approved address's id.
approvals_by_api            Whether the signer takes answers that come over the API.
approved_at                 When the address was approved.
archived                    Whether nobody may be given the plan any more.
archived_at                 Since when nobody may be given the plan.
asked_by                    Who asked for it.
attempted_at                When the attempt was made.
attempts                    How many attempts were made.
auth_token                  The token that manages the tracker, for the header `X-Auth-Token`.
auto_convert_dest_chain     The chain on which auto-convert pays out; null for the deposit's own.
auto_convert_dest_token     The token into which deposits are converted; null where they are not.
auto_convert_enabled        Whether deposits are converted by themselves.
auto_convert_markup_bps     What auto-convert costs beside the swap or bridge, in hundredths of a percent.
auto_convert_markup_percent What auto-convert costs beside the swap or bridge, in percent.
auto_convert_min_usd        How much must be there before it is converted, in US dollars.
auto_convert_minimum_usd    How much must be there before it is converted, in US dollars.
autopayout_address          Where auto-payouts go; null for none.
autopayout_minimum_usd      The least that an auto-payout is worth, in US dollars.
autopayout_policy           Whether the balance is paid out by itself once it reaches the threshold.
autopayout_threshold        The balance at which it is paid out, in tokens.
availability                Whether the chain is real, simulated, or has no endpoints.
balance                     What there is, as a decimal number.
batched                     Whether many deposits may be collected in one transaction.
block_hash                  The block's hash.
block_number                The block's height.
block_time                  When the block was made.
blocks                      How many blocks are mined.
bridge                      Credits for a bridge.
bridge_enabled              Whether bridges are offered.
bridge_fee_bps              What the platform keeps of a bridge, in hundredths of a percent.
bridge_fee_percent          What the platform keeps of a bridge, in percent.
calls                       How many calls were made since it was connected.
calls_per_minute            How many calls a minute are made.
can_accept                  Whether its payment or account could take the deposit.
cancel_url                  Where the checkout sends a customer who gives up.
chain                       The chain, by the name that the list of chains has.
chain_id_num                The EVM's chain id; null where the chain runs no EVM.
chain_name                  The chain's name for people.
chains                      The chains, by the names that the list of chains has.
changeable                  Whether endpoints and tokens can be added while it runs.
checked_at                  When this was seen.
checkout_url                The page where the customer pays.
checks                      What was looked at, and `ok` or what is wrong with it.
code                        A name for programs.
collection                  Credits for moving a deposit to the main wallet.
completed_at                When it ended; null before.
confirmations               How many blocks stand on top of the transaction's own.
confirmed_at                When it had its confirmations; null before.
connected                   Whether a worker reads it; null where it is not live.
contract                    The token's contract.
contract_address            The token's contract; null for the chain's own coin.
counted                     Whether the deposit counts for its payment or account.
cpt_included                How many usage credits the plan has for a month; null where nothing is included.
cpt_per_month               How many usage credits the plan has for a month; null for none.
created_at                  When it was made.
created_by                  The id of the member who made it; null where nobody in person did.
credentials_rotated_at      When the credentials were last replaced; null where they never were.
currency                    The currency's code.
current                     Whether this is the session that asks.
current_password            The password in force.
customer_email              The customer's e-mail address.
customer_name               The customer's name.
decimals                    How many decimal places the token has.
default_confirmations       How many confirmations the chain's deposits need unless something else is set.
default_enabled             Whether merchants have it without being named.
default_slippage            The slippage where a request says none, in percent.
default_slippage_bps        The slippage where a request says none, in hundredths of a percent.
delivered                   Whether the receiver took it.
delivered_at                When it was taken; null before.
deposit_address             Where the payment takes deposits.
deposit_url                 The page that shows the account's addresses.
deposits                    How many deposits it is made of.
deposits_left_out           How many older deposits are not shown.
depth                       How many blocks are replaced.
derived_at                  When it was derived.
dest_amount                 What came out, in tokens; null before.
dest_amount_min             The least that may come out, in tokens.
dest_chain                  The chain on which it comes out.
dest_token                  The token that comes out.
dest_tx_hash                The transaction in which it came out; null before.
direction                   Whether money came or went, as seen from the address.
disabled_at                 Since when the operator may do nothing; null where that is not so.
dst_amount                  What would come out, in tokens.
dst_amount_min              The least that may come out, in tokens.
dst_amount_min_raw          The least that may come out, in the token's smallest unit.
dst_amount_raw              What would come out, in the token's smallest unit.
duration_ms                 How long it took, in milliseconds.
email                       The e-mail address.
enabled                     Whether it is on.
endpoint_id                 The endpoint's id; null for the default target.
error                       What went wrong, in a sentence; null where nothing did.
estimated_fill_seconds      How long the bridge takes, in seconds, as its provider says.
event                       The event's name.
event_id                    The event's id, the same as `X-Webhook-Id`.
events                      The names of the events that it is told of; empty for all.
exchange_rate               How much fiat one token costs.
exists                      How many addresses were watched already.
expected_amount             What is expected, in tokens.
expected_amount_raw         What is expected, in the token's smallest unit.
expires_at                  Until when it is good.
expires_in                  For how long it is good, in seconds.
expires_in_minutes          For how long it is good, in minutes.
extended_events             Whether the project is told of the events that it has to ask for.
external_id                 Your own id for the end user.
failing_since               Since when polls fail; null where they do not.
failures                    How many calls have failed since it was connected.
family                      The family of chains that the address is of.
fiat_currency               The fiat currency's code.
fiat_reason                 Why no worth is known; null where one is.
fill_deadline               Until when the bridge pays out; what was given after that comes back.
finality_required           Whether deposits wait for the chain to call their block final.
finalized_height            The last block that the chain calls final; null before it was read.
floor                       The balance below which payouts are refused.
fresh_address_delay_seconds How long an address must be known before much is sent to it, in seconds.
from_address                Where it came from; null where the chain does not tell.
from_block                  The first block that is read; null before reading begins.
from_height                 The first block that is read again.
grace_hours                 For how many hours after its end a payment still takes deposits.
has_earlier                 Whether there are more, older ones.
has_tracker                 Whether trackers are part of the plan.
has_two_factor              Whether an authenticator is enrolled.
head                        The chain's newest block when it was last read; null before.
healthy                     Whether it answers as it should; null before it was asked.
height                      The block's height.
held                        What waits for its order to end, or for a decision, in tokens.
held_amount                 What waits for a decision, in tokens.
held_reason                 Why the deposit waits for a decision; null where it does not.
hint                        The beginning of the key, to tell it from others.
how                         How it fails.
id                          The entry's id.
idempotency_key             Your own key for this request: sent again, it does nothing a second time.
idempotent                  There, and true, where this was done before and nothing happened now.
incarnation                 Counts how often the deposit was mined: above 1 after a reorg.
index                       The place in the request, from 0.
initial_allowance           The usage credits that a new merchant begins with.
invalid                     How many addresses are none.
invited_by                  The id of the member who invited; null where the operator did.
ip                          The address from which the session was last used.
is_active                   Whether it is active.
is_default                  Whether merchants have this plan who were given no other.
is_delayed                  Whether the chain cannot be followed at present.
is_evm                      Whether the chain runs the EVM.
is_low                      Whether the station needs more coin; null before it was seen.
is_public                   Whether the plan is shown to everybody.
is_set_aside                Whether nobody believes it at present.
is_stale                    Whether nothing was heard of it for a while.
is_test                     There, and true, on test deliveries.
keys_revoked                How many API keys were revoked.
kind                        What kind it is.
label                       A name for people.
lag_blocks                  How many blocks are not read yet.
lag_seconds                 How long ago the last block that was read was made, in seconds.
last_error                  What went wrong last, in a sentence; null where nothing did.
last_used_at                When it was last used; null before.
last_used_ip                From which address it was last used; null before.
latency_ms                  How long an answer takes, in milliseconds.
least_amount                The least that arrives, in tokens: less is refused.
least_rates                 How many tokens there must be at least for each that is given, by pair.
leaving                     What is being unstaked, in coin.
lendable                    What can be lent, in coin.
lent                        What is lent now, in coin.
limit                       How many there are on a page at most.
link                        A link that is shown this once.
live                        Whether the merchant has live mode.
locked_until                Until when the signer takes no answer; null where it does.
"""


def read(lines: str) -> Mapping[str, str]:
    """Return the sentence of each name: one of both a line."""
    return dict(line.split(maxsplit=1) for line in lines.strip().splitlines())


WORDS: Mapping[str, str] = read(_A_TO_L + M_TO_Z)
