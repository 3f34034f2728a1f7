import { fireEvent, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { show } from "../testing/render";

import { Page } from "./Page";
import { Secret } from "./Secret";

it("what is shown once comes into sight, says that a click copies it, and is copied by one", async () => {
  const writeText = vi.fn(() => Promise.resolve());
  vi.stubGlobal("navigator", Object.assign(Object.create(navigator) as Navigator, { clipboard: { writeText } }));
  const scroll = vi.spyOn(Element.prototype, "scrollIntoView");
  const Shown = () => (
    <Page title="Keys">
      <Secret text="ck_test_1" label="Copy the key" />
    </Page>
  );
  await show(Shown, { path: "keys", answers: {} });
  expect((scroll.mock.contexts[0] as Element).textContent).toContain("ck_test_1");
  expect(screen.getByText("Copy it")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: /Copy the key/ }));
  expect(writeText).toHaveBeenCalledWith("ck_test_1");
});
