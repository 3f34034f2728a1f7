import {
  useEffect,
  useEffectEvent,
  useRef,
  useState,
  type FocusEvent,
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
} from "react";

import { onDemand } from "./onDemand";

const Hint = onDemand(async () => (await import("./Hint")).Hint, { isDispensable: true });

/** Nobody who only passes over something wants to read of it. */
const OVER_MS = 250;

interface Opened {
  readonly target: HTMLElement;
  /** By which the element names what is said. */
  readonly id: string;
}

let opened = 0;

/**
 * Return what an element takes to say more of itself while the pointer is on it, it has the focus, or it was tapped, and
 * what is said. What a tap shows stays until the next touch anywhere.
 * A list has a hundred of these: what shows them is made for the one that is looked at.
 */
export function useHint(label: () => string) {
  const [hinted, setHinted] = useState<Opened | null>(null);
  const waiting = useRef<ReturnType<typeof setTimeout>>(undefined);
  const open = (target: HTMLElement) => {
    opened += 1;
    setHinted({ target, id: `hint-${String(opened)}` });
  };
  const close = () => {
    clearTimeout(waiting.current);
    setHinted(null);
  };
  const events = {
    "aria-describedby": hinted?.id,
    onPointerEnter: ({ currentTarget, pointerType }: PointerEvent<HTMLElement>) => {
      // A finger that scrolls the page begins on something as well: only a tap asks.
      if (pointerType === "touch") return;
      clearTimeout(waiting.current);
      waiting.current = setTimeout(() => {
        open(currentTarget);
      }, OVER_MS);
    },
    onPointerUp: ({ currentTarget, pointerType }: PointerEvent<HTMLElement>) => {
      if (pointerType === "touch") open(currentTarget);
    },
    onPointerLeave: ({ pointerType }: PointerEvent<HTMLElement>) => {
      // A finger that is lifted leaves.
      if (pointerType !== "touch") close();
    },
    onFocus: ({ currentTarget }: FocusEvent<HTMLElement>) => {
      if (currentTarget.matches(":focus-visible")) open(currentTarget);
    },
    onBlur: close,
    onKeyDown: ({ key }: KeyboardEvent) => {
      if (key === "Escape") close();
    },
  };
  const hint: ReactNode = hinted !== null && (
    <Shown {...hinted} onTouch={close}>
      {label()}
    </Shown>
  );
  return { events, hint };
}

interface ShownProps extends Opened {
  readonly onTouch: () => void;
  readonly children: string;
}

function Shown({ target, id, onTouch, children }: ShownProps) {
  const close = useEffectEvent(onTouch);
  useEffect(() => {
    const touched = ({ pointerType }: globalThis.PointerEvent) => {
      if (pointerType === "touch") close();
    };
    document.addEventListener("pointerdown", touched);
    return () => {
      document.removeEventListener("pointerdown", touched);
    };
  }, []);
  return (
    <Hint id={id} target={target}>
      {children}
    </Hint>
  );
}
