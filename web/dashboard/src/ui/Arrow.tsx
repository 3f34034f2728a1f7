/** From what stands before it to what stands behind it, whichever way people read. */
export function Arrow() {
  return <span className="arrow">→</span>;
}
