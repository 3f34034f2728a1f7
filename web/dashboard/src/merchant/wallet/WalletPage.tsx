import { Button, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { useChainName } from "../../ui/ChainName";
import { Fiat } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { showList } from "../../ui/format";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { Scannable } from "../../ui/Scannable";
import { useListSearch } from "../../ui/search";
import { usePermitted, useProjectId } from "../project";
import type { Schemas } from "../queries";

import { Balances } from "./Balances";
import { Collections } from "./Collections";
import { addressesQuery, WALLET_FILTERS, worthQuery } from "./queries";
import { Statement } from "./Statement";

/** What the merchant has, coin by coin, and every movement of it. */
export function WalletPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const search = useListSearch(WALLET_FILTERS);
  const worth = useQuery(worthQuery(projectId, search.filters.currency));
  const mayPay = usePermitted("payouts");
  return (
    <Page
      title={t("wallet.title")}
      lead={t("wallet.lead")}
      actions={
        mayPay && (
          <Button component={Link} to={`/${projectId}/payouts/new`}>
            {t("payouts.new")}
          </Button>
        )
      }
    >
      <Section
        title={t("wallet.balances")}
        flush
        actions={worth.data !== undefined && <Together worth={worth.data} onCurrency={search.set.currency} />}
      >
        <QueryView query={worth}>
          {({ balances, currency }) => <Balances of={balances} currency={currency} />}
        </QueryView>
      </Section>
      <Section title={t("wallet.addresses")}>
        <Addresses projectId={projectId} />
      </Section>
      <Statement projectId={projectId} />
      <Collections projectId={projectId} />
    </Page>
  );
}

interface TogetherProps {
  readonly worth: Schemas["WalletWorth"];
  readonly onCurrency: (currency: string) => void;
}

/** What everything is worth together, and in which currency. */
function Together({ worth: { balances, currency, currencies }, onCurrency }: TogetherProps) {
  const { t } = useTranslation();
  if (balances.coins.length === 0) return null;
  return (
    <>
      <Fiat value={balances.fiat} currency={currency} />
      {currencies.length > 1 && (
        <Select
          aria-label={t("payments.currency")}
          size="xs"
          w={90}
          allowDeselect={false}
          data={currencies.map((value) => ({ value, label: value.toUpperCase() }))}
          value={currency}
          onChange={(chosen) => {
            if (chosen !== null) onCurrency(chosen);
          }}
        />
      )}
    </>
  );
}

function Addresses({ projectId }: { readonly projectId: string }) {
  const { t, i18n } = useTranslation();
  const chainName = useChainName();
  const query = useQuery(addressesQuery(projectId));
  return (
    <QueryView query={query} lines={2}>
      {(addresses) =>
        addresses.length === 0 ? (
          <Empty title={t("wallet.noAddresses")} />
        ) : (
          <Facts
            facts={addresses.map((one) => [
              showList(one.chains.map(chainName), i18n.language),
              <Scannable key={one.address} value={one.address} />,
            ])}
          />
        )
      }
    </QueryView>
  );
}
