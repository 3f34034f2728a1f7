import { describe, expect, it } from "vitest";

import { browserName } from "./browser";

const CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36";

describe("what a browser says it is", () => {
  it.each([
    [CHROME, "Chrome 150 · Linux"],
    [`${CHROME} Edg/150.0.1`, "Edge 150 · Linux"],
    ["Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox 140 · Windows"],
    [
      "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 " +
        "Mobile/15E148 Safari/604.1",
      "Safari 18 · iOS",
    ],
    ["curl/8.14.1", "curl/8.14.1"],
  ])("is said in short: %s", (userAgent, name) => {
    expect(browserName(userAgent)).toBe(name);
  });
});
