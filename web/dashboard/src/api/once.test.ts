import { afterEach, expect, it, vi } from "vitest";

import { ApiError } from "./errors";

import { once } from "./once";

const fails = (status: number, code: string) => () => Promise.reject(new ApiError(status, code, "No."));

afterEach(() => {
  vi.unstubAllGlobals();
});

async function keyOf(what: string, answer: () => Promise<unknown> = () => Promise.resolve()): Promise<string> {
  let sent = "";
  await once(what, (key) => {
    sent = key;
    return answer();
  }).catch(() => undefined);
  return sent;
}

async function keepsOneKey(): Promise<void> {
  const lost = await keyOf("payout", fails(0, "OFFLINE"));
  expect(lost).toMatch(/^[\da-f-]{36}$/);
  expect(await keyOf("refund", fails(0, "OFFLINE"))).not.toBe(lost);
  for (const answer of [fails(503, "UNAVAILABLE"), fails(400, "INVALID_AMOUNT"), fails(401, "TWO_FACTOR_INVALID")]) {
    expect(await keyOf("payout", answer)).toBe(lost);
  }
  expect(await keyOf("payout")).toBe(lost);
  const next = await keyOf("payout", fails(409, "IDEMPOTENCY_KEY_REUSED"));
  expect(next).not.toBe(lost);
  expect(await keyOf("payout")).not.toBe(next);
  await keyOf("refund");
}

it("sends under one key until an answer says that it was done", keepsOneKey);

it("takes the answer of an earlier request for none of this one, and begins anew after it", async () => {
  const lost = await keyOf("payout", fails(0, "OFFLINE"));
  await expect(once("payout", () => Promise.resolve({ idempotent: true }))).rejects.toMatchObject({
    code: "SENT_BEFORE",
    isDoneBefore: true,
  });
  expect(await keyOf("payout")).not.toBe(lost);
});

it("says that it may be sent again where no answer came, and keeps the key", async () => {
  await expect(once("payout", fails(0, "NO_ANSWER"))).rejects.toMatchObject({ status: 0, code: "NO_ANSWER_ONCE" });
  const lost = await keyOf("payout", fails(0, "NO_ANSWER"));
  expect(await keyOf("payout")).toBe(lost);
});

it("does not let a late answer end the key of what was sent after it", async () => {
  let answer = (): void => undefined;
  const late = once("payout", () => new Promise<void>((done) => (answer = done)));
  await keyOf("payout", fails(409, "IDEMPOTENCY_KEY_REUSED"));
  const next = await keyOf("payout", fails(0, "OFFLINE"));
  answer();
  await late;
  expect(await keyOf("payout")).toBe(next);
});

it("keeps the key also where a browser has no room left to store it", async () => {
  const setItem = vi.spyOn(Storage.prototype, "setItem").mockImplementation(() => {
    throw new DOMException("Full.", "QuotaExceededError");
  });
  const lost = await keyOf("payout", fails(0, "OFFLINE"));
  expect(await keyOf("payout")).toBe(lost);
  setItem.mockRestore();
});

it("keeps the key over a reload of the page", async () => {
  const lost = await keyOf("payout", fails(0, "OFFLINE"));
  vi.resetModules();
  const again = await import("./once");
  await again.once("payout", (key) => {
    expect(key).toBe(lost);
    return Promise.resolve();
  });
});

it("does so, too, where a browser stores nothing", async () => {
  const refuse = () => {
    throw new DOMException("No.", "SecurityError");
  };
  vi.stubGlobal("sessionStorage", { getItem: refuse, setItem: refuse, removeItem: refuse, clear: () => undefined });
  await keepsOneKey();
});
