import { afterEach, describe, expect, it, vi } from "vitest";

import { authorized } from "./client";
import { ASK_AGAIN_MS, MERCHANT_PATHS, Session } from "./session";

function answer(status: number, body: unknown): Response {
  return new Response(JSON.stringify(body), { status });
}

const signed = (accessToken: string) => ({ accessToken, expiresIn: 900 });
const tokenOf = (whose: string, number: number) => `head.${btoa(JSON.stringify({ sub: whose, number }))}.${number}`;

describe("a session", () => {
  it("asks once for a token, however many ask at the same time", async () => {
    const send = vi.fn(() => Promise.resolve(answer(200, signed("one"))));
    const session = new Session(MERCHANT_PATHS, send);
    expect(await Promise.all([session.token(), session.token(), session.token()])).toEqual(["one", "one", "one"]);
    expect(send).toHaveBeenCalledTimes(1);
    expect(session.state).toBe("signed-in");
  });

  it("renews a token before it ends", async () => {
    let now = 0;
    const send = vi.fn(() => Promise.resolve(answer(200, signed("two"))));
    const session = new Session(MERCHANT_PATHS, send, () => now);
    session.begin(signed("one"));
    expect(await session.token()).toBe("one");
    now = 890_000;
    expect(await session.token()).toBe("two");
  });

  it("does not renew what was renewed meanwhile", async () => {
    const send = vi.fn(() => Promise.resolve(answer(200, signed("two"))));
    const session = new Session(MERCHANT_PATHS, send);
    session.begin(signed("one"));
    await session.renew("one");
    expect(await session.renew("one")).toBe("two");
    expect(send).toHaveBeenCalledTimes(1);
  });

  it("is over when the gateway says so, and tells whoever listens", async () => {
    const session = new Session(MERCHANT_PATHS, () => Promise.resolve(answer(401, { code: "SESSION_ENDED" })));
    const heard = vi.fn();
    session.subscribe(heard);
    expect(await session.token()).toBeNull();
    expect([session.state, session.hasEnded]).toEqual(["signed-out", false]);
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it("has ended for whoever was signed in and did not ask for it, until somebody signs in again", async () => {
    const session = new Session(MERCHANT_PATHS, () => Promise.resolve(answer(401, { code: "SESSION_ENDED" })));
    session.begin(signed("one"));
    await session.renew("one");
    expect([session.state, session.hasEnded]).toEqual(["signed-out", true]);
    session.begin(signed("two"));
    expect(session.hasEnded).toBe(false);
  });

  it("is not over when the gateway cannot be reached", async () => {
    const session = new Session(MERCHANT_PATHS, () => Promise.resolve(answer(503, { code: "UNAVAILABLE" })));
    session.begin({ accessToken: "one", expiresIn: 0 });
    await expect(session.token()).rejects.toMatchObject({ status: 503, code: "UNAVAILABLE" });
    expect(session.state).toBe("signed-in");
  });

  it("goes on where the gateway did not end it, says so, and ends once it did", async () => {
    const answers = [
      () => Promise.reject(new TypeError("Failed to fetch")),
      () => Promise.resolve(answer(503, { code: "UNAVAILABLE" })),
      () => Promise.resolve(answer(200, { success: true })),
    ];
    const other = new Session(MERCHANT_PATHS);
    other.begin(signed("one"));
    const session = new Session(MERCHANT_PATHS, () => answers.shift()?.() ?? Promise.reject(new Error("Too often.")));
    session.begin(signed("one"));
    for (const code of ["OFFLINE", "UNAVAILABLE"]) {
      await session.end();
      expect(session.notEnded()).toMatchObject({ code });
      expect([session.state, other.state]).toEqual(["signed-in", "signed-in"]);
    }
    await session.end();
    expect([session.state, session.notEnded()]).toEqual(["signed-out", null]);
    await vi.waitFor(() => {
      expect(other.state).toBe("signed-out");
    });
    expect([session.hasEnded, other.hasEnded]).toEqual([false, true]);
  });

  it.each([
    ["the same person's", "mem_ada", false],
    ["somebody else's", "mem_bob", true],
  ])("sends nothing more of a page where the next token is %s", async (_, whose, isAnothers) => {
    const reload = vi.fn();
    const next = tokenOf(whose, 2);
    const session = new Session(MERCHANT_PATHS, () => Promise.resolve(answer(200, signed(next))), Date.now, reload);
    session.begin(signed(tokenOf("mem_ada", 1)));
    const sent: (string | null)[] = [];
    const send = authorized(session, (request) => {
      sent.push((request as Request).headers.get("Authorization"));
      return Promise.resolve(answer(sent.length === 1 ? 401 : 200, {}));
    });
    const act = send(new Request("https://gateway.example/api/dashboard/invitations", { method: "POST", body: "{}" }));
    if (isAnothers) await expect(act).rejects.toMatchObject({ status: 401, code: "SESSION_ENDED" });
    else expect((await act).status).toBe(200);
    expect(sent).toEqual([tokenOf("mem_ada", 1), ...(isAnothers ? [] : [next])].map((one) => `Bearer ${one}`));
    expect(reload).toHaveBeenCalledTimes(isAnothers ? 1 : 0);
  });

  it("goes on in the browser's other pages once somebody has signed in in one of them", async () => {
    const refresh = vi.fn(() => Promise.resolve(answer(200, signed(tokenOf("mem_bob", 1)))));
    const reload = vi.fn();
    const waiting = new Session(MERCHANT_PATHS, () => Promise.resolve(answer(401, { code: "SESSION_ENDED" })));
    await waiting.token();
    const heard = vi.fn();
    waiting.subscribe(heard);
    const ofAda = new Session(MERCHANT_PATHS, refresh, Date.now, reload);
    ofAda.begin(signed(tokenOf("mem_ada", 1)));
    new Session(MERCHANT_PATHS).enter(signed(tokenOf("mem_bob", 1)));
    await vi.waitFor(() => {
      expect(heard).toHaveBeenCalledTimes(1);
      expect(reload).toHaveBeenCalledTimes(1);
    });
    expect([waiting.state, ofAda.state, refresh.mock.calls.length]).toEqual(["unknown", "signed-in", 1]);
  });

  it("keeps its token out of every storage", async () => {
    const session = new Session(MERCHANT_PATHS, () => Promise.resolve(answer(200, signed("secret-token"))));
    await session.token();
    expect(JSON.stringify([localStorage, sessionStorage, document.cookie])).not.toContain("secret-token");
  });
});

describe("a refresh whose answer is lost", () => {
  const never = () => new Promise<Response>(() => undefined);

  afterEach(() => {
    vi.useRealTimers();
  });

  it("is asked for once more while the gateway gives the same answer again", async () => {
    vi.useFakeTimers();
    const send = vi
      .fn<typeof fetch>()
      .mockImplementationOnce(never)
      .mockResolvedValue(answer(200, signed("one")));
    const session = new Session(MERCHANT_PATHS, send);
    const token = session.token();
    await vi.advanceTimersByTimeAsync(ASK_AGAIN_MS - 1);
    expect(send).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(await token).toBe("one");
    expect(send).toHaveBeenCalledTimes(2);
    expect(session.state).toBe("signed-in");
  });

  it.each([
    ["the connection broke", () => Promise.reject(new TypeError("Failed to fetch"))],
    ["a proxy got none", () => Promise.resolve(answer(502, {}))],
  ])("is asked for once more at once where %s, and no third time", async (_, lost) => {
    const send = vi
      .fn<typeof fetch>()
      .mockImplementationOnce(lost)
      .mockResolvedValueOnce(answer(200, signed("one")));
    expect(await new Session(MERCHANT_PATHS, send).token()).toBe("one");
    const down = vi.fn<typeof fetch>(lost);
    const session = new Session(MERCHANT_PATHS, down);
    await expect(session.token()).rejects.toThrow();
    expect(down).toHaveBeenCalledTimes(2);
    expect(session.state).toBe("unknown");
  });

  it("is not waited for without end by the browser's other pages", async () => {
    vi.useFakeTimers();
    // Another page has the lock, and does not give it back.
    const request = (_: string, { signal }: LockOptions) =>
      new Promise((__, reject) => {
        signal?.addEventListener("abort", () => {
          reject(signal.reason as Error);
        });
      });
    vi.stubGlobal("navigator", { locks: { request } });
    const send = vi.fn<typeof fetch>(never);
    const token = new Session(MERCHANT_PATHS, send).token().catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await token).toMatchObject({ code: "TIMEOUT" });
    expect(send).not.toHaveBeenCalled();
  });

  it("is sent where the turn comes, however long it takes then", async () => {
    vi.useFakeTimers();
    const signals: (AbortSignal | undefined)[] = [];
    const request = (_: string, { signal }: LockOptions, work: () => Promise<Response>) => {
      signals.push(signal);
      return work();
    };
    vi.stubGlobal("navigator", { locks: { request } });
    const session = new Session(MERCHANT_PATHS, () => Promise.resolve(answer(200, signed("one"))));
    expect(await session.token()).toBe("one");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(signals.map((one) => one?.aborted)).toEqual([false]);
  });
});
