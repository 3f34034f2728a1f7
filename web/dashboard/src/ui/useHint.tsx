import {
  useEffect,
  useId,
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

/**
 * Return what an element takes to say more of itself while the pointer is on it, it has the focus, or it was tapped, and
 * what is said. What a tap shows stays until the next touch anywhere.
 * A list has a hundred of these: what shows them is made for the one that is looked at.
 */
export function useHint(label: () => string) {
  const id = useId();
  const [target, setTarget] = useState<HTMLElement | null>(null);
  const waiting = useRef<ReturnType<typeof setTimeout>>(undefined);
  const close = () => {
    clearTimeout(waiting.current);
    setTarget(null);
  };
  const isShown = target !== null;
  useEffect(() => {
    if (!isShown) return;
    const onTouch = ({ pointerType }: globalThis.PointerEvent) => {
      if (pointerType === "touch") setTarget(null);
    };
    document.addEventListener("pointerdown", onTouch);
    return () => {
      document.removeEventListener("pointerdown", onTouch);
    };
  }, [isShown]);
  const events = {
    "aria-describedby": target === null ? undefined : id,
    onPointerEnter: ({ currentTarget, pointerType }: PointerEvent<HTMLElement>) => {
      // A finger that scrolls the page begins on something as well: only a tap asks.
      if (pointerType === "touch") return;
      clearTimeout(waiting.current);
      waiting.current = setTimeout(() => {
        setTarget(currentTarget);
      }, OVER_MS);
    },
    onPointerUp: ({ currentTarget, pointerType }: PointerEvent<HTMLElement>) => {
      if (pointerType === "touch") setTarget(currentTarget);
    },
    onPointerLeave: ({ pointerType }: PointerEvent<HTMLElement>) => {
      // A finger that is lifted leaves.
      if (pointerType !== "touch") close();
    },
    onFocus: ({ currentTarget }: FocusEvent<HTMLElement>) => {
      if (currentTarget.matches(":focus-visible")) setTarget(currentTarget);
    },
    onBlur: close,
    onKeyDown: ({ key }: KeyboardEvent) => {
      if (key === "Escape") close();
    },
  };
  const hint: ReactNode = target !== null && (
    <Hint id={id} target={target}>
      {label()}
    </Hint>
  );
  return { events, hint };
}
