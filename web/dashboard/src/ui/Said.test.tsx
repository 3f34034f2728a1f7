import { MantineProvider } from "@mantine/core";
import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, describe, expect, it } from "vitest";

import { ApiError } from "../api/errors";
import { chooseLanguage } from "../i18n";

import { ErrorNote } from "./Feedback";
import { Meaning } from "./Meaning";

function note(code: string, message: string, details: ApiError["details"] = []) {
  render(
    <MantineProvider env="test" withCssVariables={false}>
      <ErrorNote error={new ApiError(403, code, message, details)} />
    </MantineProvider>,
  );
}

describe("what the API said", () => {
  afterEach(async () => {
    cleanup();
    await chooseLanguage("en");
  });

  it("is the API's own sentence in English, with its code", () => {
    note("INSUFFICIENT_BALANCE", "The wallet holds 3 USDC.");
    expect(screen.getByText("The wallet holds 3 USDC.")).toBeTruthy();
    expect(screen.getByText("INSUFFICIENT_BALANCE")).toBeTruthy();
  });

  it("is in the reader's language where there is a sentence for its code", async () => {
    await chooseLanguage("de");
    note("INSUFFICIENT_BALANCE", "The wallet holds 3 USDC.");
    expect(screen.getByText("Das Guthaben reicht nicht. Es wurde nichts bewegt.")).toBeTruthy();
    expect(screen.queryByText("The wallet holds 3 USDC.")).toBeNull();
  });

  it("keeps its own sentence beside the other one where that names what the other cannot", async () => {
    await chooseLanguage("de");
    note("PAYOUT_BELOW_MINIMUM", "At least 5 USDC.");
    expect(screen.getByText(/liegt unter dem Minimum/)).toBeTruthy();
    expect(screen.getByText("At least 5 USDC.").lang).toBe("en");
  });

  it.each([
    [503, 1],
    [404, 0],
  ])("can be asked for again where it may come: %s", (status, buttons) => {
    const error = new ApiError(status, "PAYMENT_NOT_FOUND", "There is no such payment.");
    render(
      <MantineProvider env="test" withCssVariables={false}>
        <ErrorNote error={error} onRetry={() => undefined} />
      </MantineProvider>,
    );
    expect(screen.getByText("PAYMENT_NOT_FOUND")).toBeTruthy();
    expect(screen.queryAllByRole("button")).toHaveLength(buttons);
  });

  it.each([
    ["en", 1],
    ["de", 2],
  ] as const)(
    "is told once where it is the field's name and what is wrong with that: %s",
    async (language, sentences) => {
      await chooseLanguage(language);
      note("VALIDATION_ERROR", "maxFee must be more than 2 ETH", [
        { field: "maxFee", message: "must be more than 2 ETH" },
      ]);
      const alert = screen.getByRole("alert");
      expect(alert.querySelectorAll("p, li")).toHaveLength(sentences);
      expect(screen.getByText("must be more than 2 ETH")).toBeTruthy();
    },
  );

  it("is in the reader's language where a proxy answered in the gateway's place", async () => {
    await chooseLanguage("de");
    note("HTTP_503", "The gateway answered 503.");
    expect(screen.getByText(/Das Gateway ist gerade nicht erreichbar/)).toBeTruthy();
    expect(screen.queryByText("The gateway answered 503.")).toBeNull();
    expect(screen.getByText("HTTP_503")).toBeTruthy();
    cleanup();
    note("HTTP_504", "The gateway answered 504.");
    expect(screen.getByText(/hat nicht rechtzeitig geantwortet/)).toBeTruthy();
  });

  it("is marked as English where there is no other sentence", async () => {
    await chooseLanguage("ja");
    note("SOMETHING_NEW", "This is new.");
    expect(screen.getByText("This is new.").lang).toBe("en");
  });

  it("has words for its codes, and shows those of a later gateway as they are", async () => {
    await chooseLanguage("fr");
    render(
      <>
        <p>
          <Meaning of="held" code="late" />
        </p>
        <p>
          <Meaning of="held" code="much_too_late" />
        </p>
      </>,
    );
    expect(screen.getByText("Trop tard")).toBeTruthy();
    expect(screen.getByText("much too late")).toBeTruthy();
  });
});
