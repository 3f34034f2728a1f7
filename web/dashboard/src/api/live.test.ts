import { afterEach, describe, expect, it, vi } from "vitest";

import { follow, MessageReader } from "./live";
import { MERCHANT_PATHS, Session } from "./session";

describe("a stream", () => {
  it("is read wherever its pieces are cut", () => {
    const text =
      'retry: 3000\nid: 1\nevent: ready\ndata: {"resumed":false}\n\n: alive\n\nid: 2\nevent: changes\ndata: {}\n\n';
    for (let cut = 0; cut <= text.length; cut += 1) {
      const reader = new MessageReader();
      const found = [...reader.push(text.slice(0, cut)), ...reader.push(text.slice(cut))];
      expect(found).toEqual([
        { id: "1", event: "ready", data: '{"resumed":false}' },
        { id: "2", event: "changes", data: "{}" },
      ]);
    }
  });

  it("says where to go on also while nothing happens", () => {
    const quiet = ": still here\nid: 3\n\n: still here\n\n";
    expect(new MessageReader().push(quiet)).toEqual([{ id: "3", event: "message", data: "" }]);
  });

  it("is asked for again where it ended, with a token that works", async () => {
    const session = new Session(MERCHANT_PATHS);
    session.begin({ accessToken: "token", expiresIn: 900 });
    const sent: Headers[] = [];
    const bodies = [
      'id: 7\nevent: ready\ndata: {"resumed":false}\n\nid: 8\nevent: changes\ndata: {"changes":[{"kind":"payment"}]}\n\n',
      'id: 9\nevent: ready\ndata: {"resumed":true}\n\n',
    ];
    vi.useFakeTimers();
    vi.stubGlobal("fetch", (_: string, { headers }: { headers: Record<string, string> }) => {
      sent.push(new Headers(headers));
      return Promise.resolve(new Response(bodies.shift() ?? ""));
    });
    const told = { onChanges: vi.fn(), onMissed: vi.fn(), onState: vi.fn() };
    const stop = follow("/stream", session, told);
    await vi.waitFor(
      () => {
        expect(sent).toHaveLength(2);
      },
      { timeout: 30_000 },
    );
    stop();
    vi.useRealTimers();
    vi.unstubAllGlobals();
    expect(sent.map((one) => one.get("Authorization"))).toEqual(["Bearer token", "Bearer token"]);
    expect(sent.map((one) => one.get("Last-Event-ID"))).toEqual([null, "8"]);
    expect(told.onChanges).toHaveBeenCalledWith([{ kind: "payment" }]);
    expect(told.onMissed).toHaveBeenCalledTimes(1);
  });

  it("says that everything is to be read again where who reads may do less or more than before", async () => {
    const told = following('event: ready\ndata: {"resumed":true}\n\nevent: end\ndata: {"reason":"access_changed"}\n\n');
    await vi.waitFor(() => {
      expect(told.onMissed).toHaveBeenCalledTimes(1);
    });
    told.stop();
  });

  it("does not say so where it ends for another reason", async () => {
    const told = following('event: ready\ndata: {"resumed":true}\n\nevent: end\ndata: {"reason":"token_expired"}\n\n');
    await vi.waitFor(() => {
      expect(told.onState).toHaveBeenCalledWith(true);
    });
    await told.read;
    told.stop();
    expect(told.onMissed).not.toHaveBeenCalled();
  });
});

describe("a page that nobody sees", () => {
  afterEach(() => {
    setVisible(true);
  });

  it("holds no stream, and goes on where it was as soon as it is seen again", async () => {
    const gateway = new Streams();
    const told = gateway.follow();
    await vi.waitFor(() => {
      expect(gateway.open).toBe(1);
    });
    gateway.tell('id: 7\nevent: ready\ndata: {"resumed":false}\n\n');
    await vi.waitFor(() => {
      expect(told.onState).toHaveBeenLastCalledWith(true);
    });
    vi.useFakeTimers();
    setVisible(false);
    await vi.waitFor(() => {
      expect(gateway.open).toBe(0);
    });
    await vi.advanceTimersByTimeAsync(120_000);
    vi.useRealTimers();
    expect(gateway.asked).toEqual([null]);
    setVisible(true);
    await vi.waitFor(
      () => {
        expect(gateway.open).toBe(1);
      },
      { timeout: 400 }, // less than the shortest pause after a failure
    );
    expect(gateway.asked).toEqual([null, "7"]);
    expect(told.onState).not.toHaveBeenCalledWith(false);
    told.stop();
  });

  it("asks for none where it was opened unseen", async () => {
    setVisible(false);
    const gateway = new Streams();
    const told = gateway.follow();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(gateway.asked).toEqual([]);
    setVisible(true);
    await vi.waitFor(() => {
      expect(gateway.open).toBe(1);
    });
    told.stop();
  });
});

function setVisible(isSeen: boolean): void {
  Object.defineProperty(document, "hidden", { configurable: true, value: !isSeen });
  document.dispatchEvent(new Event("visibilitychange"));
}

function signedIn(): Session {
  const session = new Session(MERCHANT_PATHS);
  session.begin({ accessToken: "token", expiresIn: 900 });
  return session;
}

/** Follow a stream that says so much and ends. */
function following(text: string) {
  const told = { onChanges: vi.fn(), onMissed: vi.fn(), onState: vi.fn() };
  const body = new Response(text).body ?? new ReadableStream<Uint8Array>();
  let end: () => void = () => undefined;
  const read = new Promise<void>((resolve) => (end = resolve));
  const through = new TransformStream<Uint8Array, Uint8Array>({
    flush: () => {
      setTimeout(end);
    },
  });
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(body.pipeThrough(through))));
  return { ...told, read, stop: follow("/stream", signedIn(), told) };
}

/** A gateway whose streams stay open until the page leaves them. */
class Streams {
  open = 0;
  readonly asked: (string | null)[] = [];
  tell: (text: string) => void = () => undefined;

  follow() {
    vi.stubGlobal("fetch", (_: string, { headers, signal }: { headers: HeadersInit; signal: AbortSignal }) => {
      this.asked.push(new Headers(headers).get("Last-Event-ID"));
      this.open += 1;
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          this.tell = (text) => {
            controller.enqueue(new TextEncoder().encode(text));
          };
          signal.addEventListener("abort", () => {
            this.open -= 1;
            controller.error(signal.reason);
          });
        },
      });
      return Promise.resolve(new Response(body));
    });
    const told = { onChanges: vi.fn(), onMissed: vi.fn(), onState: vi.fn() };
    return { ...told, stop: follow("/stream", signedIn(), told) };
  }
}
