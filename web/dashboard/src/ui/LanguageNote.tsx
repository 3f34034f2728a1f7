import { Button, CloseButton } from "@mantine/core";
import { useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";

import { chooseLanguage, missedLanguage, sayMissed, subscribeMissed } from "../i18n";
import { LANGUAGES } from "../i18n/locale";

import styles from "./LanguageNote.module.css";

/** Says that a language could not be loaded, and so that the page still is in another one. */
export function LanguageNote() {
  const { t } = useTranslation();
  const missed = useSyncExternalStore(subscribeMissed, missedLanguage);
  if (missed === null) return null;
  return (
    <div role="alert" className={styles.note}>
      <p>{t("preferences.missed", { language: LANGUAGES[missed] })}</p>
      <Button size="compact-sm" variant="default" onClick={() => void chooseLanguage(missed)}>
        {t("ui.retry")}
      </Button>
      <CloseButton
        aria-label={t("ui.close")}
        onClick={() => {
          sayMissed(null);
        }}
      />
    </div>
  );
}
