import { useState } from "react";

import { RowChoice } from "../ui/RowChoice";

import { ActDialog, type Act } from "./ActButton";

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

/** What can be done about a row, each in a dialog of its own. */
export function RowActs({ of, acts }: RowActsProps) {
  const [openedId, setOpenedId] = useState<string | null>(null);
  const opened = acts.find(({ id }) => id === openedId);
  // What can be done no more is not open where it can be done again.
  if (openedId !== null && opened === undefined) setOpenedId(null);
  return (
    <span className="row end">
      <RowChoice
        of={of}
        acts={acts}
        onChosen={(id) => {
          acts.find((one) => one.id === id)?.onOpen?.();
          setOpenedId(id);
        }}
      />
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
