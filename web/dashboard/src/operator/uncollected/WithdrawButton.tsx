import { useQueryClient } from "@tanstack/react-query";

import { ActButton } from "../ActButton";
import { api, unwrap, useWords } from "../api";
import { usePermitted } from "../queries";

/** Takes back that something is to be collected now, as long as that has no answer. */
export function WithdrawButton({ uncollectedId }: { readonly uncollectedId: string }) {
  const { t } = useWords();
  const client = useQueryClient();
  const mayAsk = usePermitted("collections.ask");
  if (!mayAsk) return null;
  return (
    <ActButton
      isSmall
      act={t("uncollected.withdraw")}
      title={t("uncollected.withdrawTitle")}
      onConfirm={async () => {
        const params = { path: { uncollectedId } };
        await unwrap(api.DELETE("/api/admin/collections/uncollected/{uncollectedId}/collect", { params }));
        await client.invalidateQueries({ queryKey: ["uncollected"] });
      }}
    >
      <p>{t("uncollected.withdrawWords")}</p>
    </ActButton>
  );
}
