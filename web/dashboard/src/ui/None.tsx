/** That there is nothing. A table says so where it would be, and a card of a phone leaves that line out. */
export function None() {
  return <span data-none="true">{"\u2013"}</span>;
}
