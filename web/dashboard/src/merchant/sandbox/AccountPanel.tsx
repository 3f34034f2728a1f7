import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import type { Account } from "../accounts/queries";
import { coinsQuery } from "../coins/queries";
import { usePermitted, useProjectId } from "../project";

import { AnyChain } from "./ChainActs";
import { Panel } from "./Panel";
import { SendTo } from "./SendTo";

/** Sends to an account of the sandbox, as its end user would, and has its chains confirm that or take it back. */
export function AccountPanel({ account }: { readonly account: Account }) {
  if (!usePermitted("payments")) return null;
  return (
    <Panel>
      <Acts account={account} />
    </Panel>
  );
}

function Acts({ account }: { readonly account: Account }) {
  const { t } = useTranslation();
  const { data: coins = [] } = useQuery(coinsQuery(useProjectId()));
  const chains = [...new Set(account.addresses.map((one) => one.chain))];
  const here = coins.filter((one) => chains.includes(one.chain));
  return (
    <>
      <SendTo to={{ accountId: account.accountId }} coins={here} act={t("sandbox.send")} />
      <AnyChain chains={chains} />
    </>
  );
}
