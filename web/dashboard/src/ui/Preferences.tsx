import { ActionIcon, Menu, useMantineColorScheme } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { chooseLanguage } from "../i18n";
import { LANGUAGES, tagOf, type Language } from "../i18n/locale";

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
        <Menu.RadioGroup
          value={colorScheme}
          onChange={(value) => {
            setColorScheme(value as typeof colorScheme);
          }}
        >
          {SCHEMES.map((one) => (
            <Menu.RadioItem key={one} value={one} closeMenuOnClick>
              {t(`preferences.${one}`)}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
        <Menu.Label>{t("preferences.language")}</Menu.Label>
        <Menu.RadioGroup
          value={i18n.language}
          onChange={(value) => {
            void chooseLanguage(value as Language);
          }}
        >
          {(Object.keys(LANGUAGES) as Language[]).map((one) => (
            <Menu.RadioItem key={one} value={one} lang={tagOf(one)} closeMenuOnClick>
              {LANGUAGES[one]}
            </Menu.RadioItem>
          ))}
        </Menu.RadioGroup>
      </Menu.Dropdown>
    </Menu>
  );
}
