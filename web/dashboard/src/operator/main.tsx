import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { startLanguages } from "../i18n";
import { begin } from "../ui/begin";
import { Providers, makeQueryClient } from "../ui/Providers";
import { stepUpWith } from "../ui/StepUp";

import { operatorSession } from "./api";
import { makeRouter } from "./router";

const root = document.getElementById("root");
if (root === null) throw new Error("The page has no #root.");

const client = makeQueryClient();
stepUpWith(operatorSession);
const router = makeRouter(client);

await begin(root, startLanguages("operator"), () => {
  createRoot(root).render(
    <StrictMode>
      <Providers client={client}>
        <RouterProvider router={router} />
      </Providers>
    </StrictMode>,
  );
});
