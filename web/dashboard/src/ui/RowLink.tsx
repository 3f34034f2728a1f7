import { useRouter } from "@tanstack/react-router";
import type { MouseEvent, ReactNode } from "react";

/** Nobody who only passes over a row goes where it leads. */
const REST_MS = 50;

/** The pointer rests on one row at a time. */
let resting: ReturnType<typeof setTimeout> | undefined;

function pass(): void {
  clearTimeout(resting);
}

/** Say whether a click goes to the page here: not in another tab, nor where it is no more than a part of something else. */
function isPlain(event: MouseEvent<HTMLAnchorElement>): boolean {
  const { button, metaKey, altKey, ctrlKey, shiftKey, defaultPrevented } = event;
  return button === 0 && !metaKey && !altKey && !ctrlKey && !shiftKey && !defaultPrevented;
}

interface RowLinkProps {
  /** A path of the app without anything behind it, such as `/merchants/mer_1`. */
  readonly to: string;
  readonly className: string | undefined;
  readonly children: ReactNode;
}

/**
 * What the router's `Link` is, for rows of a list. Each of those asks anew, whenever the address changes, where it leads
 * and whether one is there: for every row of a list that is filtered. Where a row leads never changes, and nobody is there.
 */
export function RowLink({ to, className, children }: RowLinkProps) {
  const router = useRouter();
  const preload = () => {
    router.preloadRoute({ to }).catch(() => undefined); // going there says what failed
  };
  const rest = () => {
    pass();
    resting = setTimeout(preload, REST_MS);
  };
  return (
    <a
      href={router.basepath === "/" ? to : router.basepath + to}
      className={className}
      onClick={(event) => {
        if (!isPlain(event)) return;
        event.preventDefault();
        pass();
        void router.navigate({ to });
      }}
      onFocus={rest}
      onBlur={pass}
      onMouseEnter={rest}
      onMouseLeave={pass}
      onTouchStart={preload}
    >
      {children}
    </a>
  );
}
