import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Empty } from "./Feedback";

export function NotFound() {
  const { t } = useTranslation();
  return (
    <Empty title={t("notFound.title")}>
      <p>{t("notFound.words")}</p>
      <Link to="/">{t("notFound.home")}</Link>
    </Empty>
  );
}
