/** Every page of an operator's in each of its states. */
import { declareStates } from "../testing/pages";

const ADDRESS = "0x5290…169EE7";

/** Return a list of records, and one of them, as both are read alike. */
function records(title: string, full: readonly [string, ...string[]]) {
  return { title, full, empty: { says: "There are none yet" } } as const;
}

declareStates(
  "operator",
  {
    "/overview": {
      title: "Overview",
      full: ["Payouts, refunds or withdrawals have waited", "Jan 31, 2026: $79.99 · 1 of 1 payments paid"],
      empty: { says: "Nothing came in in this time." },
    },
    "/search": {
      title: "Find",
      search: "?q=pay_9q4m2k",
      full: ["Ada's Shop", "Paid"],
      empty: { says: "Nothing is named that" },
    },
    "/chains": {
      title: "Chains",
      full: ["Ethereum", "24,000,000"],
      empty: { says: "No chain is configured" },
    },
    "/chains/$chain": {
      title: "one_1",
      full: ["24,000,002", "node.example"],
      empty: { says: "No endpoint is configured", offers: "Add an endpoint" },
      acts: ["Add an endpoint", "Remove", "Pause", "Read blocks again"],
    },
    "/queue": {
      title: "Outbound queue",
      full: ["Ada's Shop", "12.5 USDT"],
      empty: { says: "Nothing waits to be sent" },
    },
    "/queue/$intentId": {
      title: "Outbound queue",
      full: ["int_5d41402abc4b2a76b9719d911017c592", "0x5c50…b22060"],
      empty: { says: "Nothing has been signed yet" },
      acts: ["Look at it now", "Raise the fee", "Cancel the sending"],
    },
    "/gas": {
      title: "Gas and stakes",
      full: ["1.5 ETH", "5,000 TRX"],
      empty: { says: "No chain has a gas station" },
      acts: ["Stake", "Unstake"],
    },
    "/uncollected": {
      title: "Not collected",
      full: ["41.5 USDT", ADDRESS],
      empty: { says: "Everything is collected" },
    },
    "/uncollected/$address": {
      title: "What is at an address",
      full: ["12.5 USDT", "$0.84"],
      empty: { says: "Nothing waits on this address" },
      acts: ["Collect now"],
    },
    "/collections": {
      title: "Collections",
      full: [ADDRESS, "USDT"],
      empty: { says: "Nothing has been collected yet" },
    },
    "/signer": {
      title: "Signer",
      full: ["25,000 USDT", "hourly_caps"],
      empty: { says: "Nothing waits for a person" },
      acts: ["Approve", "Deny"],
    },
    "/resolutions": {
      title: "Resolutions",
      full: ["Ada's Shop", "2.5 USDT"],
      empty: { says: "Nothing waits for a decision" },
      acts: ["Count to the order"],
    },
    "/resolutions/$depositId": {
      title: "Resolution",
      full: ["Ada's Shop", "2.5 USDT"],
      empty: "missing",
      acts: ["Count to the order", "Only release it"],
    },
    "/webhooks": {
      title: "Webhooks",
      full: ["https://shop.example/webhooks", "payment.paid", "503"],
      empty: { says: "Every receiver answers" },
      acts: ["Send dropped ones again"],
    },
    "/webhooks/$deliveryId": {
      title: "Delivery",
      full: ["dlv_2x8c4v", "87 ms"],
      empty: { says: "Not tried yet" },
    },
    "/reconcile": {
      title: "Reconcile",
      full: ["Differs", "1–1 of 1"],
      empty: { says: "Nothing has been compared yet", offers: "Compare now" },
      acts: ["Compare now"],
    },
    "/reconcile/$jobId": {
      title: "Reconcile",
      full: ["job_7k2m9q4w", "+5.5"],
      empty: { says: "Nothing differs" },
    },
    "/prices": {
      title: "Prices",
      full: ["Kraken", "0.9998"],
      empty: { says: "No source is configured" },
      acts: ["Set aside"],
    },
    "/tokens": {
      title: "Tokens",
      full: ["EURX", "0xdac1…831ec7"],
      empty: { says: "There are none yet", offers: "Add a token" },
      acts: ["Add a token", "For one merchant"],
    },
    "/jobs": {
      title: "Jobs",
      full: ["Comparison of books and chains", "Jan 31, 2026"],
      empty: { says: "No job has been asked for yet" },
    },
    "/jobs/$jobId": {
      title: "Jobs",
      full: ["job_7k2m9q4w", "24,000,000"],
      empty: "missing",
    },
    "/plans": {
      title: "Plans",
      full: ["Growth", "Change"],
      empty: { says: "There is only the built-in plan", offers: "Make a plan" },
      acts: ["Make a plan", "Change"],
    },
    "/plugins": {
      title: "Plugins",
      full: ["cambist-evm", "chains.ethereum.confirmations"],
      empty: { says: "No plugin is installed" },
    },
    "/settings": {
      title: "Settings",
      full: ["payoutMinimumFees", "168", "ethereum/USDT"],
      empty: "missing",
      acts: ["Change", "Switch off"],
    },
    "/merchants": {
      title: "Merchants",
      full: ["owner@shop.example", "Business"],
      empty: { says: "No merchant yet.", offers: "Add a merchant" },
      acts: ["Add a merchant"],
    },
    "/merchants/$merchantId": {
      title: "Merchants",
      full: ["mer_1x0c9v", "9,990", "prj_2z1x0c"],
      empty: { says: "No project yet." },
      acts: ["Suspend", "Set a limit", "Statement", "New link", "Reset second factor"],
    },
    "/audit": {
      title: "Audit log",
      full: ["payout.asked", "203.0.113.7", "Entries compared"],
      empty: { says: "Nothing was done yet" },
      acts: ["Compare now"],
    },
    "/security": {
      title: "Security",
      full: ["10 recovery codes left", "Mozilla/5.0"],
      empty: "missing",
    },
    "/people": {
      title: "People",
      full: ["owner@shop.example"],
      empty: "missing",
      acts: ["Invite somebody", "Role"],
    },
    "/payments": records("Payments", ["A-1001", "12.5 USDT"]),
    "/payments/$id": { title: "Payment", full: ["A-1001", "12 of 12"], empty: "missing" },
    "/deposits": records("Deposits", ["Ada's Shop", "12.5 USDT"]),
    "/deposits/$id": { title: "Deposit", full: ["pay_4g6h8j", "24,000,000"], empty: "missing" },
    "/payouts": records("Payouts", [ADDRESS, "12.5 USDT"]),
    "/payouts/$id": {
      title: "Payout",
      full: ["0x52908400098527886E0F7030069857D2E4169EE7", "payment.paid"],
      empty: { says: "Nothing has been signed yet" },
    },
    "/refunds": records("Refunds", [ADDRESS, "12.5 USDT"]),
    "/refunds/$id": {
      title: "Refund",
      full: ["0x52908400098527886E0F7030069857D2E4169EE7", "payment.paid"],
      empty: { says: "Nothing has been signed yet" },
    },
    "/withdrawals": records("Withdrawals", [ADDRESS, "12.5 USDT"]),
    "/withdrawals/$id": {
      title: "Withdrawal",
      full: ["0x52908400098527886E0F7030069857D2E4169EE7", "payment.paid"],
      empty: { says: "Nothing has been signed yet" },
    },
    "/exchanges": records("Swaps and bridges", ["12.5 USDT", "12.4 USDC"]),
    "/exchanges/$id": { title: "Swap or bridge", full: ["across", "12.4 USDC"], empty: "missing" },
    "/accounts": records("Accounts", ["user-4711"]),
    "/accounts/$id": { title: "Account", full: ["user-4711", "Active"], empty: "missing" },
    "/trackers": records("Trackers", ["Desk"]),
    "/trackers/$id": { title: "Tracker", full: ["Desk", "24,000,000"], empty: "missing" },
  },
  {
    "/set-password": {
      title: "Set a password",
      search: "#a-token",
      filled: { Password: "a long password" },
      act: "Set the password",
    },
    "/sign-in": {
      title: "Sign in as an operator",
      filled: { "E-mail": "ada@shop.example", Password: "a long password" },
      act: "Sign in",
      isRepeatable: true,
    },
  },
);
