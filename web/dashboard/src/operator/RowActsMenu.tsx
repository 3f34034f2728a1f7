import { Menu } from "@mantine/core";

import { OpenMenu } from "../ui/OpenMenu";
import type { MenuOf } from "../ui/useMenu";

import type { RowAct } from "./RowActs";

interface RowActsMenuProps {
  readonly menu: MenuOf;
  readonly acts: readonly RowAct[];
  readonly onChosen: (act: RowAct) => void;
}

export function RowActsMenu({ menu, acts, onChosen }: RowActsMenuProps) {
  return (
    // What is chosen opens a dialog, which the focus is for then.
    <OpenMenu of={menu} position="bottom-end" returnFocus={false}>
      {acts.map((one) => (
        <Menu.Item
          key={one.id}
          {...(one.isDangerous === true ? { c: "var(--bad)" } : {})}
          onClick={() => {
            onChosen(one);
          }}
        >
          {one.act}
        </Menu.Item>
      ))}
    </OpenMenu>
  );
}
