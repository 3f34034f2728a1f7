import { useTranslation } from "react-i18next";

import { showMilliseconds } from "../../ui/format";
import { Facts } from "../../ui/Page";
import { Status } from "../../ui/Status";
import type { Schemas } from "../queries";

/** What a server answered to a test delivery, or why it did not. */
export function TestOutcome({ result }: { readonly result: Schemas["TestResult"] }) {
  const { t, i18n } = useTranslation();
  return (
    <div role="status">
      <Facts
        facts={[
          [t("payments.status"), <Status key="status" value={result.delivered ? "delivered" : "failed"} />],
          [t("webhooks.answer"), result.statusCode ?? result.error],
          [t("webhooks.took"), showMilliseconds(result.durationMs, i18n.language)],
          [t("webhooks.body"), result.responseBody === null ? null : <code key="body">{result.responseBody}</code>],
        ]}
      />
    </div>
  );
}
