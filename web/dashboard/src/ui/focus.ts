/** Where whoever works with keys goes on, once what had the focus is gone. */
import { useEffect } from "react";

/** What is said as a whole when it has the focus: a row, what an item of a list says, a card, the page. */
const PLACES = "tr, li, nav, section[aria-label], main";
const DIALOG = "[role=dialog], [role=menu]";

/** Return an element and the places around it, the nearest first. */
export function placesOf(element: Element | null): readonly HTMLElement[] {
  const found: HTMLElement[] = [];
  for (let one = element; one !== null && one !== document.body; one = one.parentElement) {
    if (one instanceof HTMLElement && (one === element || one.matches(PLACES))) found.push(one);
  }
  return found;
}

/** Say whether nothing has the focus. */
function isNowhere(): boolean {
  return document.activeElement === null || document.activeElement === document.body;
}

/**
 * Give the focus to the first that can have it, and to the page where none can. A place, which nobody comes to by
 * themselves, can have it until it is left.
 */
function focusFirst(places: readonly HTMLElement[]): void {
  const place = places.find((one) => one.isConnected && !one.matches(":disabled")) ?? document.getElementById("main");
  if (place === null) return;
  if (place.matches(PLACES) && !place.hasAttribute("tabindex")) {
    place.tabIndex = -1;
    place.addEventListener(
      "blur",
      () => {
        place.removeAttribute("tabindex");
      },
      { once: true },
    );
  }
  place.focus({ preventScroll: true });
}

/** Have whoever works with keys go on where they were once a dialog is gone, or beside it where that is gone, too. */
export function useFocusAfterwards(before: readonly HTMLElement[]): void {
  useEffect(
    () => () => {
      if (isNowhere()) focusFirst(before);
    },
    [before],
  );
}

/**
 * Gives the focus to the nearest place whenever what had it goes away or is disabled: a button whose act is done, a row
 * that is deleted, a page that is left. A button that is disabled while its act runs has it again afterwards.
 *
 * @returns what ends it.
 */
export function keepFocus(): () => void {
  let last: HTMLElement | null = null;
  let places: readonly HTMLElement[] = [];
  // What had the focus before a dialog or a menu took it, and the places around that.
  let behind: readonly HTMLElement[] = [];
  let isLost = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function remember({ target }: FocusEvent): void {
    if (!(target instanceof HTMLElement)) return;
    last = target;
    isLost = false;
    places = placesOf(target);
    if (target.closest(DIALOG) === null) behind = places;
  }

  /** Whoever clicks beside everything wants nothing to have the focus; a button that is clicked takes it afterwards. */
  function forget(): void {
    last = null;
  }

  function look(): void {
    if (last === null) return;
    isLost ||= !last.isConnected || last.matches(":disabled");
    // It is back only while its act runs, which says so.
    if (!isLost || last.matches("[data-loading]:disabled")) return;
    // Whoever takes the focus by themselves, such as a dialog, has done so by then.
    clearTimeout(timer);
    timer = setTimeout(giveBack);
  }

  function giveBack(): void {
    isLost = false;
    if (isNowhere()) focusFirst([...places, ...behind]);
  }

  const observer = new MutationObserver(look);
  observer.observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["disabled"] });
  document.addEventListener("focusin", remember);
  document.addEventListener("pointerdown", forget, { capture: true });
  return () => {
    clearTimeout(timer);
    observer.disconnect();
    document.removeEventListener("focusin", remember);
    document.removeEventListener("pointerdown", forget, { capture: true });
  };
}
