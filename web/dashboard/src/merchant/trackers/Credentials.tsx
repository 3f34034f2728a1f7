import { useTranslation } from "react-i18next";

import { Copyable } from "../../ui/Copyable";
import { Facts } from "../../ui/Page";

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
          [
            t("tracker.secret"),
            <Copyable key="secret" text={secretKey} label={t("tracker.secretCopy")}>
              <code>{secretKey}</code>
            </Copyable>,
          ],
          [
            t("tracker.token"),
            <Copyable key="token" text={authToken} label={t("tracker.tokenCopy")}>
              <code>{authToken}</code>
            </Copyable>,
          ],
        ]}
      />
    </div>
  );
}
