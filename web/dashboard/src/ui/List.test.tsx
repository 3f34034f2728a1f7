import { screen, waitFor } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { nothing, show } from "../testing/render";

import { List } from "./List";
import { Page } from "./Page";

it("does not say that there is nothing where it could not be read again", async () => {
  const refetch = vi.fn();
  const Empty = () => (
    <Page title="Payments">
      <List
        label="Payments"
        columns={[]}
        query={{
          data: { rows: [], ...nothing, isExact: true, hasNext: false },
          error: new TypeError("Failed to fetch"),
          isPlaceholderData: false,
          refetch,
        }}
        rowKey={String}
        empty="No payments yet"
        onPage={() => undefined}
      />
    </Page>
  );
  await show(Empty, { path: "payments", answers: {} });
  expect(await screen.findByText("OFFLINE")).toBeTruthy();
  expect(screen.queryByText("No payments yet")).toBeNull();
  screen.getByRole("button", { name: "Try again" }).click();
  await waitFor(() => {
    expect(refetch).toHaveBeenCalledOnce();
  });
});
