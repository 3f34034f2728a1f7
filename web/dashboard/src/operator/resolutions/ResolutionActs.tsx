import { useQueryClient } from "@tanstack/react-query";

import { Amount } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { usePermitted } from "../queries";

interface ResolutionActsProps {
  readonly held: Schemas["OperatorResolution"];
  readonly isSmall?: boolean;
}

/** What operators may decide about money that belongs to no order. Nothing of it is sent. */
export function ResolutionActs({ held, isSmall = false }: ResolutionActsProps) {
  const { t } = useWords();
  const client = useQueryClient();
  const mayDecide = usePermitted("resolutions.decide");
  if (!mayDecide) return null;
  const { deposit } = held;
  const params = { path: { depositId: deposit.depositId } };
  const changed = () => client.invalidateQueries();
  const what = (
    <p>
      <Amount value={deposit.heldAmount} token={deposit.token} /> · <ChainName of={deposit.chain} /> ·{" "}
      {held.merchantName}
    </p>
  );
  return (
    <span className="row end">
      {deposit.canAccept && (
        <ActButton
          isSmall={isSmall}
          act={t("common:resolutions.accept.act")}
          title={t("common:resolutions.accept.title")}
          onConfirm={async () => {
            await unwrap(api.POST("/api/admin/resolutions/{depositId}/accept", { params }));
            await changed();
          }}
        >
          {what}
          <p>{t("resolutions.acceptWords")}</p>
        </ActButton>
      )}
      {held.canRelease && (
        <ActButton
          isSmall={isSmall}
          act={t("common:resolutions.release.act")}
          title={t("resolutions.releaseTitle")}
          onConfirm={async () => {
            await unwrap(api.POST("/api/admin/resolutions/{depositId}/release", { params }));
            await changed();
          }}
        >
          {what}
          <p>{t("resolutions.releaseWords")}</p>
        </ActButton>
      )}
    </span>
  );
}
