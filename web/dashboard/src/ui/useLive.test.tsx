import { QueryClientProvider, useQuery } from "@tanstack/react-query";
import { render } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { merchantSession } from "../merchant/api";

import { makeQueryClient } from "./Providers";
import { useLive } from "./useLive";

const REST_MS = 10_000;

it("what is much to ask for rests after each answer, and then is read once, whatever changed meanwhile", async () => {
  vi.useFakeTimers();
  merchantSession.begin({ accessToken: "token", expiresIn: 900 });
  let tell: (text: string) => void = () => undefined;
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      tell = (text) => {
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
    useQuery({ queryKey: ["heavy"], queryFn: () => (asked.heavy += 1), meta: { restMs: REST_MS } });
    return null;
  }
  const shown = render(
    <QueryClientProvider client={makeQueryClient()}>
      <Page />
    </QueryClientProvider>,
  );
  await vi.advanceTimersByTimeAsync(100);
  expect(asked).toEqual({ light: 1, heavy: 1 });
  for (let change = 1; change <= 2; change += 1) {
    tell('event: changes\ndata: {"changes":[{"kind":"payment"}]}\n\n');
    await vi.advanceTimersByTimeAsync(2_000);
  }
  expect(asked).toEqual({ light: 3, heavy: 1 });
  await vi.advanceTimersByTimeAsync(REST_MS);
  expect(asked).toEqual({ light: 3, heavy: 2 });
  await vi.advanceTimersByTimeAsync(REST_MS);
  expect(asked).toEqual({ light: 3, heavy: 2 });
  shown.unmount();
  vi.useRealTimers();
});
