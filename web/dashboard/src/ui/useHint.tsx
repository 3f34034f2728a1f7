import { Tooltip } from "@mantine/core";
import { useId, useRef, useState, type FocusEvent, type KeyboardEvent, type PointerEvent, type ReactNode } from "react";

/** Nobody who only passes over something wants to read of it. */
const OVER_MS = 250;

/**
 * Return what an element takes to say more of itself while the pointer is on it or it has the focus, and what is said.
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
  const events = {
    "aria-describedby": target === null ? undefined : id,
    onPointerEnter: ({ currentTarget }: PointerEvent<HTMLElement>) => {
      clearTimeout(waiting.current);
      waiting.current = setTimeout(() => {
        setTarget(currentTarget);
      }, OVER_MS);
    },
    onPointerLeave: close,
    onFocus: ({ currentTarget }: FocusEvent<HTMLElement>) => {
      if (currentTarget.matches(":focus-visible")) setTarget(currentTarget);
    },
    onBlur: close,
    onKeyDown: ({ key }: KeyboardEvent) => {
      if (key === "Escape") close();
    },
  };
  const hint: ReactNode = target !== null && (
    <Tooltip opened target={target} label={<span id={id}>{label()}</span>} multiline maw={480} />
  );
  return { events, hint };
}
