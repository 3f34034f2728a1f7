import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { merchantSession } from "../merchant/api";

import { makeQueryClient } from "./Providers";
import { useLive } from "./useLive";

const REST_MS = 10_000;

/** Follow changes beside a query that is light and one that is much to ask for; return what asked, and who tells. */
function followed(heavy: () => Promise<number>) {
  merchantSession.begin({ accessToken: "token", expiresIn: 900 });
  let write: (text: string) => void = () => undefined;
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      write = (text) => {
        controller.enqueue(new TextEncoder().encode(text));
      };
    },
  });
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(stream)));
  const asked = { light: 0, heavy: 0 };
  const touches = () => true;
  function Page() {
    useLive("/stream", merchantSession, touches);
    useQuery({ queryKey: ["light"], queryFn: () => (asked.light += 1) });
    useQuery({
      queryKey: ["heavy"],
      queryFn: () => {
        asked.heavy += 1;
        return heavy();
      },
      meta: { restMs: REST_MS },
      retry: false,
    });
    return null;
  }
  const shown = render(
    <QueryClientProvider client={makeQueryClient()}>
      <Page />
    </QueryClientProvider>,
  );
  const change = async () => {
    write('event: changes\ndata: {"changes":[{"kind":"payment"}]}\n\n');
    await vi.advanceTimersByTimeAsync(2_000);
  };
  return { asked, change, unmount: shown.unmount };
}

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("what is much to ask for rests after each answer, and then is read once, whatever changed meanwhile", async () => {
  const { asked, change, unmount } = followed(() => Promise.resolve(1));
  await vi.advanceTimersByTimeAsync(100);
  expect(asked).toEqual({ light: 1, heavy: 1 });
  await change();
  await change();
  expect(asked).toEqual({ light: 3, heavy: 1 });
  await vi.advanceTimersByTimeAsync(REST_MS);
  expect(asked).toEqual({ light: 3, heavy: 2 });
  await vi.advanceTimersByTimeAsync(REST_MS);
  expect(asked).toEqual({ light: 3, heavy: 2 });
  unmount();
});

it.each([
  ["takes long", () => new Promise<number>((done) => setTimeout(done, 5_000, 1))],
  ["fails", () => Promise.reject(new Error("OVERVIEW_TOO_SLOW"))],
])("what is much to ask for and %s is not begun anew with each change", async (_, heavy) => {
  const { asked, change, unmount } = followed(heavy);
  for (let number = 0; number < 4; number += 1) await change();
  expect(asked).toEqual({ light: 5, heavy: 1 });
  await vi.advanceTimersByTimeAsync(2 * REST_MS);
  expect(asked.heavy).toBe(2);
  unmount();
});
