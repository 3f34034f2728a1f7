/** Every act of an operator's. */
import { expect } from "vitest";

import { declareActs } from "../testing/acts";
import { ABOUT_PEOPLE } from "../testing/actsAboutPeople";

const sources = import.meta.glob<string>("./**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });

const REASON = { Reason: "It is late." } as const;
const reason = "It is late.";
const CHAIN = { route: "/chains/$chain", id: "ethereum" } as const;
const INTENT = { route: "/queue/$intentId", id: "int_5d41402abc4b2a76b9719d911017c592" } as const;
const JOB = { route: "/jobs/$jobId", id: "job_7k2m9q4w" } as const;
const QUESTION = "#7: 25000 USDT to 0x5290… on ethereum; payout:po_7q2m4k, payout by key";

const A_KEY = expect.any(String) as string;

const stake = { staked: "0", lent: "0", lendable: "0", leaving: "0", withdrawable: "12", isLow: false, lowBelow: "0" };
const station = {
  chain: "ethereum",
  address: "0x52908400098527886E0F7030069857D2E4169EE7",
  symbol: "ETH",
  balance: "0",
  isLow: false,
  lowBelow: "0",
  waiting: 0,
  checkedAt: null,
  stake,
};
const paused = { what: "sending", pausedBy: "opr_1", pausedAt: "2026-01-31T12:00:00.000Z", reason: "A fork." };
const aside = { name: "kraken", isSetAside: true, reason: "It lies.", setAsideBy: "opr_1", setAsideAt: null };

declareActs({
  app: "operator",
  sources,
  rows: [
    // Signing, and money that waits for a decision.
    {
      route: "/signer",
      press: "Approve",
      says: "What was sent cannot be called back.",
      filled: { Code: "abc123" },
      asks: "POST /api/admin/signer/approvals/7/approve",
      body: { code: "abc123", question: QUESTION },
    },
    {
      route: "/signer",
      press: "Deny",
      says: "It is never signed.",
      filled: { Code: "abc123" },
      asks: "POST /api/admin/signer/approvals/7/deny",
      body: { code: "abc123", question: QUESTION },
    },
    {
      route: "/resolutions",
      press: "Count to the order",
      says: "This cannot be undone.",
      asks: "POST /api/admin/resolutions/dep_9b7n6m/accept",
    },
    {
      route: "/resolutions",
      press: "Only release it",
      says: "The money becomes available to the merchant",
      asks: "POST /api/admin/resolutions/dep_9b7n6m/release",
    },
    // Chains, gas, tokens, prices.
    {
      ...CHAIN,
      press: "Add an endpoint",
      says: "It is checked first",
      filled: { URL: "https://node.example/key", Label: "Spare" },
      asks: "POST /api/admin/chains/ethereum/endpoints",
      body: { url: "https://node.example/key", label: "Spare", replaces: null },
    },
    {
      ...CHAIN,
      press: "Remove",
      says: "It stays removed until its URL is added again.",
      filled: { "Type node.example to confirm": "node.example" },
      asks: "DELETE /api/admin/chains/ethereum/endpoints/whe_5k7m9p",
    },
    {
      ...CHAIN,
      press: "Read blocks again",
      says: "What was missed is credited and told, once.",
      filled: { "From block": "100", "To block": "200", ...REASON },
      asks: "POST /api/admin/chains/ethereum/rescan",
      body: { fromHeight: 100, toHeight: 200, reason },
    },
    {
      ...CHAIN,
      press: "Pause",
      within: "Watching",
      says: "New payments on this chain are refused.",
      filled: REASON,
      asks: "POST /api/admin/chains/ethereum/pause",
      body: { what: "watching", reason },
    },
    {
      ...CHAIN,
      press: "Resume",
      others: { "/ethereum": { chain: { pauses: [paused] } } },
      says: "What waits is signed and sent.",
      filled: REASON,
      asks: "POST /api/admin/chains/ethereum/resume",
      body: { what: "sending", reason },
    },
    {
      route: "/gas",
      press: "Stake",
      says: "Unstaked again, it is free after 14 days on TRON.",
      filled: { "Amount, ETH": "100" },
      asks: "POST /api/admin/stakes",
      body: { chain: "ethereum", action: "stake", amount: "100", idempotencyKey: A_KEY },
    },
    {
      route: "/gas",
      press: "Unstake",
      says: "Transfers cost more from this moment on.",
      filled: { "Amount, ETH": "100" },
      asks: "POST /api/admin/stakes",
      body: { chain: "ethereum", action: "unstake", amount: "100", idempotencyKey: A_KEY },
    },
    {
      route: "/gas",
      press: "Withdraw",
      others: { "/gas-stations": { gasStations: [station] } },
      says: "goes back to the gas station's balance",
      asks: "POST /api/admin/stakes",
      body: { chain: "ethereum", action: "withdraw", idempotencyKey: A_KEY },
    },
    {
      route: "/tokens",
      press: "Switch off",
      says: "No new payment takes it.",
      asks: "PATCH /api/admin/tokens/ethereum/EURX",
      body: { enabled: false },
    },
    {
      route: "/tokens",
      press: "Take from all",
      says: "except of merchants for whom something else was decided",
      asks: "PATCH /api/admin/tokens/ethereum/EURX",
      body: { defaultEnabled: false },
    },
    {
      route: "/tokens",
      press: "Add a token",
      says: "anybody can call a token USDC",
      filled: { Contract: "0x52908400098527886E0F7030069857D2E4169EE7" },
      chosen: { Chain: "Ethereum" },
      asks: "POST /api/admin/tokens",
      body: {
        chain: "ethereum",
        contract: "0x52908400098527886E0F7030069857D2E4169EE7",
        defaultEnabled: true,
        replaces: false,
      },
    },
    {
      route: "/prices",
      press: "Set aside",
      says: "Its prices are not used until it is taken back.",
      filled: REASON,
      asks: "POST /api/admin/prices/sources/kraken/set-aside",
      body: { reason },
    },
    {
      route: "/prices",
      press: "Take back",
      others: { "/prices": { sources: [aside] } },
      says: "Its prices are used again at once.",
      filled: REASON,
      asks: "POST /api/admin/prices/sources/kraken/take-back",
      body: { reason },
    },
    // What is sent, and jobs.
    {
      ...INTENT,
      press: "Look at it now",
      says: null,
      asks: "POST /api/admin/outbound/int_5d41402abc4b2a76b9719d911017c592/retry",
    },
    {
      ...INTENT,
      press: "Raise the fee",
      says: "only one of them can ever be mined",
      filled: { "The most it may cost": "0.02" },
      asks: "POST /api/admin/outbound/int_5d41402abc4b2a76b9719d911017c592/raise-fee",
      body: { maxFee: "0.02" },
    },
    {
      ...INTENT,
      press: "Cancel the sending",
      says: "its money goes back to the merchant's balance",
      filled: { "Type 17c592 to confirm": "17c592" },
      asks: "POST /api/admin/outbound/int_5d41402abc4b2a76b9719d911017c592/cancel",
    },
    {
      ...JOB,
      press: "Cancel the job",
      others: { "/job_7k2m9q4w": { job: { state: "running" } } },
      says: "It stops at its next step",
      asks: "POST /api/admin/jobs/job_7k2m9q4w/cancel",
    },
    {
      ...JOB,
      press: "Try again",
      others: { "/job_7k2m9q4w": { job: { state: "failed" } } },
      says: null,
      asks: "POST /api/admin/jobs/job_7k2m9q4w/retry",
    },
    {
      route: "/reconcile",
      press: "Compare now",
      says: "It changes nothing",
      asks: "POST /api/admin/reconcile",
      body: {},
    },
    ...ABOUT_PEOPLE,
  ],
  elsewhere: {
    "POST /api/admin/audit/verify": "audit/verification.test.tsx",
    "POST /api/admin/collections/uncollected/{uncollectedId}/collect": "uncollected/uncollected.test.tsx",
    "DELETE /api/admin/collections/uncollected/{uncollectedId}/collect": "uncollected/uncollected.test.tsx",
    "POST /api/admin/jobs": "merchants/members.test.tsx",
    "POST /api/admin/merchants/two-factor/reset": "merchants/members.test.tsx",
    "PUT /api/admin/merchants/{merchantId}/plan": "merchants/merchants.test.tsx",
    "POST /api/admin/outbound/{intentId}/settle": "queue/queue.test.tsx",
    "POST /api/admin/password-resets": "merchants/members.test.tsx",
    "POST /api/admin/plans": "plans/plans.test.tsx",
    "PATCH /api/admin/plans/{planId}": "plans/plans.test.tsx",
    "PUT /api/admin/settings": "settings/settings.test.tsx",
    "POST /api/admin/webhooks/redeliver": "webhooks/webhooks.test.tsx",
    "POST /api/admin/webhooks/deliveries/{deliveryId}/redeliver": "webhooks/webhooks.test.tsx",
    "POST /api/admin/auth/password": "security/security.test.tsx",
    "POST /api/admin/auth/recovery-codes": "security/security.test.tsx",
    "DELETE /api/admin/auth/sessions/{sessionId}": "security/security.test.tsx",
    "POST /api/admin/auth/set-password": "auth/password.test.tsx",
    "POST /api/admin/auth/sign-in": "auth/signin.test.tsx",
    "POST /api/admin/auth/two-factor/enrol": "auth/enrol.test.tsx",
    "POST /api/admin/auth/two-factor/confirm": "auth/enrol.test.tsx",
  },
});
