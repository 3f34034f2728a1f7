import { useTranslation } from "react-i18next";

import { Empty } from "../../ui/Feedback";

/** Says that there is no chain that the project could use, and what can be done about it. */
export function NoUsableChain() {
  const { t } = useTranslation();
  return (
    <Empty title={t("coins.noneUsable")}>
      <p>{t("coins.noneUsableWords")}</p>
    </Empty>
  );
}
