import { Menu, type MenuProps } from "@mantine/core";
import { useDeferredValue, useImperativeHandle, type ReactNode, type Ref } from "react";

import type { MenuOf } from "./useMenu";

interface OpenMenuProps extends Pick<MenuProps, "position" | "width" | "returnFocus"> {
  readonly of: MenuOf;
  readonly children: ReactNode;
}

/** A menu is opened last, so it lies above everything, also above where somebody signs in again. */
const ABOVE_ALL = 600;

/** A menu below a button that was there before it. */
export function OpenMenu({ of, children, ...place }: OpenMenuProps) {
  // It opens once it is there: so it knows where the focus was, and gives it back.
  const isOpened = useDeferredValue(of.isOpen, false);
  return (
    // The first item takes the focus: a placeholder for it would be a child that no menu may have.
    <Menu
      id={of.id}
      opened={isOpened}
      onChange={of.onOpen}
      withInitialFocusPlaceholder={false}
      zIndex={ABOVE_ALL}
      {...place}
    >
      <Menu.Target>
        <Its button={of.button} />
      </Menu.Target>
      <Menu.Dropdown>{children}</Menu.Dropdown>
    </Menu>
  );
}

interface ItsProps {
  readonly button: MenuOf["button"];
  readonly ref?: Ref<HTMLButtonElement | null>;
}

/** Stands for the button, which says itself what the menu would have it say. */
function Its({ button, ref }: ItsProps) {
  useImperativeHandle<HTMLButtonElement | null, HTMLButtonElement | null>(ref, () => button.current, [button]);
  return null;
}
