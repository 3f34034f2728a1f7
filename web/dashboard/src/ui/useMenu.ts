import { useId, useRef, useState, type RefObject } from "react";

import { useEver } from "./useEver";

/** A menu that is somewhere below its button, and whether it is open. */
export interface MenuOf {
  readonly button: RefObject<HTMLButtonElement | null>;
  /** The button's; the menu has one made of it, as Mantine makes it. */
  readonly id: string;
  readonly isOpen: boolean;
  readonly onOpen: (isOpen: boolean) => void;
}

/**
 * Return what a button takes that opens a menu, and what the menu takes (`OpenMenu`). The menu comes in a file of its own,
 * so it is made once it was opened; the button stays the same, and with it the focus.
 */
export function useMenu() {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  const wasOpen = useEver(isOpen);
  const menu: MenuOf = { button, id, isOpen, onOpen: setOpen };
  return {
    button: {
      ref: button,
      id,
      "aria-haspopup": "menu",
      "aria-expanded": isOpen,
      "aria-controls": isOpen ? `${id}-dropdown` : undefined,
      onClick: () => {
        setOpen(!isOpen);
      },
    },
    menu: wasOpen ? menu : null,
  } as const;
}
