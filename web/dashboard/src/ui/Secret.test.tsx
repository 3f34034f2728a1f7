import { fireEvent, screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { Credentials } from "../merchant/trackers/Credentials";
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

it("of two that are shown at once, the first comes into sight", async () => {
  const scroll = vi.spyOn(Element.prototype, "scrollIntoView");
  const Shown = () => (
    <Page title="Tracker">
      <Credentials secretKey="first" authToken="second" />
    </Page>
  );
  await show(Shown, { path: "trackers", answers: {} });
  expect(screen.getByText("second")).toBeTruthy();
  expect(scroll.mock.contexts.map((one) => (one as Element).textContent)).toEqual(["firstCopy it"]);
});
