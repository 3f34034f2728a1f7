import { ActionIcon, Button } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { onDemand } from "./onDemand";
import { useMenu } from "./useMenu";

export interface RowChoiceAct {
  /** Stays the same while its words change with what the row shows. */
  readonly id: string;
  /** What its button says. */
  readonly act: string;
  readonly isDangerous?: boolean;
}

interface RowChoiceProps {
  /** What the row is called, for whoever hears of the menu alone. */
  readonly of: string;
  /** The first has a button of its own, the others are in a menu. */
  readonly acts: readonly RowChoiceAct[];
  readonly onChosen: (id: string) => void;
}

const Items = onDemand(async () => (await import("./RowChoiceMenu")).RowChoiceMenu);

/** What can be done about a row, on one line whatever there is. */
export function RowChoice({ of, acts, onChosen }: RowChoiceProps) {
  const { t } = useTranslation();
  const { button, menu } = useMenu();
  const [first, ...others] = acts;

  function choose(id: string): void {
    button.ref.current?.focus(); // it comes back here: what was chosen is gone with the menu
    onChosen(id);
  }

  return (
    <>
      {first !== undefined && (
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => {
            onChosen(first.id);
          }}
        >
          {first.act}
        </Button>
      )}
      {others.length > 0 && (
        <ActionIcon {...button} variant="default" size={26} aria-label={`${t("list.acts")} · ${of}`}>
          <svg viewBox="0 0 24 24" width="16" height="16" fill="currentColor" aria-hidden>
            <circle cx="5" cy="12" r="2" />
            <circle cx="12" cy="12" r="2" />
            <circle cx="19" cy="12" r="2" />
          </svg>
        </ActionIcon>
      )}
      {menu !== null && others.length > 0 && <Items menu={menu} acts={others} onChosen={choose} />}
    </>
  );
}
