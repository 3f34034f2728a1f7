import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";

import { projectsQuery } from "../queries";
import { merchantSession } from "../api";
import { knowMember, mount, PROJECT, projectOf, refused } from "../../testing/render";
import { useRoutePath } from "../../ui/address";
import { useProject } from "../project";

import { sameIn } from "./ProjectChoice";
import { ProjectSwitch } from "./ProjectSwitch";

const live = { projectId: "prj_2", mode: "live" } as const;
const sandbox = { projectId: "prj_3", mode: "sandbox" } as const;

it.each([
  ["/$projectId/wallet", live, "/prj_2/wallet"],
  ["/$projectId/payouts/new", live, "/prj_2/payouts/new"],
  ["/$projectId/payments/$paymentId", live, "/prj_2/payments"],
  ["/$projectId/webhooks/endpoints/$endpointId", live, "/prj_2/webhooks"],
  ["/$projectId/sandbox", sandbox, "/prj_3/sandbox"],
  ["/$projectId/sandbox", live, "/prj_2/overview"],
  ["/$projectId", live, "/prj_2/payments"],
] as const)("from %s the way to another project leads to the same page of it", (path, other, expected) => {
  expect(sameIn(path, other)).toBe(expected);
});

function Page() {
  return (
    <>
      <ProjectSwitch project={useProject()} />
      <p>{useRoutePath()}</p>
    </>
  );
}

it("goes to the other project's page of that name when it is chosen", async () => {
  await mount(Page, {
    session: merchantSession,
    path: "/$projectId/wallet",
    at: `/${PROJECT}/wallet`,
    answer: () => refused(404, "NOT_FOUND"),
    known: (client) => {
      knowMember(client, ["self", "read"]);
      client.setQueryData(projectsQuery.queryKey, [projectOf({}), projectOf({ projectId: "prj_2", name: "Südlicht" })]);
    },
  });
  expect(await screen.findByText("/$projectId/wallet")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: /Nordlicht/ }));
  fireEvent.click(await screen.findByRole("menuitem", { name: "Südlicht" }));
  expect(await screen.findByRole("button", { name: /Südlicht/ })).toBeTruthy();
  expect(screen.getByText("/$projectId/wallet")).toBeTruthy();
});
