import { useTranslation } from "react-i18next";

import { Facts } from "../../ui/Page";
import { Secret } from "../../ui/Secret";

interface CredentialsProps {
  readonly secretKey: string;
  readonly authToken: string;
}

/** A tracker's secret and token, which are shown this once. */
export function Credentials({ secretKey, authToken }: CredentialsProps) {
  const { t } = useTranslation();
  return (
    <div className="stack">
      <p role="alert">{t("tracker.once")}</p>
      <Facts
        facts={[
          [t("tracker.secret"), <Secret key="secret" text={secretKey} label={t("tracker.secretCopy")} />],
          [t("tracker.token"), <Secret key="token" text={authToken} label={t("tracker.tokenCopy")} isFurther />],
        ]}
      />
    </div>
  );
}
