import { useTranslation } from "react-i18next";

import { showAmount } from "../../ui/format";

/** How many of something, as the language writes it. */
export function Count({ value }: { readonly value: number }) {
  const { i18n } = useTranslation();
  return <span className="number">{showAmount(String(value), i18n.language).text}</span>;
}
