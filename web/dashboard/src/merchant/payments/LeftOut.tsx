import { useTranslation } from "react-i18next";

/** Says that there are older deposits than a payment's answer has; nothing where there are none. */
export function LeftOut({ count }: { readonly count: number }) {
  const { t } = useTranslation();
  return count === 0 ? null : <p className="muted">{t("payment.leftOut", { count })}</p>;
}
