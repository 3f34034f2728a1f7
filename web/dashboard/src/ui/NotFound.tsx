import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Empty } from "./Feedback";

/** An address that leads to no page: it stands beside all pages, and so has to be a page by itself. */
export function NoSuchPage() {
  return (
    <main id="main" tabIndex={-1}>
      <NotFound />
    </main>
  );
}

export function NotFound() {
  const { t } = useTranslation();
  return (
    <Empty title={t("notFound.title")}>
      <p>{t("notFound.words")}</p>
      <Link to="/">{t("notFound.home")}</Link>
    </Empty>
  );
}
