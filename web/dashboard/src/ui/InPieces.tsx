import { Fragment } from "react";

/** No line begins or ends with less, and more fits on a line of any phone. */
const LEAST = 4;
const MOST = 12;

/** Split a text of one long word, such as a URL, behind what separates its parts, and where a part is too long itself. */
export function piecesOf(text: string): readonly string[] {
  const pieces: string[] = [];
  for (const part of text.split(/(?<=[/?&=.,:;_-])/)) {
    const last = pieces.at(-1);
    if (last !== undefined && (last.length < LEAST || part.length < LEAST)) pieces[pieces.length - 1] = last + part;
    else pieces.push(part);
  }
  return pieces.flatMap((piece) => {
    const count = Math.ceil(piece.length / MOST);
    const at = (number: number) => Math.round((number * piece.length) / count);
    return Array.from({ length: count }, (_, number) => piece.slice(at(number), at(number + 1)));
  });
}

/** A text of one long word, which breaks between its parts and leaves no letter on a line of its own. */
export function InPieces({ text }: { readonly text: string }) {
  return piecesOf(text).map((piece, number) => (
    <Fragment key={number}>
      {number > 0 && <wbr />}
      {piece}
    </Fragment>
  ));
}

/** Where something is sent. It runs from left to right, whatever stands around it. */
export function Url({ value }: { readonly value: string }) {
  return (
    <bdi dir="ltr">
      <InPieces text={value} />
    </bdi>
  );
}
