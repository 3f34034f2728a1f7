import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { PROJECT, show } from "../../testing/render";

import { NewExchange } from "./NewExchange";

const BASE = `/api/dashboard/projects/${PROJECT}`;
const balance = { chain: "polygon", token: "USDT", contractAddress: null, decimals: 6, pending: "0", held: "0" };

it("is typed anew where it was deleted, and is the gateway's own again once an empty field is left", async () => {
  await show(NewExchange, {
    path: "exchanges/new",
    answers: {
      [`GET ${BASE}/wallet`]: { success: true, mode: "live", balances: [{ ...balance, available: "30" }] },
      [`GET ${BASE}/swap-bridge/platform-fees`]: { success: true, defaultSlippage: 1 },
    },
  });
  const field = await screen.findByLabelText<HTMLInputElement>(/^Slippage/);
  await expect.poll(() => field.value).toBe("1 %");
  const change = (value: string) => {
    fireEvent.change(field, { target: { value } });
  };
  change("5 %");
  change(" %");
  for (const key of ["0", ".", "5"]) change(`${field.value.replace(" %", "")}${key} %`);
  expect(field.value).toBe("0.5 %");
  change(" %");
  fireEvent.blur(field);
  expect(field.value).toBe("1 %");
  change("60 %");
  fireEvent.blur(field);
  expect(field.value).toBe("50 %");
});
