import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { useChainName } from "../../ui/ChainName";
import { usePathPart } from "../../ui/address";
import { Confirm } from "../../ui/Confirm";
import { Copyable } from "../../ui/Copyable";
import { showList } from "../../ui/format";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryPage } from "../../ui/QueryView";
import { Scannable } from "../../ui/Scannable";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { api, unwrap } from "../api";
import { usePermitted, useProjectId } from "../project";
import { AccountPanel } from "../sandbox/AccountPanel";

import { AccountBalances } from "./AccountBalances";
import { AccountDeposits } from "./AccountDeposits";
import { ChainsInput, useChainsLeft } from "./ChainsInput";
import { accountQuery, type Account, type AccountDetail } from "./queries";

/** One end user: their addresses, what came to them, and how much that is. */
export function AccountPage() {
  const { t } = useTranslation();
  const query = useQuery(accountQuery(useProjectId(), usePathPart("accountId")));
  return (
    <QueryPage title={t("account.one")} query={query}>
      {(account) => <Shown account={account} />}
    </QueryPage>
  );
}

function Shown({ account }: { readonly account: AccountDetail }) {
  const { t, i18n } = useTranslation();
  const chainName = useChainName();
  return (
    <Page
      title={account.externalId}
      lead={
        <span className="row">
          <Status value={account.isActive ? "active" : "inactive"} />
          <Copyable text={account.accountId}>
            <code>{account.accountId}</code>
          </Copyable>
          <When at={account.createdAt} />
        </span>
      }
      actions={usePermitted("accounts") && <Acts account={account} />}
    >
      <Section
        title={t("account.addresses")}
        actions={
          <Button component="a" href={account.depositUrl} target="_blank" rel="noreferrer" variant="default">
            {t("account.page")}
          </Button>
        }
      >
        <div className="stack">
          {!account.isActive && <p role="note">{t("account.inactiveWords")}</p>}
          <Facts
            facts={byAddress(account).map(([address, chains]) => [
              showList(chains.map(chainName), i18n.language),
              <Scannable key={address} value={address} />,
            ])}
          />
          {account.metadataText !== null && (
            <Facts facts={[[t("payment.metadata"), <code key="metadata">{account.metadataText}</code>]]} />
          )}
        </div>
      </Section>
      <AccountPanel account={account} />
      <AccountBalances accountId={account.accountId} />
      <AccountDeposits accountId={account.accountId} />
    </Page>
  );
}

/** Chains of one family share an address: each with the chains it counts on. */
function byAddress({ addresses }: Account): readonly (readonly [address: string, chains: readonly string[]])[] {
  const found = new Map<string, string[]>();
  for (const { address, chain } of addresses) found.set(address, [...(found.get(address) ?? []), chain]);
  return [...found];
}

function Acts({ account }: { readonly account: Account }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const client = useQueryClient();
  const [open, setOpen] = useState<"chains" | "activate" | "deactivate" | null>(null);
  const [chains, setChains] = useState<readonly string[]>([]);
  const there = account.addresses.map((one) => one.chain);
  const isMore = useChainsLeft(there).length > 0;
  const base = "/api/dashboard/projects/{projectId}/accounts/{accountId}";
  const params = { path: { projectId, accountId: account.accountId } };
  const to = account.isActive ? "deactivate" : "activate";
  const close = () => {
    setOpen(null);
  };
  // Where it is switched meanwhile, the next click would do the opposite of what was read.
  if ((open === "activate" || open === "deactivate") && open !== to) close();
  const forget = async (request: Promise<unknown>) => {
    await request;
    void client.invalidateQueries({ queryKey: ["project", projectId] });
  };
  return (
    <>
      {isMore && (
        <Button
          variant="default"
          onClick={() => {
            setChains([]);
            setOpen("chains");
          }}
        >
          {t("account.addChains")}
        </Button>
      )}
      <Button
        variant="default"
        onClick={() => {
          setOpen(to);
        }}
      >
        {t(`account.${to}`)}
      </Button>
      {open === "chains" && (
        <Confirm
          title={t("account.addChains")}
          act={t("account.add")}
          isBlocked={chains.length === 0}
          onConfirm={() => forget(unwrap(api.POST(`${base}/chains`, { params, body: { chains: [...chains] } })))}
          onClose={close}
        >
          <ChainsInput chains={chains} without={there} onChains={setChains} />
        </Confirm>
      )}
      {open === to && (
        <Confirm
          title={t(`account.${to}Title`)}
          act={t(`account.${to}`)}
          onConfirm={() => forget(unwrap(api.POST(`${base}/${to}`, { params })))}
          onClose={close}
        >
          <p>{t(`account.${to}Words`)}</p>
        </Confirm>
      )}
    </>
  );
}
