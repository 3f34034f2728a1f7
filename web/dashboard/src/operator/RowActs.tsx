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
  const [asked, setAsked] = useState<Pick<RowAct, "id" | "act"> | null>(null);
  // One that has other words by now is another act: nobody does the opposite of what was read.
  const opened = acts.find(({ id, act }) => id === asked?.id && act === asked.act);
  // What can be done no more is not open where it can be done again.
  if (asked !== null && opened === undefined) setAsked(null);
  return (
    <span className="row end">
      <RowChoice
        of={of}
        acts={acts}
        onChosen={(id) => {
          const chosen = acts.find((one) => one.id === id);
          if (chosen === undefined) return;
          chosen.onOpen?.();
          setAsked({ id, act: chosen.act });
        }}
      />
      {opened !== undefined && (
        <ActDialog
          {...opened}
          onClose={() => {
            setAsked(null);
          }}
        />
      )}
    </span>
  );
}
