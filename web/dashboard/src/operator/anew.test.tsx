/** Dialogs that move money or credits begin with nothing: what was typed and given up is not what is meant the next time. */
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { expect, it } from "vitest";

import { DESCRIBED } from "../testing/described";
import { showOperator } from "../testing/render";
import { Page } from "../ui/Page";

import type { Schemas } from "./api";
import { StakeButton } from "./gas/StakeButton";
import { GrantCredits } from "./merchants/MerchantActs";

interface Stakes {
  readonly stake: NonNullable<Schemas["GasStationView"]["stake"]>;
}

const { gasStations } = DESCRIBED.operator.example("/api/admin/gas-stations") as {
  readonly gasStations: readonly [Schemas["GasStationView"] & Stakes];
};
const [station] = gasStations;

function Acts() {
  return (
    <Page title="Acts">
      <StakeButton station={{ ...station, balance: "7" }} stake={station.stake} action="stake" />
      <GrantCredits merchantId="mer_1" mode="live" />
    </Page>
  );
}

async function fields(act: string): Promise<readonly HTMLInputElement[]> {
  fireEvent.click(screen.getByRole("button", { name: act }));
  return within(await screen.findByRole("dialog")).getAllByRole<HTMLInputElement>("textbox");
}

it.each([
  ["Stake", ["5"]],
  ["Grant credits", ["500", "invoice 7"]],
])("what was typed and given up is gone when it is opened again: %s", async (act, typed) => {
  await showOperator(Acts, { path: "acts", answers: {}, permissions: ["stakes.change", "merchants.credits"] });
  const before = await fields(act);
  for (const [at, value] of typed.entries()) {
    const field = before[at];
    if (field !== undefined) fireEvent.change(field, { target: { value } });
  }
  expect(before.map((one) => one.value)).toEqual(typed);
  fireEvent.click(screen.getByRole("button", { name: "Cancel" }));
  await waitFor(() => {
    expect(screen.queryByRole("dialog")).toBeNull();
  });
  const after = await fields(act);
  expect(after.map((one) => one.value)).toEqual(typed.map(() => ""));
});
