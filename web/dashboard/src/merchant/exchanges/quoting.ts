/** Asking what an exchange would bring, and doing it: a swap on one chain, a bridge between two. */
import { api, unwrap } from "../api";
import { once } from "../../api/once";
import type { Schemas } from "../queries";

export type Quote = Schemas["QuoteView"] & Partial<Schemas["BridgeQuoteView"]>;

export interface Order {
  readonly srcChain: string;
  readonly srcToken: string;
  readonly srcAmountRaw: string;
  readonly destChain: string;
  readonly destToken: string;
}

/** A quote binds nobody, and prices move: after so long it is shown as old, and asked for again. */
export const QUOTE_LIFE_MS = 30_000;

export function isSwap(order: Order): boolean {
  return order.srcChain === order.destChain;
}

const BASE = "/api/dashboard/projects/{projectId}/swap-bridge";

export async function quote(projectId: string, order: Order): Promise<Quote> {
  const params = { path: { projectId } };
  const { destChain, ...swap } = order;
  if (isSwap(order)) return (await unwrap(api.POST(`${BASE}/swap/quote`, { params, body: swap }))).quote;
  return (await unwrap(api.POST(`${BASE}/bridge/quote`, { params, body: { ...swap, destChain } }))).quote;
}

export async function execute(projectId: string, order: Order, slippage: number): Promise<Schemas["ExchangeView"]> {
  const params = { path: { projectId } };
  const { destChain, ...swap } = order;
  // The API keeps the keys of swaps and of bridges apart, so one of each must have its own.
  const { exchange } = await once(`${isSwap(order) ? "swap" : "bridge"} ${projectId}`, async (idempotencyKey) => {
    const how = { slippage, idempotencyKey };
    if (isSwap(order)) return await unwrap(api.POST(`${BASE}/swap/execute`, { params, body: { ...swap, ...how } }));
    return await unwrap(api.POST(`${BASE}/bridge/execute`, { params, body: { ...swap, destChain, ...how } }));
  });
  return exchange;
}
