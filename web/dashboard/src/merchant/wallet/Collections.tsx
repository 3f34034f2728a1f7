import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { ChainName } from "../../ui/ChainName";
import { Empty } from "../../ui/Feedback";
import { Meaning } from "../../ui/Meaning";
import { None } from "../../ui/None";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Chip } from "../../ui/Status";
import { When } from "../../ui/When";
import { ProjectCsv } from "../ProjectCsv";

import { collectionsQuery } from "./queries";

const TONES = { waiting: "wait", sending: "work", done: "good", failed: "bad" } as const;

/** What was brought, or is being brought, from deposit addresses into the main wallet: the newest of it. */
export function Collections({ projectId }: { readonly projectId: string }) {
  const { t } = useTranslation();
  const query = useQuery(collectionsQuery(projectId));
  return (
    <Section title={t("wallet.collections")} flush actions={<ProjectCsv list="wallet/collections" query={{}} />}>
      <QueryView query={query}>
        {({ collections, isAll }) =>
          collections.length === 0 ? (
            <Empty title={t("wallet.noCollections")} />
          ) : (
            <>
              <Plain
                label={t("wallet.collections")}
                rows={collections}
                rowKey={(one) => one.collectionId}
                columns={[
                  { id: "when", title: t("statement.when"), cell: (one) => <When at={one.createdAt} /> },
                  {
                    id: "status",
                    title: t("payments.status"),
                    cell: (one) => (
                      <Chip tone={TONES[one.status]}>
                        <Meaning of="intent" code={one.status} />
                      </Chip>
                    ),
                  },
                  { id: "chain", title: t("payments.chain"), cell: (one) => <ChainName of={one.chain} /> },
                  { id: "address", title: t("payment.address"), cell: (one) => <Address value={one.fromAddress} /> },
                  {
                    id: "tx",
                    title: t("statement.tx"),
                    cell: (one) => (one.txHash === null ? <None /> : <Address value={one.txHash} />),
                  },
                  {
                    id: "amount",
                    title: t("payments.amount"),
                    atEnd: true,
                    cell: (one) => <Amount value={one.amount} token={one.token} />,
                  },
                ]}
              />
              {!isAll && <p className="muted">{t("events.newest")}</p>}
            </>
          )
        }
      </QueryView>
    </Section>
  );
}
