import { useTranslation } from "react-i18next";

import { Copyable } from "./Copyable";

/** Codes for when the authenticator is lost, shown this once. */
export function RecoveryCodes({ codes }: { readonly codes: readonly string[] }) {
  const { t } = useTranslation();
  return (
    <div className="stack">
      <p role="alert">{t("twoFactor.codesWords")}</p>
      <Copyable text={codes.join("\n")} label={t("twoFactor.copyCodes")}>
        {codes.map((code) => (
          <code key={code} className="line">
            {code}
          </code>
        ))}
      </Copyable>
    </div>
  );
}
