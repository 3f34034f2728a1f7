import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { ApiError } from "./errors";
import { inTime } from "./inTime";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const URL_ = "https://gateway.example/api";
const never = () => new Promise<Response>(() => undefined);

/** An answer that begins, and whose body never ends. */
const stuck = () => Promise.resolve(new Response(new ReadableStream({ pull: never as () => Promise<never> })));

async function fails(request: Promise<Response>, afterMs: number): Promise<unknown> {
  const failed = request.catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(afterMs);
  return failed;
}

it.each([
  ["GET", never, 30_000, "TIMEOUT"],
  ["POST", never, 60_000, "NO_ANSWER"],
  ["DELETE", stuck, 60_000, "NO_ANSWER"],
] as const)("ends a %s that has no answer, or none to its end", async (method, send, afterMs, code) => {
  const error = await fails(inTime(send)(new Request(URL_, { method })), afterMs);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject({ status: 0, code });
});

it("says that it may be sent again of what may be, and ends it when it is told to", async () => {
  const asked = inTime(never, { limitMs: 5_000, isRepeatable: true })("/api/auth/refresh", { method: "POST" });
  expect(await fails(asked, 5_000)).toMatchObject({ code: "TIMEOUT" });
});

it("gives the whole answer, and ends nothing afterwards", async () => {
  let signal: AbortSignal | null | undefined;
  const answer = await inTime((_, init) => {
    signal = init?.signal;
    return Promise.resolve(new Response('{"a":1}', { status: 201, headers: { "X-One": "1" } }));
  })("/api", { method: "POST" });
  await vi.advanceTimersByTimeAsync(600_000);
  expect([answer.status, answer.headers.get("X-One"), await answer.json()]).toEqual([201, "1", { a: 1 }]);
  expect(signal?.aborted).toBe(false);
  expect((await inTime(() => Promise.resolve(new Response(null, { status: 204 })))("/api")).status).toBe(204);
});
