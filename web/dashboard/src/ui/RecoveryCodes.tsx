import { useTranslation } from "react-i18next";

import { Secret } from "./Secret";

/** Codes for when the authenticator is lost, shown this once. */
export function RecoveryCodes({ codes }: { readonly codes: readonly string[] }) {
  const { t } = useTranslation();
  return (
    <div className="stack">
      <p role="alert">{t("twoFactor.codesWords")}</p>
      <Secret text={codes.join("\n")} label={t("twoFactor.copyCodes")} />
    </div>
  );
}
