import { describe, expect, it, vi } from "vitest";

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
});
