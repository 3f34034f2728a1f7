import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { useProjectId } from "./project";

/** That money is in the wallet again, and the way there. */
export function MoneyBack() {
  const { t } = useTranslation();
  return <Link to={`/${useProjectId()}/wallet`}>{t("payout.moneyBack")}</Link>;
}
