"""The second half of the sentences of ``openapi_words.py``."""

M_TO_Z = """\
max_age_seconds             How many seconds old a price may be.
max_addresses               How many addresses a tracker may watch.
max_age_hours               After how many hours a deposit is collected whatever it costs.
max_cpt                     Where the tier ends; null for the last one.
max_deviation_percent       How far from the median of all a price may be, in percent.
max_fee_share_bps           How much of its worth collecting a deposit may cost, in hundredths of a percent.
max_webhooks                How many active trackers there may be in each mode.
merchant_name               The merchant's name.
project_name                The name of the project; null where it is of no single one.
merchants                   How many merchants were given it.
message                     A sentence for people.
metadata                    What you hang on it: it comes back as it was sent.
min_amount                  The least that may come out, in tokens.
min_cpt                     Where the tier begins.
min_deposit                 The least deposit that counts, in tokens; null for any.
min_sources                 How many sources must agree.
min_value_usd               What a deposit must be worth to be collected, in US dollars.
mined_at                    When the block was made.
minimum                     The least that one payout sends, in tokens.
mode                        Whether real money is meant, or simulated chains.
more                        Whether asking again would start more.
name                        The name.
native_gas_max              How much gas a transfer of native coin may take, by project.
native_price                The native coin's price in US dollars.
native_symbol               The symbol of the chain's own coin.
new_password                The password to set.
next_attempt_at             When the next attempt is due; null where there is none.
next_cursor                 The `cursor` of the next page; null on the last one.
not_watched                 How many addresses were not watched.
number                      The attempt's number, from 1.
observed_at                 When the rate was seen.
operation                   What the credits were used for.
order_id                    Your own id for the order.
origin                      Whether the operator's file has it, or it was added.
orphaned_at                 When a reorg took the deposit away; null where none did.
otpauth_uri                 The secret as a link that an authenticator opens.
outcome                     What the signer said to it; null while it waits.
over_limit                  How many addresses the limit left out.
overlap_minutes             For how many minutes the old secret goes on signing beside the new one.
page                        Which page it is, from 1.
password                    The password.
paused                      Whether nothing is sent to it.
paused_by                   Who paused it: an operator's id, or `admin key`.
payment                     Credits for a payment.
payment_status              The payment's status; null without a payment.
payment_webhook_url         Where the project is told of events; null for nowhere.
payout                      Credits for a payout.
payout_enabled              Whether payouts may be asked for.
payout_minimum_fees         How many times its fee a payout must be worth.
payout_swap_enabled         Whether a payout may swap.
pending                     What is on its way, in tokens.
per_day                     How much may leave in 24 hours, in tokens; null for as much as there is.
per_transaction             How much may leave at once, in tokens; null for as much as there is.
permissions                 What the role permits.
polled_at                   When the chain was last read, to within five seconds; null before.
previous_secret_until       Until when the secret before signs, too; null where it does not.
price                       What one whole token costs, as this source says.
price_guard_bps             How much below the market a price may be, in hundredths of a percent.
price_usd                   The price in US dollars; null for none.
pricing_mode                Whether the amount is in tokens, or in fiat.
problem                     Why it is not connected; null where nothing is wrong.
project_ids                 The projects that are open to the member; null for all.
provider                    Who provides it.
providers                   Which providers are asked, by name; all that are not switched off.
public_id                   The id that is in addresses of public pages.
purpose                     What the money is sent for.
qr_code                     A QR code, as a `data:` URI of an SVG.
question                    The question that is answered, as the signer asks it.
queued                      How many deliveries were started.
quorum                      How many endpoints must agree.
rate                        The rate, a decimal number as text.
rate_limited                How many calls were refused as too many.
rate_source                 Which price source the rate is of.
read_block                  The last block that was read; null before reading begins.
reason                      Why, or null.
receipt_url                 The page that shows the receipt.
receivable                  There, and negative, where a reorg took back what was spent.
received_amount             What came, in tokens.
recipient                   Where it goes.
recovery_codes              Codes for when the authenticator is lost, each good for one time.
recovery_codes_left         How many recovery codes are left.
reference                   What it was for.
refund                      Credits for a refund.
refunded_amount             What was sent back, or is about to be, in tokens.
refusal                     A name for programs.
rejected_rows               How many rows were refused.
remaining_amount            What remains to be paid, in tokens.
removed                     How many addresses were removed.
replaces                    What it takes the place of.
replayed_rows               How many rows were done before.
requests_per_minute         How many requests a minute a key may make; null for the installation's own limit.
required_confirmations      How many confirmations it needs.
resolution                  What was decided; null before.
resolved_at                 When it was decided; null before.
resource                    What kind of thing the event is about.
resource_id                 The id of what the event is about.
response_body               The beginning of what the receiver answered.
result                      What became of it.
role                        The role.
rotated_at                  When it was replaced.
row                         The row's number, from 0.
sandbox_auto_mine           Whether simulated chains mine by themselves.
sandbox_only                There, and true, with chains for sandbox projects alone.
scopes                      What the key may do.
seconds                     How much time passes, in seconds.
secret                      The authenticator's secret, to type.
secret_key                  The secret that signs deliveries, shown this once.
secret_rotated_at           When the secret was last replaced; null where it never was.
seen_at                     When it was first seen.
sendable                    Whether it can be sent.
sendable_reason             Why nothing of it leaves; null where it can be sent.
sender                      Where it comes from; null where the chain does not tell.
sending_paused              Whether what is to be sent waits for the operator.
set_aside_at                Since when nobody believes it; null where it is believed.
set_aside_by                Who set it aside: an operator's identifier, or `admin key`; null where nobody has.
set_aside                   Why it is not asked now; null where it is.
setting                     The setting's name in the signer's file.
setup_problem               Why a change does not hold; null where it does.
shop_name                   The shop's name.
signature                   The signature that was sent.
since                       From when, included.
since_height                The block from which on its transfers are found.
slippage                    How much less than quoted may come out, in percent.
slippage_percent            How much less than quoted may come out, in percent.
source                      Which price source it is of.
spread_percent              How far the highest fresh price is above the lowest, in percent; null for fewer than two.
source_amount               What is given, in tokens.
source_chain                The chain on which it is given.
source_token                The token that is given.
src_amount                  What is given, in tokens.
src_amount_raw              What is given, in the token's smallest unit.
src_chain                   The chain on which it is given.
src_token                   The token that is given.
stake_id                    The change's id.
staked                      What is staked, in coin.
start_block                 The first block that the tracker tells of; null for the newest at the time.
state                       How far it has come.
status                      How far it has come.
status_code                 The status that the receiver answered; null without an answer.
step_up_until               Until when the session has stepped up; null where it has not.
success                     True: it went well.
success_url                 Where the checkout sends a customer who has paid.
swap                        Credits for a swap.
swap_enabled                Whether swaps are offered.
swap_fee_bps                What the platform keeps of a swap, in hundredths of a percent.
swap_fee_percent            What the platform keeps of a swap, in percent.
symbol                      The token's symbol.
targets                     Where money may be sent, by chain; where a chain is missing, anywhere.
timestamp                   When it happened.
to_address                  Where it goes.
to_block                    The last block that is read; null before reading begins.
to_chain                    The chain on which it arrives.
to_height                   The last block that is read again; without it the last one that was read.
to_tag                      The memo or tag of the address, on chains that have one.
token                       The token, by its symbol.
token_label                 The token's name for people.
token_price                 The token's price in US dollars.
token_type                  How the token is sent.
tokens                      How many tokens it has.
total                       How many there are on all pages, exactly up to 10,000, which is that many or more.
total_amount                What was debited, in tokens.
total_is_exact              Whether `total` is how many there are; false where there are that many or more.
totp_code                   The code that the authenticator shows, or a recovery code.
tracker                     Credits for an active tracker and month.
transactions                What becomes of the transactions in replaced blocks.
tx_hash                     The transaction's hash; null before there is one.
txn_id                      The exchange's id.
type                        What kind of change it is.
underpayment_tolerance_percent How much less than asked for is enough, in percent.
until                       Until when, not included.
untold_movements            How many movements of the past are not told yet.
updated_at                  When it last changed.
uri                         The text of the QR code.
url                         Where it is sent.
usd                         What it was worth in US dollars.
used                        What was used of it in the last hours; null where that is not counted.
user_agent                  The browser, as it calls itself.
valid_minutes               For how many minutes an offer is good.
valid_until                 Until when the quote is good.
verdict                     Whether it is approved or refused.
version                     The version that runs.
waiting                     How many wait for it.
waits_for                   What it waits for, in a word such as `gas` or `signer: HOURLY_CAP`; null where it does not.
waits_for_text              What it waits for, in a sentence; null where it does not.
warning                     What to do with it.
webhook_delivery            Credits for a delivery.
webhook_id                  The tracker's id.
webhook_secret              The secret that signs webhooks, shown this once.
webhook_secret_rotated_at   When the signing secret was last replaced; null where it never was.
webhook_signing             Whether webhooks are signed.
webhook_url                 Where this payment is told of; null for the project's own.
webhooks                    How many active trackers there are.
webhooks_max                How many active trackers there may be in each mode.
withdrawable                What can be taken back, in coin.
withdrawal                  Credits for a withdrawal.
"""
