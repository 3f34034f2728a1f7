import { ActionIcon } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { onDemand } from "./onDemand";
import { useMenu } from "./useMenu";

const Items = onDemand(async () => (await import("./PreferencesMenu")).PreferencesMenu);

/** Colours and language: kept in this browser. */
export function Preferences() {
  const { t } = useTranslation();
  const { button, menu } = useMenu();
  return (
    <>
      <ActionIcon {...button} variant="default" size="lg" aria-label={t("preferences.title")}>
        <svg viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="currentColor" strokeWidth="1.8" aria-hidden>
          <path d="M12 3a9 9 0 1 0 0 18M12 3v18M12 3a9 9 0 0 1 0 18" />
        </svg>
      </ActionIcon>
      {menu !== null && <Items menu={menu} />}
    </>
  );
}
