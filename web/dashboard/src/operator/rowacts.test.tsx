import { fireEvent, screen } from "@testing-library/react";
import { useState } from "react";
import { expect, it } from "vitest";

import { showOperator } from "../testing/render";
import { Page } from "../ui/Page";

import { RowActs } from "./RowActs";

const ACT = {
  id: "archive",
  act: "Archive",
  title: "Archive it?",
  children: <p>It is given to nobody any more.</p>,
  onConfirm: () => Promise.resolve(),
};

it("what can be done no more is not open where it can be done again", async () => {
  const Rows = () => {
    const [acts, setActs] = useState([ACT]);
    return (
      <Page title="Plans">
        <button
          type="button"
          onClick={() => {
            setActs(acts.length === 0 ? [ACT] : []);
          }}
        >
          Changed meanwhile
        </button>
        <RowActs of="basic" acts={acts} />
      </Page>
    );
  };
  await showOperator(Rows, { path: "plans", answers: {} });
  const change = () => {
    fireEvent.click(screen.getByText("Changed meanwhile"));
  };
  fireEvent.click(screen.getByRole("button", { name: "Archive" }));
  expect(await screen.findByRole("dialog")).toBeTruthy();
  change();
  expect(screen.queryByRole("dialog")).toBeNull();
  change();
  expect(screen.getByRole("button", { name: "Archive" })).toBeTruthy();
  expect(screen.queryByRole("dialog")).toBeNull();
});

it("an act that becomes its opposite meanwhile is not open any more", async () => {
  const Rows = () => {
    const [act, setAct] = useState(ACT);
    return (
      <Page title="Plans">
        <button
          type="button"
          onClick={() => {
            setAct({ ...ACT, act: "Bring back", title: "Bring it back?" });
          }}
        >
          Done meanwhile
        </button>
        <RowActs of="basic" acts={[act]} />
      </Page>
    );
  };
  await showOperator(Rows, { path: "plans", answers: {} });
  fireEvent.click(screen.getByRole("button", { name: "Archive" }));
  expect(await screen.findByRole("dialog")).toBeTruthy();
  fireEvent.click(screen.getByText("Done meanwhile"));
  expect(screen.queryByRole("dialog")).toBeNull();
  expect(screen.getByRole("button", { name: "Bring back" })).toBeTruthy();
});
