import { createMemoryHistory, RouterProvider } from "@tanstack/react-router";
import { act, cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { expect, it, vi } from "vitest";

import { DESCRIBED } from "../../testing/described";
import { json, knowMember, PROJECT, projectOf, refused } from "../../testing/render";
import { makeQueryClient, Providers } from "../../ui/Providers";
import { merchantSession } from "../api";
import { projectsQuery } from "../queries";
import { makeRouter } from "../router";

const MAY = DESCRIBED.merchant.permissions as Parameters<typeof knowMember>[1];

/** Go to a page of a project's, where a member has two. */
async function open(at: string) {
  vi.stubGlobal("fetch", (input: Request | string) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input, location.href);
    const example = DESCRIBED.merchant.example(pathname);
    return Promise.resolve(example === undefined ? refused(404, "NOT_FOUND") : json(example));
  });
  merchantSession.begin({ accessToken: "token", expiresIn: 900 });
  const client = makeQueryClient();
  knowMember(client, MAY, {}, { name: "Ada", email: "ada@shop.example", role: "owner" });
  client.setQueryData(projectsQuery.queryKey, [projectOf({}), projectOf({ projectId: "prj_2", name: "Südlicht" })]);
  const router = makeRouter(client);
  router.update({
    ...router.options,
    history: createMemoryHistory({ initialEntries: [`/dashboard/${at}`] }),
  });
  await router.load();
  render(
    <Providers client={client}>
      <RouterProvider router={router} />
    </Providers>,
  );
  return router;
}

/** Type into a field of a project's page, and return what stands there once another project is chosen. */
async function typedIn(path: string, label: RegExp): Promise<string> {
  const router = await open(`${PROJECT}/${path}`);
  const field = await screen.findByLabelText<HTMLInputElement>(label);
  fireEvent.change(field, { target: { value: "Grace" } });
  await act(() => router.navigate({ to: `/prj_2/${path}` }));
  expect(router.state.location.pathname).toContain("prj_2");
  return (await screen.findByLabelText<HTMLInputElement>(label)).value;
}

it("keeps what stands on a page of all projects when another one is chosen, and begins a project's own anew", async () => {
  expect(await typedIn("team", /^E-mail/)).toBe("Grace");
  cleanup();
  expect(await typedIn("payments/new", /^Order/)).toBe("");
});

it("says of an address without a page that there is none, in the page’s main part", async () => {
  await open(`${PROJECT}/nothing-of-the-kind`);
  const main = await screen.findByRole("main");
  expect(within(main).getByRole("link", { name: "To the start" })).toBeTruthy();
});

it("leads from a project that is not open to one that is", async () => {
  const router = await open("prj_of_others/payments");
  await screen.findByText("This project does not exist, or is not open to you.");
  fireEvent.click(screen.getByRole("link", { name: "To the start" }));
  await waitFor(() => {
    expect(router.state.location.pathname).toContain(`${PROJECT}/overview`);
  });
});
