import { waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, it } from "vitest";

import { keepFocus } from "./focus";

let end: () => void;

beforeEach(() => {
  document.body.innerHTML = `
    <main id="main" tabindex="-1">
      <section aria-label="Members">
        <table><tbody>
          <tr id="one"><td><button id="remove-one">Remove</button></td></tr>
          <tr id="two"><td><button id="remove-two">Remove</button></td></tr>
        </tbody></table>
      </section>
    </main>`;
  end = keepFocus();
});

afterEach(() => {
  end();
  document.body.innerHTML = "";
});

function find(selector: string): HTMLElement {
  const found = document.querySelector<HTMLElement>(selector);
  if (found === null) throw new Error(`There is no ${selector}.`);
  return found;
}

const focused = (selector: string) =>
  waitFor(() => {
    expect(document.activeElement).toBe(find(selector));
  });

const later = () => new Promise((done) => setTimeout(done));

it("gives the focus to the row whose button went away, then to the card, then to the page", async () => {
  find("#remove-one").focus();
  find("#remove-one").remove();
  await focused("#one");
  find("#one").remove();
  await focused("section");
  find("section").remove();
  await focused("main");
});

it("passes over what it gave the focus to, once that is left", async () => {
  find("#remove-one").focus();
  find("#remove-one").remove();
  await focused("#one");
  expect(find("#one").tabIndex).toBe(-1);
  find("#remove-two").focus();
  expect(find("#one").hasAttribute("tabindex")).toBe(false);
});

it("goes back to what was left for a dialog that is gone, and to its row where that is gone as well", async () => {
  find("#remove-one").focus();
  const open = () => {
    document.body.insertAdjacentHTML("beforeend", '<div role="dialog"><button id="confirm">Remove</button></div>');
    find("#confirm").focus();
  };
  open();
  find("[role=dialog]").remove();
  await focused("#remove-one");
  open();
  find("#remove-one").remove();
  find("[role=dialog]").remove();
  await focused("#one");
});

it("gives the focus back to a button that could not have it while its act ran", async () => {
  const button = find("#remove-one");
  button.focus();
  button.setAttribute("data-loading", "true");
  button.setAttribute("disabled", "");
  await later();
  button.blur(); // browsers do that to what is disabled
  expect(document.activeElement).toBe(document.body);
  button.removeAttribute("data-loading");
  button.removeAttribute("disabled");
  await focused("#remove-one");
});

it("gives the focus of a button that is of no more use to its row", async () => {
  const button = find("#remove-one");
  button.focus();
  button.setAttribute("disabled", "");
  button.blur();
  await focused("#one");
});

it("takes the focus from nothing else, and gives it to nobody who wanted it nowhere", async () => {
  find("#remove-one").focus();
  find("#remove-two").focus();
  find("#remove-one").remove();
  await later();
  expect(document.activeElement).toBe(find("#remove-two"));
  find("main").dispatchEvent(new Event("pointerdown", { bubbles: true }));
  find("#remove-two").blur();
  find("#remove-two").remove();
  await later();
  expect(document.activeElement).toBe(document.body);
});
