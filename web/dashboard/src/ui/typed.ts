/** What somebody has typed on a page and not sent: it is lost with the page. */

type Field = HTMLInputElement | HTMLTextAreaElement;

/** Fields of forms. What a list is searched by stands in the address, which is kept anyway. */
const FIELDS = "form :is(input, textarea)";
const SEARCH = "[role=search] *";

let typed: readonly Field[] = [];

function note({ target }: Event): void {
  if (!(target instanceof Element) || !target.matches(FIELDS) || target.matches(SEARCH)) return;
  const field = target as Field;
  typed = [...typed.filter((one) => one !== field && one.isConnected), field];
}

/** Note what is typed, until the function that is returned is called. */
export function watchTyping(): () => void {
  document.addEventListener("input", note);
  return () => {
    document.removeEventListener("input", note);
    typed = [];
  };
}

/** Say whether anything that was typed still stands there. */
export function isTyped(): boolean {
  return typed.some((one) => one.isConnected && one.value !== "");
}
