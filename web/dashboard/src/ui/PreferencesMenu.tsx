import { Menu, useMantineColorScheme } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { chooseLanguage } from "../i18n";
import { LANGUAGES, tagOf, type Language } from "../i18n/locale";

import { OpenMenu } from "./OpenMenu";
import type { MenuOf } from "./useMenu";

const SCHEMES = ["light", "dark", "auto"] as const;

export function PreferencesMenu({ menu }: { readonly menu: MenuOf }) {
  const { t, i18n } = useTranslation();
  // Without this, changing the scheme inserts a style tag that stops transitions, which the policy blocks.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  return (
    <OpenMenu of={menu} position="bottom-end" width={220}>
      <div role="group" aria-label={t("preferences.colours")}>
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
      </div>
      <div role="group" aria-label={t("preferences.language")}>
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
      </div>
    </OpenMenu>
  );
}
