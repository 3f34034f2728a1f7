import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { LANGUAGES, changeLanguage, isLanguage, type Language } from "../i18n";

const SCHEMES = ["light", "dark", "auto"] as const;

/** Colours and language: kept in this browser. */
export function Preferences() {
  const { t, i18n } = useTranslation();
  // Without this, changing the scheme inserts a style tag that stops transitions, which the policy blocks.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  return (
    <Menu position="bottom-end" width={220}>
      <Menu.Target>
        <ActionIcon variant="default" size="lg" aria-label={t("preferences.title")}>
          <svg
            viewBox="0 0 24 24"
            width="18"
            height="18"
            fill="none"
            stroke="currentColor"
            strokeWidth="1.8"
            aria-hidden
          >
            <path d="M12 3a9 9 0 1 0 0 18M12 3v18M12 3a9 9 0 0 1 0 18" />
          </svg>
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{t("preferences.colours")}</Menu.Label>
        {SCHEMES.map((one) => (
          <Menu.Item
            key={one}
            role="menuitemradio"
            aria-checked={colorScheme === one}
            rightSection={colorScheme === one ? "✓" : null}
            onClick={() => {
              setColorScheme(one);
            }}
          >
            {t(`preferences.${one}`)}
          </Menu.Item>
        ))}
        <Menu.Label>{t("preferences.language")}</Menu.Label>
        {(Object.keys(LANGUAGES) as Language[]).map((one) => (
          <Menu.Item
            key={one}
            lang={one}
            role="menuitemradio"
            aria-checked={i18n.language === one}
            rightSection={i18n.language === one ? "✓" : null}
            onClick={() => {
              if (isLanguage(one)) void changeLanguage(one);
            }}
          >
            {LANGUAGES[one]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
