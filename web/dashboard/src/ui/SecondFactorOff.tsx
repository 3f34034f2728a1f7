import { Link, useLocation } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { usePathPartIfAny } from "./address";

/** That an act needs a second factor, which is off, and where it is turned on: from there the way leads back. */
export function SecondFactorOff() {
  const { t } = useTranslation();
  const projectId = usePathPartIfAny("projectId");
  const next = useLocation({ select: ({ href }) => href });
  return (
    <>
      {t("errors.SECOND_FACTOR_OFF")}{" "}
      {projectId !== undefined && (
        <Link to={`/${projectId}/security`} search={{ next }}>
          {t("nav.security")}
        </Link>
      )}
    </>
  );
}
