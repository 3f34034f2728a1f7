import { fireEvent, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { show } from "../testing/render";

import { Page } from "./Page";
import { Secret } from "./Secret";

it("says beside what is shown once that it is copied, and copies it", async () => {
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal("navigator", Object.assign(Object.create(navigator) as Navigator, { clipboard: { writeText } }));
  const Shown = () => (
    <Page title="Keys">
      <Secret text="ck_test_1" label="Copy the key" />
    </Page>
  );
  await show(Shown, { path: "keys", answers: {} });
  expect(screen.getByText("Copy it")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: /Copy the key/ }));
  expect(writeText).toHaveBeenCalledWith("ck_test_1");
});
