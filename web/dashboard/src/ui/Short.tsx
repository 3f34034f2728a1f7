/** A name or number that somebody chose, on one line: what is longer than a column is cut, and whole on hover. */
export function Short({ text }: { readonly text: string }) {
  return (
    <bdi className="short" title={text}>
      {text}
    </bdi>
  );
}
