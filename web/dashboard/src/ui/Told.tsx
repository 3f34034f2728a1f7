import { useTranslation } from "react-i18next";

import { Facts } from "./Page";

/** What else an entry of an audit log tells, opened by whoever wants to know. */
export function Told({ details }: { readonly details: Readonly<Record<string, unknown>> }) {
  const { t } = useTranslation();
  const told = Object.entries(details);
  if (told.length === 0) return null;
  return (
    <details>
      <summary>{t("trail.show")}</summary>
      <Facts facts={told.map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)])} />
    </details>
  );
}
