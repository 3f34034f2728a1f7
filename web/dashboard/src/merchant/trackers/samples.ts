/** A tracker as the gateway answers it, for tests of the pages that show it. */
import { one, PROJECT, type Answers } from "../../testing/render";

import type { Movement, Tracker } from "./queries";

export const LIST = `/api/dashboard/projects/${PROJECT}/trackers`;
export const ADDRESS = "0x5555555555555555555555555555555555555555";
export const TRACKER: Tracker = {
  webhookId: "whk_1",
  projectId: PROJECT,
  url: "https://desk.example/hook",
  name: "Desk",
  chain: "polygon",
  mode: "live",
  startBlock: 100,
  readsPast: true,
  maxAddresses: 1000,
  addresses: 1,
  isActive: true,
  history: { state: "reading", fromBlock: 100, toBlock: 299, readBlock: 149, error: null, untoldMovements: 0 },
  metadata: null,
  credentialsRotatedAt: null,
  createdAt: "2026-01-01T12:00:00.000Z",
  updatedAt: "2026-01-01T12:00:00.000Z",
};
const MOVEMENT: Movement = {
  transactionId: "mov_1",
  chain: "polygon",
  address: ADDRESS,
  direction: "in",
  token: "USDT",
  contractAddress: null,
  amount: "25",
  from: null,
  to: ADDRESS,
  txHash: "0xab",
  blockNumber: 61_000_000,
  blockHash: "0xcd",
  blockTime: "2026-01-01T12:00:00.000Z",
  confirmations: 12,
  requiredConfirmations: 12,
  status: "confirmed",
  createdAt: "2026-01-01T12:00:00.000Z",
};

export const at = { path: "trackers/$webhookId", at: "trackers/whk_1" };
export const asks = `GET ${LIST}/whk_1`;
export const answers: Answers = {
  [asks]: { webhook: TRACKER },
  "GET /api/merchant/webhooks": { ...one, webhooks: [{ ...TRACKER, authToken: "tok_1" }] },
  "GET /api/webhook/transaction/list": { ...one, transactions: [MOVEMENT] },
  "GET /api/webhook/address/list": {
    ...one,
    addresses: [{ address: ADDRESS, label: "Till 4", metadata: null, addedAt: "2026-01-01T12:00:00.000Z" }],
  },
};
