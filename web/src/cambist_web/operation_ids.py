"""What each operation is called in the API's description, and so in every client that is generated from it.

A name stays when its handler, its path or its summary changes: clients have it in their code. What sessions do below
``/api/dashboard/projects/{projectId}`` goes by the same name with ``InProject``. A handler without a name fails as
soon as the description is built.
"""

from __future__ import annotations

from collections.abc import Mapping

from litestar.handlers import HTTPRouteHandler
from litestar.types import Method
from litestar.types.internal_types import PathParameterDefinition

_NAMES = """
account_pages.AccountPages       read getPublicAccount
health.Health                    live getLiveness · ready getReadiness
accounts.Accounts                list listAccounts · create createAccount · read getAccount
accounts.Accounts                balances getAccountBalances · deposits listAccountDeposits
accounts.Accounts                add_chains addAccountChains · activate activateAccount · deactivate deactivateAccount
admin.Credits                    grant grantCredits
admin.MerchantSessions           end endMerchantSessions
admin.PlatformSettingsRoutes     read getPlatformSettings · change changePlatformSettings
admin_tokens.Tokens              list listAdminTokens · add addToken · read getToken · change changeToken
admin_jobs.Jobs                  list listJobs · recurring listRecurringJobs · ask createJob · read getJob
admin_jobs.Jobs                  output getJobOutput · retry retryJob · cancel cancelJob
admin_merchants.Grants           grant changeMerchant
admin_merchants.NewMerchants     make createMerchant
admin_merchants.PasswordResets   issue createPasswordReset
admin_reconcile.Reconcile        start createReconcileRun · list listReconcileRuns · read getReconcileRun
admin_reconcile.Reconcile        differences listReconcileDifferences
admin_resolutions.AllResolutions list listAllResolutions · read getAnyResolution · accept acceptDepositForMerchant
admin_resolutions.AllResolutions release releaseDepositForMerchant
admin_webhooks.AllWebhooks       list listAllDeliveries · read getAnyDelivery · failing listFailingReceivers
admin_webhooks.AllWebhooks       redeliver createRedelivery · redeliver_one redeliverAnyDelivery
all_incoming.Everything          search searchEverything
all_incoming.AllPayments         list listAllPayments · read getAnyPayment
all_incoming.AllDeposits         list listAllDeposits · read getAnyDeposit
all_incoming.AllAccounts         list listAllAccounts · read getAnyAccount
all_incoming.AllTrackers         list listAllTrackers · read getAnyTracker
all_outgoing.AllPayouts          list listAllPayouts · read getAnyPayout
all_outgoing.AllRefunds          list listAllRefunds · read getAnyRefund
all_outgoing.AllWithdrawals      list listAllWithdrawals · read getAnyWithdrawal
all_outgoing.AllExchanges        list listAllExchanges · read getAnyExchange
api_keys.Keys                    list listApiKeys · issue createApiKey · revoke revokeApiKey
approved_addresses.ApprovedAddresses list listApprovedAddresses · approve approveAddress · delete removeApprovedAddress
audit_trail.AllEntries           list listAuditEntries · verify verifyAudit
audit_trail.OwnEntries           list listOwnAuditEntries
chain_steering.ChainSteering     pause pauseChain · resume resumeChain · rescan rescanChain
chains.Chains                    list listAdminChains · read getAdminChain · add_endpoint addChainEndpoint
chains.Chains                    read_endpoint getChainEndpoint · remove_endpoint removeChainEndpoint
coins.Coins                      list listCoins · replace replaceCoins · change changeCoinSettings
collections.AllCollections       list listAllCollections
collections.Collections          list listCollections
deliveries.Deliveries            list listDeliveries · read getDelivery · redeliver redeliverDelivery
deliveries.WebhookTests          send sendTestWebhook
discovery.Discovery              chains listChains · tokens listTokens
events.Events                    list listEvents · read getEvent · redeliver redeliverEvent
events.Events                    redeliver_failed redeliverFailedEvents
exchanges.Exchanges              quote_swap quoteSwap · execute_swap executeSwap · quote_bridge quoteBridge
exchanges.Exchanges              execute_bridge executeBridge · list listExchanges · read getExchange
exchanges.Exchanges              platform_fees getPlatformFees · pairs listPairs
gas_stations.GasStations         list listGasStations
merchant_pages.MerchantPages     list listMerchants · read getMerchant · limit setMerchantLimits
merchants.Auth                   register register · login signIn · logout signOut · refresh refreshSession
merchants.Auth                   request_reset requestPasswordReset · confirm_reset confirmPasswordReset
operator_in_person.OperatorInPerson me getOperatorMe · change_password changeOperatorPassword
operator_in_person.OperatorInPerson renew_recovery_codes renewOperatorRecoveryCodes · step_up stepUpOperator
operator_in_person.OperatorInPerson sign_out_everywhere signOutOperatorEverywhere
operator_in_person.OperatorInPerson list_sessions listOperatorSessions · end endOperatorSession
operator_in_person.OperatorInPerson end_others endOtherOperatorSessions
operator_sessions.OperatorAuth   sign_in signInOperator · sign_out signOutOperator · refresh refreshOperatorSession
operator_sessions.OperatorAuth   set_password setOperatorPassword · enrol enrolOperatorTwoFactor
operator_sessions.OperatorAuth   confirm confirmOperatorTwoFactor
operators.Operators              list listOperators · invite inviteOperator · change changeOperator
operators.Operators              link createOperatorLink
operators.Operators              disable disableOperator · enable enableOperator
operators.Operators              reset_two_factor resetOperatorTwoFactor
outbound.Outbound                list listOutbound · read getOutbound · retry retryOutbound
outbound.Outbound                cancel cancelOutbound · raise_fee raiseOutboundFee · settle settleOutbound
payments.Payments                list listPayments · create createPayment · read getPayment · links getReceiptLinks
payments.PaymentsInPerson        recalculate recalculatePayment
payments.PublicPayments          read getPublicPayment
overviews.OwnOverview            read getOverview
overviews.WholeOverview          read getGatewayOverview
payouts.Payouts                  create createPayout · create_batch createPayoutBatch · list listPayouts
payouts.Payouts                  check_batch checkPayoutBatch · read getPayout · cancel cancelPayout
plans.MerchantPlan               read getPlan
plans.Plans                      list listPlans · make createPlan · change changePlan · give changeMerchantPlan
plugins.Plugins                  list listPlugins
prices.Prices                    read getPrices · set_aside setPriceSourceAside · take_back takePriceSourceBack
projects.Project                 read getProject · change changeProject · rotate_secret rotateWebhookSecret
projects.Projects                list listProjects · create createProject
quotes.Quotes                    quote quotePayment
refunds.Refunds                  create createRefund · list listRefunds · read getRefund · cancel cancelRefund
resolutions.Resolutions          list listResolutions · read getResolution · accept acceptDeposit
resolutions.Resolutions          refund refundDeposit · release releaseDeposit
search.ProjectSearch             search searchRecords
sandbox.SandboxChains            deposit sandboxDeposit · mine sandboxMine · reorg sandboxReorg
sandbox.SandboxChains            advance_time sandboxAdvanceTime · fail_payout sandboxFailPayout
sandbox.SandboxChains            fail_exchange sandboxFailExchange
sessions.SessionRoutes           list listSessions · end endSession · end_others endOtherSessions · step_up stepUp
sessions.SessionRoutes           change_password changePassword
signer.Signer                    read getSigner · approve approveSigning · deny denySigning
stakes.Stakes                    list listStakes · change changeStake
status.StatusPage                read getStatus
streams.MerchantStream           follow streamChanges
streams.OperatorStream           follow streamAllChanges
suspension.Suspension            suspend suspendMerchant · reinstate reinstateMerchant
team.Invitations                 list listInvitations · invite inviteMember · revoke revokeInvitation
team.Joining                     read readInvitation · accept acceptInvitation
team.Members                     list listMembers · me getMe · leave leaveTeam · change changeMember
team.Members                     remove removeMember · recover recoverMember
tracker_addresses.Addresses      list listTrackerAddresses · add addTrackerAddress · add_many addTrackerAddresses
tracker_addresses.Addresses      change changeTrackerAddress · remove removeTrackerAddress
tracker_addresses.Addresses      remove_many removeTrackerAddresses
tracker_addresses.Transactions   list listTrackerTransactions
tracker_history.History          cancel cancelTrackerHistory · restart restartTrackerHistory
tracker_history.ProjectHistory   cancel cancelTrackerHistory · restart restartTrackerHistory
tracker_redelivery.Redelivery    redeliver redeliverTracker
tracker_redelivery.ProjectRedelivery redeliver redeliverTracker
trackers.NewTrackers             create createTracker
trackers.OwnTrackers             list listOwnTrackers
trackers.ProjectTrackers         list listTrackers · create createTracker · read getTracker · delete deleteTracker
trackers.ProjectTrackers         activate activateTracker · deactivate deactivateTracker
trackers.Trackers                read getTracker · change changeTracker · activate activateTracker
trackers.Trackers                deactivate deactivateTracker · regenerate regenerateTrackerSecret · test testTracker
signature_checks.SignatureChecks check checkWebhook · check_endpoint checkWebhookEndpoint
transactions.Transactions        list listTransactions · export exportTransactions
two_factor.TwoFactorReset        reset resetMerchantTwoFactor
two_factor.TwoFactorRoutes       status getTwoFactor · enrol enrolTwoFactor · confirm confirmTwoFactor
two_factor.TwoFactorRoutes       disable disableTwoFactor · renew_recovery_codes renewRecoveryCodes
uncollected.UncollectedMoney      list listUncollected · sums sumUncollected · collect collectNow
uncollected.UncollectedMoney      withdraw withdrawCollection · read getAddressMoney
usage.Calculator                 read getCptCalculatorConfig
usage.Usage                      list listUsage
wallets.Addresses                list listWalletAddresses
wallets.Worth                    read getWalletWorth
wallets.Wallets                  read getWallet · balance getBalance
webhook_endpoints.WebhookEndpoints list listWebhookEndpoints · create createWebhookEndpoint · read getWebhookEndpoint
webhook_endpoints.WebhookEndpoints change changeWebhookEndpoint · remove deleteWebhookEndpoint
webhook_endpoints.WebhookEndpoints deliveries listWebhookEndpointDeliveries · rotate_secret rotateWebhookEndpointSecret
webhook_endpoints.WebhookEndpoints test testWebhookEndpoint
withdrawals.Withdrawals          list listWithdrawals · create createWithdrawal · read getWithdrawal
withdrawals.Withdrawals          cancel cancelWithdrawal
"""
"""A controller by its module, and for each of its handlers the name of the operation."""

_PROJECT = ["api", "dashboard", "projects"]


def _read(lines: str) -> Mapping[str, str]:
    found = {}
    for line in lines.strip().splitlines():
        controller, _, rest = line.partition(" ")
        for pair in rest.split("·"):
            handler, name = pair.split()
            found[f"{controller}.{handler}"] = name
    return found


OPERATION_IDS = _read(_NAMES)


def operation_id(handler: HTTPRouteHandler, _: Method, path_components: list[str | PathParameterDefinition]) -> str:
    """Return the name of an operation. Raises KeyError for a handler that has none in the table."""
    name = OPERATION_IDS[f"{handler.fn.__module__.rpartition('.')[2]}.{handler.fn.__qualname__}"]
    return f"{name}InProject" if path_components[:3] == _PROJECT else name
