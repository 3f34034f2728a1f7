import { useTranslation } from "react-i18next";

import { Chip } from "../../ui/Status";

export function Mode({ mode }: { readonly mode: string }) {
  const { t } = useTranslation();
  return mode === "live" ? <Chip tone="good">{t("mode.live")}</Chip> : <Chip tone="care">{t("mode.sandbox")}</Chip>;
}
