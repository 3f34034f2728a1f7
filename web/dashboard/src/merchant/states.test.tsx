/** Every page of a merchant's in each of its states. */
import { declareStates } from "../testing/pages";
import { PROJECT } from "../testing/render";

const MAY_NOT = "Your role does not permit this";

declareStates(
  "merchant",
  {
    "/$projectId/overview": {
      title: "Overview",
      full: ["Payouts, refunds or withdrawals have waited", "Jan 31, 2026: $79.99 · 1 of 1 payments paid"],
      empty: { says: "Nothing came in in this time." },
    },
    "/$projectId/payments": {
      title: "Payments",
      full: ["A-1001", "12.5 USDT", "1–1 of 1"],
      empty: { says: "No payments yet", offers: "New payment" },
      acts: ["New payment"],
    },
    "/$projectId/payments/new": {
      title: "New payment",
      full: ["Priced in a currency", "Create the payment"],
      empty: { says: "This project takes no coin", offers: "Coins" },
      reader: MAY_NOT,
    },
    "/$projectId/payments/$paymentId": {
      title: "Payment",
      full: ["pay_4g6h8j", "carol@example.com", "12 of 12 confirmations", "payment.paid"],
      empty: { says: "Nothing has come yet" },
      acts: ["Refund", "Send again"],
    },
    "/$projectId/refunds": {
      title: "Refunds",
      full: ["pay_4g6h8j", "The customer changed their mind."],
      empty: { says: "Nothing was sent back yet" },
    },
    "/$projectId/refunds/$refundId": {
      title: "Refund",
      full: ["The customer changed their mind.", "payment.paid"],
      empty: { says: "Nothing has been told yet" },
    },
    "/$projectId/resolutions": {
      title: "Resolutions",
      full: ["More than was asked for", "A-1001"],
      empty: { says: "Nothing waits for a decision" },
      acts: ["Accept"],
    },
    "/$projectId/wallet": {
      title: "Wallet",
      full: ["80", "0x52908400098527886E0F7030069857D2E4169EE7", "Held → Available"],
      empty: { says: "There is no main wallet yet" },
      acts: ["New payout"],
    },
    "/$projectId/payouts": {
      title: "Payouts",
      full: ["0x5290…169EE7", "12.5 USDT"],
      empty: { says: "No payouts yet", offers: "New payout" },
      acts: ["New payout"],
    },
    "/$projectId/payouts/new": {
      title: "New payout",
      full: ["Many, from a CSV file", "USDT · ethereum"],
      empty: { says: "Nothing has come in yet" },
      reader: MAY_NOT,
    },
    "/$projectId/payouts/$payoutId": {
      title: "Payout",
      full: ["po_8q2b4d", "0.0004 ETH", "payment.paid"],
      empty: { says: "Nothing has been told yet" },
    },
    "/$projectId/exchanges": {
      title: "Swaps and bridges",
      full: ["12.4 USDC", "1–1 of 1"],
      empty: { says: "No swaps or bridges yet", offers: "New swap or bridge" },
      acts: ["New swap or bridge"],
    },
    "/$projectId/exchanges/new": {
      title: "New swap or bridge",
      full: ["USDT · ethereum", "Get a quote"],
      empty: { says: "Nothing has come in yet" },
      reader: MAY_NOT,
    },
    "/$projectId/exchanges/$txnId": {
      title: "Swap or bridge",
      full: ["xch_5g4f3d", "1 USDT = 0.992 USDC", "payment.paid"],
      empty: { says: "Nothing has been told yet" },
    },
    "/$projectId/withdrawals": {
      title: "Withdrawals",
      full: ["0x5290…169EE7", "12.5 USDT"],
      empty: { says: "No withdrawals yet", offers: "New withdrawal" },
      acts: ["New withdrawal"],
    },
    "/$projectId/withdrawals/new": {
      title: "New withdrawal",
      full: ["USDT · ethereum", "An address that was never withdrawn to before may have to wait first."],
      empty: { says: "Nothing has come in yet" },
      reader: MAY_NOT,
    },
    "/$projectId/withdrawals/$withdrawalId": {
      title: "Withdrawal",
      full: ["wd_7n6m5h", "0x52908400098527886E0F7030069857D2E4169EE7", "payment.paid"],
      empty: { says: "Nothing has been told yet" },
      others: { "/withdrawals/one_1": { withdrawal: { projectId: PROJECT } } },
    },
    "/$projectId/coins": {
      title: "Coins",
      full: ["Above 1,000 USDT", "Cold wallet"],
      empty: { says: "No address is approved", offers: "Approve an address" },
      acts: ["Change", "Disable", "Approve an address", "Take back"],
    },
    "/$projectId/accounts": {
      title: "Accounts",
      full: ["user-4711"],
      empty: { says: "No accounts yet", offers: "New account" },
      acts: ["New account"],
    },
    "/$projectId/accounts/$accountId": {
      title: "Account",
      full: ["acc_5n7y3w", "0x5c50…b22060"],
      empty: { says: "Nothing has come yet" },
      acts: ["Add chains", "Switch off"],
      others: { "/wallet/coins": { coins: [{ chain: "base", token: "USDC", availability: "live", enabled: true }] } },
    },
    "/$projectId/trackers": {
      title: "Trackers",
      full: ["Desk", "2 of 10,000"],
      empty: { says: "No trackers yet", offers: "New tracker" },
      acts: ["New tracker"],
    },
    "/$projectId/trackers/new": {
      title: "New tracker",
      full: ["Where your server hears of what moves.", "Make the tracker"],
      empty: { says: "No chain is connected yet that this project could use" },
      reader: MAY_NOT,
    },
    "/$projectId/trackers/$webhookId": {
      title: "Tracker",
      id: "whk_3f2d1s",
      kept: "/api/merchant/webhooks",
      full: ["whk_3f2d1s", "501 of 10,001", "1–1 of 1"],
      empty: { says: "No address is watched yet", offers: "Add addresses" },
      acts: ["Switch off", "Delete", "Stop reading"],
    },
    "/$projectId/keys": {
      title: "API keys",
      full: ["ck_live_4k2m", "Till"],
      empty: { says: "No keys yet", offers: "Create the key" },
      acts: ["Create the key", "Revoke"],
    },
    "/$projectId/webhooks": {
      title: "Webhooks",
      full: ["https://shop.example/webhooks", "Verified", "Delivered"],
      empty: { says: "Nothing has been sent yet", offers: "Add an endpoint" },
      acts: ["Add an endpoint"],
    },
    "/$projectId/webhooks/endpoints/$endpointId": {
      title: "Webhook endpoint",
      full: ["whe_5k7m9p", "Signing secret since", "pay_4g6h8j"],
      empty: { says: "Nothing has been sent yet" },
      acts: ["Change", "Pause", "Replace the signing secret", "Delete", "Check it now", "Send a test"],
    },
    "/$projectId/webhooks/$deliveryId": {
      title: "Delivery",
      full: ["dlv_2x8c4v", "87 ms"],
      empty: { says: "Not tried yet" },
      acts: ["Send again"],
    },
    "/$projectId/events": {
      title: "Events",
      full: ["payment.paid", "pay_4g6h8j", "1–1 of 1"],
      empty: { says: "Nothing has been told yet" },
      acts: ["Send failed ones again"],
    },
    "/$projectId/events/$eventId": {
      title: "Event",
      full: ["payment.paid", "pay_4g6h8j", "1 attempt"],
      empty: { says: "Kept, and sent to nobody" },
      acts: ["Send again", "Send again to this one"],
    },
    "/$projectId/sandbox": {
      title: "Sandbox",
      full: ["Let time pass", "The chain"],
      empty: { says: "No chain is configured" },
      reader: MAY_NOT,
      project: { mode: "sandbox" },
    },
    "/$projectId/usage": {
      title: "Usage and plan",
      full: ["Growth", "9,990", "po_8q2b4d"],
      empty: { says: "Nothing was used yet" },
    },
    "/$projectId/team": {
      title: "Team",
      full: ["owner@shop.example"],
      empty: { says: "Nobody is invited", offers: "Make the link" },
      acts: ["Make the link"],
    },
    "/$projectId/audit": {
      title: "Audit log",
      full: ["payout.asked", "203.0.113.7"],
      empty: { says: "Nothing was done yet" },
    },
    "/$projectId/security": {
      title: "Security",
      full: ["10 recovery codes left", "Mozilla/5.0"],
      empty: "missing",
    },
  },
  {
    "/sign-in": {
      title: "Sign in",
      filled: { "E-mail": "ada@shop.example", Password: "a long password" },
      act: "Sign in",
      isRepeatable: true,
    },
    "/lost-password": {
      title: "Lost the password?",
      filled: { "E-mail": "ada@shop.example" },
      act: "Ask for a link",
    },
    "/set-password": {
      title: "Set a password",
      search: "#a-token",
      filled: { Password: "a long password" },
      act: "Set the password",
    },
    "/join": {
      title: "Join a team",
      search: "#a-token",
      filled: { Password: "a long password" },
      act: "Join",
    },
    "/sign-up": {
      title: "Create an account",
      filled: { Name: "Ada", "E-mail": "ada@shop.example", Password: "a long password" },
      act: "Create the account",
    },
    "/projects/new": {
      title: "New project",
      filled: { Name: "Nordlicht" },
      act: "Create the project",
      reader: MAY_NOT,
    },
    "/$projectId/settings": {
      title: "Project settings",
      filled: { Name: "Nordlicht 2" },
      act: "Save",
      // The form has the name as well, and the value in a field.
      reader: "Underpayment tolerance0 %",
    },
  },
);
