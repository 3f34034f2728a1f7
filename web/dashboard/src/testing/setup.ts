/** What a browser has and jsdom lacks. */
import * as React from "react";
import { afterAll, afterEach, vi } from "vitest";
import { cleanup, configure, prettyDOM } from "@testing-library/react";

import { needAllTexts, startLanguages } from "../i18n";

globalThis.matchMedia = (query) =>
  ({
    matches: false,
    media: query,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  }) as unknown as MediaQueryList;

globalThis.ResizeObserver = class {
  observe(): void {
    // Nothing has a size.
  }
  unobserve(): void {
    // Nothing was observed.
  }
  disconnect(): void {
    // The same.
  }
};

// Areas of text are measured again once their font is there.
Object.defineProperty(document, "fonts", { configurable: true, value: new EventTarget() });

Element.prototype.scrollIntoView = () => undefined;
globalThis.scrollTo = () => undefined;

// Node's Request knows no page that an address would be relative to, and no signal but its own.
const NodeRequest = globalThis.Request;
globalThis.Request = class extends NodeRequest {
  constructor(input: RequestInfo | URL, init: RequestInit = {}) {
    super(typeof input === "string" ? new URL(input, location.origin) : input, { ...init, signal: null });
  }
};

// React keeps the stack at which each element is made, up to ten thousand a second, for warnings that nobody reads here.
interface Kept {
  recentlyCreatedOwnerStacks: number;
}
const INSIDE = "__CLIENT_INTERNALS_DO_NOT_USE_OR_WARN_USERS_THEY_CANNOT_UPGRADE";
const inside = (React as unknown as Readonly<Record<string, Kept | undefined>>)[INSIDE];
if (inside === undefined)
  throw new Error("this version of React has no such inside: see whether it still keeps stacks");
Object.defineProperty(inside, "recentlyCreatedOwnerStacks", { get: () => 10_000, set: () => undefined });

// jsdom looks in a frame whether what has the focus can still have it. Where that frame was asked for on a test's clock, it
// would never come once the clock is put away, and all later frames wait for it: those of other files, too.
const FRAME_MS = 17;
const { useRealTimers: putClockAway } = vi;
vi.useRealTimers = () => {
  if (vi.isFakeTimers()) vi.advanceTimersByTime(FRAME_MS);
  return putClockAway();
};
afterAll(() => {
  vi.useRealTimers = putClockAway; // this file is read again before each file of tests
});

// What must come is waited for: others may load the machine. Until it has come, nobody reads how the page looks without it.
configure({
  asyncUtilTimeout: 20_000,
  getElementError: (message, container) => {
    const error = Object.defineProperty(new Error(), "message", {
      configurable: true, // what is waited for in vain says so besides
      get: () => [message, prettyDOM(container)].filter(Boolean).join("\n\n"),
    });
    error.name = "TestingLibraryElementError";
    return error;
  },
});
await startLanguages("operator");
await needAllTexts();
afterEach(() => {
  cleanup();
  sessionStorage.clear();
  // All files share one page: what the last test of one replaced is there for the next.
  vi.unstubAllGlobals();
});
