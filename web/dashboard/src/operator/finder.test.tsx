import { fireEvent, screen, waitFor } from "@testing-library/react";
import { expect, it } from "vitest";

import { showOperator, type OperatorPermission } from "../testing/render";
import { Palette } from "../ui/Palette";

import { useFinder } from "./useFinder";

const FOUND = { merchantId: "mrc_7", merchantName: "Nordlicht", createdAt: "2026-01-01T12:00:00.000Z" };

function Page() {
  return (
    <>
      <h1>Anywhere</h1>
      <Palette commands={[]} finder={useFinder()} />
    </>
  );
}

const optionsOf = () => screen.queryAllByRole("option", { hidden: true }).map((one) => one.textContent);

async function look(permissions: readonly OperatorPermission[]): Promise<readonly Request[]> {
  const sent = await showOperator(Page, {
    path: "anywhere",
    permissions,
    answers: {
      "GET /api/admin/search": {
        found: [
          { ...FOUND, kind: "payments", id: "pay_1", status: "paid" },
          { ...FOUND, kind: "merchants", id: "mrc_7", status: null },
        ],
      },
    },
  });
  fireEvent.click(screen.getByRole("button", { name: /Search or go to/ }));
  fireEvent.change(await screen.findByPlaceholderText("What do you want to do?"), { target: { value: " 0xabc " } });
  return sent;
}

it("leads an operator to what a text names, with whose it is", async () => {
  const sent = await look(["records.read"]);
  await waitFor(() => {
    expect(optionsOf()).toEqual(["Payment · pay_1 · Nordlicht · Paid", "Merchant · mrc_7 · Nordlicht"]);
  });
  expect(sent.map(({ url }) => new URL(url).search)).toEqual(["?q=0xabc"]);
  fireEvent.keyDown(screen.getByRole("combobox"), { key: "Enter" });
  expect(await screen.findByText("elsewhere")).toBeTruthy();
});

it("asks for nothing that the operator's role does not permit", async () => {
  const sent = await look([]);
  expect(await screen.findByText("Nothing is called that.")).toBeTruthy();
  expect(sent).toEqual([]);
});
