import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Confirm } from "../../ui/Confirm";
import { Text } from "../../ui/Text";
import { api, unwrap } from "../api";
import { NoUsableChain } from "../coins/NoUsableChain";
import { coinsQuery, useUsableChains } from "../coins/queries";
import { useProjectId } from "../project";

import { ChainsInput } from "./ChainsInput";

/** Gives an end user addresses. The same name again is the same account, with more chains at most. */
export function NewAccount({ onClose }: { readonly onClose: () => void }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const navigate = useNavigate();
  const [externalId, setExternalId] = useState("");
  const [chains, setChains] = useState<readonly string[]>([]);
  const isKnown = useQuery(coinsQuery(projectId)).isSuccess;
  const isNone = useUsableChains().length === 0 && isKnown;

  async function make(): Promise<void> {
    const body = { externalId: externalId.trim(), chains: [...chains] };
    const params = { path: { projectId } };
    const { account } = await unwrap(api.POST("/api/dashboard/projects/{projectId}/accounts", { params, body }));
    void client.invalidateQueries({ queryKey: ["project", projectId, "accounts"] });
    await navigate({ to: `/${projectId}/accounts/${account.accountId}` });
  }

  return (
    <Confirm
      title={t("account.new")}
      act={t("account.make")}
      isBlocked={externalId.trim() === "" || chains.length === 0}
      onConfirm={make}
      onClose={onClose}
    >
      {isNone ? (
        <NoUsableChain />
      ) : (
        <>
          <Text
            label={t("account.user")}
            description={t("account.userWords")}
            required
            data-autofocus
            autoComplete="off"
            value={externalId}
            onText={setExternalId}
          />
          <ChainsInput chains={chains} onChains={setChains} />
        </>
      )}
    </Confirm>
  );
}
