/** What is in the menu of a row. */
import { fireEvent, screen, within } from "@testing-library/react";

/** Open a row's menu, and choose what is called so. */
export async function chooseIn(row: HTMLElement, name: string): Promise<void> {
  fireEvent.click(within(row).getByRole("button", { name: /^What can be done/ }));
  fireEvent.click(await screen.findByRole("menuitem", { name }));
}
