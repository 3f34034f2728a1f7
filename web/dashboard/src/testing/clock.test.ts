import { afterEach, expect, it, vi } from "vitest";

afterEach(() => {
  document.body.replaceChildren();
});

it("frames come once a test's clock is put away on which what had the focus has changed", async () => {
  vi.useFakeTimers();
  const field = document.createElement("input");
  document.body.append(field);
  field.focus();
  field.disabled = true;
  vi.useRealTimers();
  const came = vi.fn();
  requestAnimationFrame(came);
  await vi.waitFor(
    () => {
      expect(came).toHaveBeenCalledOnce();
    },
    { timeout: 20_000 },
  );
});
