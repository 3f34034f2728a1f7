import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

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

const refuses = () => Promise.reject(new TypeError("Failed to fetch"));

/** An answer that begins, and whose body breaks off. */
const broken = () =>
  Promise.resolve(
    new Response(
      new ReadableStream({
        start(stream) {
          stream.error(new TypeError("network error"));
        },
      }),
    ),
  );

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

describe("where the connection breaks", () => {
  it.each(["POST", "PUT", "PATCH", "DELETE"])(
    "a %s may have been done, whether its answer had begun or not",
    async (method) => {
      for (const send of [refuses, broken])
        await expect(inTime(send)(new Request(URL_, { method }))).rejects.toMatchObject({
          status: 0,
          code: "NO_ANSWER",
        });
    },
  );

  it.each([502, 504])(
    "an act that a proxy answers %i for may have been done, and what reads has failed",
    async (status) => {
      const send = () => Promise.resolve(new Response("<html>", { status }));
      await expect(inTime(send)(new Request(URL_, { method: "POST" }))).rejects.toMatchObject({ code: "NO_ANSWER" });
      expect((await inTime(send)(new Request(URL_))).status).toBe(status);
    },
  );

  it("what the browser had no connection to send by was not done, unless an answer began", async () => {
    vi.spyOn(navigator, "onLine", "get").mockReturnValue(false);
    await expect(inTime(refuses)(new Request(URL_, { method: "POST" }))).rejects.toBeInstanceOf(TypeError);
    await expect(inTime(broken)(new Request(URL_, { method: "POST" }))).rejects.toMatchObject({ code: "NO_ANSWER" });
  });

  it.each([
    "/payments/quote",
    "/wallet/payout/batch/check?a=1",
    "/swap-bridge/swap/quote",
    "/auth/login",
    "/auth/sign-in",
  ])("what only reads, or may be sent again, has done nothing: %s", async (path) => {
    const request = () => new Request(`${URL_}${path}`, { method: "POST" });
    for (const send of [refuses, broken]) await expect(inTime(send)(request())).rejects.toBeInstanceOf(TypeError);
    expect(await fails(inTime(never)(request()), 60_000)).toMatchObject({ code: "TIMEOUT" });
  });

  it("whoever gave an act up is told just that", async () => {
    const given = new AbortController();
    const send: typeof fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener("abort", () => {
          reject(new DOMException("Aborted.", "AbortError"));
        });
      });
    const asked = inTime(send)(URL_, { method: "POST", signal: given.signal });
    given.abort();
    await expect(asked).rejects.toMatchObject({ name: "AbortError" });
  });
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
