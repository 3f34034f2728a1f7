import { ActionIcon, Button } from "@mantine/core";
import { useState } from "react";

import { onDemand } from "../ui/onDemand";
import { useMenu } from "../ui/useMenu";

import { ActDialog, type Act } from "./ActButton";
import { useWords } from "./api";

export interface RowAct extends Act {
  /** Stays the same while its words change with what the row shows. */
  readonly id: string;
}

interface RowActsProps {
  /** What the row is called, for whoever hears of the menu alone. */
  readonly of: string;
  /** The first has a button of its own, the others are in a menu. */
  readonly acts: readonly RowAct[];
}

const Items = onDemand(async () => (await import("./RowActsMenu")).RowActsMenu);

/** What can be done about a row, on one line whatever there is. */
export function RowActs({ of, acts }: RowActsProps) {
  const { t } = useWords();
  const { button, menu } = useMenu();
  const [openedId, setOpenedId] = useState<string | null>(null);
  const [first, ...others] = acts;
  const opened = acts.find(({ id }) => id === openedId);
  // What can be done no more is not open where it can be done again.
  if (openedId !== null && opened === undefined) setOpenedId(null);

  function open(one: RowAct): void {
    one.onOpen?.();
    setOpenedId(one.id);
  }

  function choose(one: RowAct): void {
    button.ref.current?.focus(); // it comes back here: what was chosen is gone with the menu
    open(one);
  }

  return (
    <span className="row end">
      {first !== undefined && (
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => {
            open(first);
          }}
        >
          {first.act}
        </Button>
      )}
      {others.length > 0 && (
        <ActionIcon {...button} variant="default" size={26} aria-label={`${t("common:list.acts")} · ${of}`}>
          <svg viewBox="0 0 24 24" width="16" height="16" fill="currentColor" aria-hidden>
            <circle cx="5" cy="12" r="2" />
            <circle cx="12" cy="12" r="2" />
            <circle cx="19" cy="12" r="2" />
          </svg>
        </ActionIcon>
      )}
      {menu !== null && others.length > 0 && <Items menu={menu} acts={others} onChosen={choose} />}
      {opened !== undefined && (
        <ActDialog
          {...opened}
          onClose={() => {
            setOpenedId(null);
          }}
        />
      )}
    </span>
  );
}
