import { afterEach, describe, expect, it, vi } from "vitest";

import { authorized, keyed, onStepUp, unwrap } from "./client";
import { ApiError } from "./errors";
import { MERCHANT_PATHS, Session } from "./session";

function answer(status: number, body: unknown): Response {
  return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
}

function session(): Session {
  const made = new Session(MERCHANT_PATHS, () => Promise.resolve(answer(200, { accessToken: "new", expiresIn: 900 })));
  made.begin({ accessToken: "old", expiresIn: 900 });
  return made;
}

const request = () => new Request("https://gateway.example/api", { method: "POST", body: '{"amount":"1"}' });

describe("a request", () => {
  afterEach(() => {
    onStepUp(() => Promise.resolve(false));
    vi.unstubAllGlobals();
  });

  it("is sent again with another token where the first one is refused", async () => {
    const seen: (string | null)[] = [];
    const send = authorized(session(), (sent) => {
      const token = (sent as Request).headers.get("Authorization");
      seen.push(token);
      return Promise.resolve(token === "Bearer new" ? answer(200, {}) : answer(401, { code: "SESSION_ENDED" }));
    });
    expect((await send(request())).status).toBe(200);
    expect(seen).toEqual(["Bearer old", "Bearer new"]);
  });

  it("says that nothing was done where the session has ended, before it is sent and after it was refused", async () => {
    const ended = new Session(MERCHANT_PATHS, () => Promise.resolve(answer(401, { code: "SESSION_ENDED" })));
    let sent = 0;
    const send = authorized(ended, () => {
      sent += 1;
      return Promise.resolve(answer(401, { code: "INVALID_TOKEN" }));
    });
    for (const [expiresIn, soFar] of [
      [900, 1],
      [0, 1],
    ] as const) {
      ended.begin({ accessToken: "old", expiresIn });
      await expect(send(request())).rejects.toMatchObject({ status: 401, code: "SESSION_ENDED" });
      expect(sent).toBe(soFar);
    }
    // A page may go on to read, and somebody signs in over it.
    await expect(send(new Request("https://gateway.example/api"))).rejects.toMatchObject({ code: "SESSION_ENDED" });
    expect(sent).toBe(1);
    await send(request());
    expect(sent).toBe(2);
  });

  it("asks for a code where it needs one, and is then sent again, body and all", async () => {
    const bodies: string[] = [];
    let isSteppedUp = false;
    onStepUp(() => {
      isSteppedUp = true;
      return Promise.resolve(true);
    });
    const send = authorized(session(), async (sent) => {
      bodies.push(await (sent as Request).text());
      return isSteppedUp ? answer(201, {}) : answer(403, { code: "STEP_UP_REQUIRED" });
    });
    expect((await send(request())).status).toBe(201);
    expect(bodies).toEqual(['{"amount":"1"}', '{"amount":"1"}']);
  });

  it("is not sent again where nobody gives a code", async () => {
    const send = vi.fn(() => Promise.resolve(answer(403, { code: "STEP_UP_REQUIRED", error: "Step up first." })));
    const refused = await authorized(session(), send)(request());
    expect(refused.status).toBe(403);
    expect(send).toHaveBeenCalledTimes(1);
  });

  it("has a key of its own for each press, and the same again where no answer came", async () => {
    // As on a page over http.
    vi.stubGlobal("crypto", { getRandomValues: crypto.getRandomValues.bind(crypto) });
    const keys: (string | null)[] = [];
    let isLost = true;
    const send = keyed(
      authorized(session(), (sent) => {
        keys.push((sent as Request).headers.get("Idempotency-Key"));
        if (isLost) return Promise.reject(new TypeError("Failed to fetch"));
        return Promise.resolve(answer(keys.length === 2 ? 401 : 201, { code: "SESSION_ENDED" }));
      }),
    );
    await expect(send(request())).rejects.toBeInstanceOf(TypeError);
    isLost = false;
    await send(request());
    await send(request());
    expect(keys[0]).toMatch(/^[\da-f-]{36}$/);
    expect(keys.slice(1, 3)).toEqual([keys[0], keys[0]]);
    expect(keys[3]).not.toBe(keys[0]);
  });

  it("keeps its key where the gateway does not say whether it was done", async () => {
    const statuses = [500, 503, 409, 201];
    const keys: (string | null)[] = [];
    const send = keyed((sent) => {
      keys.push(sent.headers.get("Idempotency-Key"));
      return Promise.resolve(answer(statuses[keys.length - 1] ?? 0, {}));
    });
    for (const status of statuses) expect((await send(request())).status).toBe(status);
    expect(keys.slice(1, 3)).toEqual([keys[0], keys[0]]);
    expect(keys[3]).not.toBe(keys[0]);
  });

  it("is another act where the same is asked for after a quarter of an hour", async () => {
    const now = vi.spyOn(Date, "now").mockReturnValue(0);
    const keys: (string | null)[] = [];
    const send = keyed((sent) => {
      keys.push(sent.headers.get("Idempotency-Key"));
      return Promise.resolve(answer(503, {}));
    });
    for (const minute of [0, 14, 30]) {
      now.mockReturnValue(minute * 60_000);
      await send(request());
    }
    now.mockRestore();
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).not.toBe(keys[0]);
  });

  it("is left alone where it has a key or a password in its body, or only reads", async () => {
    const bodies = ['{"idempotencyKey":"a"}', '{"newPassword":"a"}'];
    for (const init of [...bodies.map((body) => ({ method: "POST", body })), {}]) {
      const send = vi.fn((sent: Request) => Promise.resolve(answer(200, [...sent.headers.keys()])));
      expect(await (await keyed(send)(new Request("https://gateway.example/api", init))).json()).not.toContain(
        "idempotency-key",
      );
    }
  });

  it("throws what the API refused, with its code and fields", async () => {
    const error = {
      success: false,
      error: "No.",
      code: "VALIDATION_ERROR",
      details: [{ field: "amount", message: "is required" }],
    };
    const asked = unwrap(Promise.resolve({ error, response: answer(400, error) }));
    await expect(asked).rejects.toMatchObject({ status: 400, code: "VALIDATION_ERROR", message: "No." });
    await expect(asked).rejects.toMatchObject({ details: error.details });
  });

  it.each([
    ["must not be 0", "Must not be 0"],
    ["a", "A"],
    ["pricingMode is of another kind", "pricingMode is of another kind"],
    ["USDT is not supported", "USDT is not supported"],
    ["不受支持", "不受支持"],
  ])("says of a field what stands by itself below it: %s", (message, shown) => {
    expect(new ApiError(400, "VALIDATION_ERROR", "No.", [{ field: "amount", message }]).of("amount")).toBe(shown);
  });

  it("throws that the gateway cannot be reached", async () => {
    await expect(unwrap(Promise.reject(new TypeError("Failed to fetch")))).rejects.toMatchObject({ code: "OFFLINE" });
  });
});
