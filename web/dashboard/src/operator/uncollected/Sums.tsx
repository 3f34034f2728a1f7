import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { ChainName } from "../../ui/ChainName";
import { Amount, Fiat } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { numbers } from "../../ui/format";
import { None } from "../../ui/None";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { When } from "../../ui/When";
import { useWords } from "../api";

import { sumsQuery, type Sum } from "./queries";
import { ReasonChip } from "./Why";

const POLL_MS = 30_000;

interface SumsProps {
  /** Lets the list below show what a sum is made of. */
  readonly onShow: (sum: Sum) => void;
}

/** How much of each token lies on addresses of each chain, and for which reason. */
export function Sums({ onShow }: SumsProps) {
  const { t, i18n } = useWords();
  const number = numbers(i18n.language);
  const query = useQuery({ ...sumsQuery, refetchInterval: POLL_MS });
  return (
    <Section title={t("uncollected.sums")} flush>
      <QueryView query={query}>
        {(sums) =>
          sums.length === 0 ? (
            <Empty title={t("uncollected.nothing")}>
              <p>{t("uncollected.nothingWords")}</p>
            </Empty>
          ) : (
            <Plain
              label={t("uncollected.sums")}
              rows={sums}
              rowKey={(one) => `${one.chain} ${one.contractAddress ?? one.token} ${one.reason}`}
              columns={[
                { id: "token", title: t("common:payments.token"), cell: (one) => <b>{one.token}</b> },
                { id: "chain", title: t("record.chain"), cell: (one) => <ChainName of={one.chain} /> },
                { id: "why", title: t("record.why"), cell: (one) => <ReasonChip reason={one.reason} /> },
                { id: "since", title: t("uncollected.since"), cell: (one) => <When at={one.since} /> },
                {
                  id: "addresses",
                  title: t("uncollected.addresses"),
                  atEnd: true,
                  cell: (one) => <span className="number">{number.format(one.addresses)}</span>,
                },
                {
                  id: "amount",
                  title: t("record.amount"),
                  atEnd: true,
                  cell: (one) => <Amount value={one.amount} token={one.token} />,
                },
                {
                  id: "worth",
                  title: t("common:overview.worth"),
                  atEnd: true,
                  cell: (one) => <Worth of={one} />,
                },
                {
                  id: "show",
                  title: "",
                  atEnd: true,
                  cell: (one) => (
                    <Button
                      variant="default"
                      size="compact-sm"
                      onClick={() => {
                        onShow(one);
                      }}
                    >
                      {t("uncollected.show")}
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </QueryView>
    </Section>
  );
}

/** What it is worth, and of how many addresses nobody can say that. */
function Worth({ of }: { readonly of: Sum }) {
  const { t } = useWords();
  if (of.unpriced === of.addresses) return <None />;
  return (
    <>
      <Fiat value={of.valueUsd} currency="usd" />
      {of.unpriced > 0 && <div className="muted">{t("uncollected.unpriced", { count: of.unpriced })}</div>}
    </>
  );
}
