import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { usePathPartIfAny } from "./address";

/** That an act needs a second factor, which is off, and where it is turned on. */
export function SecondFactorOff() {
  const { t } = useTranslation();
  const projectId = usePathPartIfAny("projectId");
  return (
    <>
      {t("errors.SECOND_FACTOR_OFF")}{" "}
      {projectId !== undefined && <Link to={`/${projectId}/security`}>{t("nav.security")}</Link>}
    </>
  );
}
