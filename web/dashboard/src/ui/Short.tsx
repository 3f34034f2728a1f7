import { useLayoutEffect, useRef, useState } from "react";

import { useHint } from "./useHint";

/** So few characters fit, however wide they are: the longest column is 22 digits wide. */
const FIT = 10;

interface ShortProps {
  readonly text: string;
  /** It stands in a link, which has the focus already and leads to where the whole is. */
  readonly inLink?: boolean;
}

/** A name or number that somebody chose, on one line: what is longer than a column is cut, and then told as a hint. */
export function Short({ text, inLink = false }: ShortProps) {
  const shown = useRef<HTMLElement>(null);
  const [isCut, setCut] = useState(false);
  useLayoutEffect(() => {
    const { current } = shown;
    setCut(current !== null && text.length > FIT && current.scrollWidth > current.clientWidth);
  }, [text]);
  const { events, hint } = useHint(() => text);
  return (
    <>
      <bdi ref={shown} className="short" tabIndex={isCut && !inLink ? 0 : undefined} {...(isCut ? events : {})}>
        {text}
      </bdi>
      {hint}
    </>
  );
}
