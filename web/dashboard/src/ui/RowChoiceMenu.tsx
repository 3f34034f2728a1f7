import { Menu } from "@mantine/core";

import { OpenMenu } from "./OpenMenu";
import type { RowChoiceAct } from "./RowChoice";
import type { MenuOf } from "./useMenu";

interface RowChoiceMenuProps {
  readonly menu: MenuOf;
  readonly acts: readonly RowChoiceAct[];
  readonly onChosen: (id: string) => void;
}

export function RowChoiceMenu({ menu, acts, onChosen }: RowChoiceMenuProps) {
  return (
    // What is chosen opens a dialog, which the focus is for then.
    <OpenMenu of={menu} position="bottom-end" returnFocus={false}>
      {acts.map(({ id, act, isDangerous = false }) => (
        <Menu.Item
          key={id}
          {...(isDangerous ? { c: "var(--bad)" } : {})}
          onClick={() => {
            onChosen(id);
          }}
        >
          {act}
        </Menu.Item>
      ))}
    </OpenMenu>
  );
}
