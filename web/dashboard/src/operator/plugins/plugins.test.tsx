import { screen, within } from "@testing-library/react";
import { describe, expect, it } from "vitest";

import { showOperator } from "../../testing/render";
import type { Schemas } from "../api";

import { PluginsPage } from "./PluginsPage";

const LIST = "GET /api/admin/plugins";
const PLUGIN: Schemas["PluginView"] = {
  name: "evm",
  state: "failing",
  distribution: "cambist-evm",
  version: "0.1.0",
  contractVersion: 1,
  kinds: ["chains"],
  chains: ["polygon"],
  problems: ["polygon: the node does not answer"],
  settings: [
    { name: "chains.polygon.quorum", value: "2" },
    { name: "chains.polygon.rpc_urls", value: null },
  ],
};

describe("the plugins", () => {
  it("are shown with what they bring, what is wrong, and their settings without what may be secret", async () => {
    const answers = { [LIST]: { success: true, contractVersion: 1, plugins: [PLUGIN] } };
    await showOperator(PluginsPage, { path: "plugins", answers });
    const row = await screen.findByRole("row", { name: /evm/ });
    for (const text of ["Failing", "0.1.0", "cambist-evm", "polygon: the node does not answer", "2 settings", "2"]) {
      expect(within(row).getByText(text)).toBeTruthy();
    }
    expect(within(row).getByText("set, not shown")).toBeTruthy();
  });

  it("say where none is installed", async () => {
    await showOperator(PluginsPage, { path: "plugins", answers: { [LIST]: { contractVersion: 1, plugins: [] } } });
    expect(await screen.findByText("No plugin is installed")).toBeTruthy();
  });
});
