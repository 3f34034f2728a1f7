import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { show } from "../testing/render";

import { Page } from "./Page";
import { Scannable } from "./Scannable";

const ADDRESS = "0x5555555555555555555555555555555555555555";

it("shows the code of an address when it is asked to", async () => {
  await show(
    () => (
      <Page title="Wallet">
        <Scannable value={ADDRESS} />
      </Page>
    ),
    { path: "wallet", answers: {} },
  );
  expect(screen.queryByRole("img")).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "QR code" }));
  const code = await screen.findByRole("img", { name: `QR code of ${ADDRESS}` });
  // Modules of 42 letters, and a quiet edge around them: a fixed code, as the encoder has no choice but its mask.
  expect(code.getAttribute("viewBox")).toMatch(/^0 0 (37|41) \1$/);
  expect(code.querySelector("path")?.getAttribute("d")).toMatch(/^M4 4h1v1h-1z/);
});
