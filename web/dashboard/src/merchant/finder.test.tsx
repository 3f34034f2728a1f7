import { MantineProvider } from "@mantine/core";
import { act, fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";

import { json, projectOf, refused, show, PROJECT } from "../testing/render";
import { Palette } from "../ui/Palette";

import { useFinder } from "./useFinder";

const SEARCH = `GET /api/dashboard/projects/${PROJECT}/search`;
const AT = "2026-01-01T12:00:00.000Z";

function Page() {
  return (
    <MantineProvider env="test" withCssVariables={false} withGlobalClasses={false}>
      <h1>Anywhere</h1>
      <Palette commands={[]} finder={useFinder(projectOf({}))} />
    </MantineProvider>
  );
}

const optionsOf = () => screen.queryAllByRole("option", { hidden: true }).map((one) => one.textContent);

it("leads to the records that what is pasted names, and forgets them when it is closed", async () => {
  const sent = await show(Page, {
    path: "anywhere",
    answers: {
      [SEARCH]: {
        success: true,
        found: [
          { kind: "payments", id: "pay_1", status: "paid", createdAt: AT, paymentId: "pay_1", accountId: null },
          { kind: "deposits", id: "dep_1", status: "confirmed", createdAt: AT, paymentId: null, accountId: "acc_1" },
          { kind: "trackers", id: "whk_1", status: null, createdAt: AT, paymentId: null, accountId: null },
        ],
      },
    },
  });
  fireEvent.click(screen.getByRole("button", { name: /Search or go to/ }));
  const field = await screen.findByRole("combobox");
  fireEvent.change(field, { target: { value: "0x" } });
  expect(await screen.findByText("Nothing is called that.")).toBeTruthy();
  fireEvent.change(field, { target: { value: " 0xabc " } });
  expect(screen.getByText("Loading")).toBeTruthy();
  await waitFor(() => {
    expect(optionsOf()).toEqual(["Payment · pay_1 · Paid", "Deposit · dep_1 · Confirmed", "Tracker · whk_1"]);
  });
  expect(sent.map(({ url }) => new URL(url).search)).toEqual(["?q=0xabc"]);
  act(() => {
    fireEvent.keyDown(field, { key: "ArrowDown" });
  });
  fireEvent.keyDown(field, { key: "Enter" });
  expect(await screen.findByText("elsewhere")).toBeTruthy();
});

it("says that the search failed, and not that nothing is called so", async () => {
  let isDown = true;
  await show(Page, {
    path: "anywhere",
    answers: { [SEARCH]: () => (isDown ? refused(400, "BAD_REQUEST") : json({ success: true, found: [] })) },
  });
  fireEvent.click(screen.getByRole("button", { name: /Search or go to/ }));
  const field = await screen.findByRole("combobox");
  fireEvent.change(field, { target: { value: "0xabc" } });
  expect(await screen.findByText("The search failed. Try again in a moment.")).toBeTruthy();
  expect(screen.queryByText("Nothing is called that.")).toBeNull();
  isDown = false;
  fireEvent.change(field, { target: { value: "0xabcd" } });
  expect(await screen.findByText("Nothing is called that.")).toBeTruthy();
  expect(screen.queryByText("The search failed. Try again in a moment.")).toBeNull();
});
