import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";

import { atGateway } from "../../api/clock";
import { Empty } from "../../ui/Feedback";
import { None } from "../../ui/None";
import { numbers, showAge } from "../../ui/format";
import { Page, Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { QueryView } from "../../ui/QueryView";
import { Trouble } from "../../ui/Said";
import { useNow } from "../../ui/When";
import { useWords, type Schemas } from "../api";
import { chainsQuery } from "../queries";

import { ChainStatus } from "./ChainStatus";

const POLL_MS = 10_000;

/** Every chain: whether it is watched, how far behind it is, and what is wrong with it. */
export function ChainsPage() {
  const { t } = useWords();
  const query = useQuery({ ...chainsQuery, refetchInterval: POLL_MS });
  return (
    <Page title={t("nav.chains")} lead={t("chains.lead")}>
      <Section flush>
        <QueryView query={query} lines={8}>
          {(chains) =>
            chains.length === 0 ? (
              <Empty title={t("chains.none")}>
                <p>{t("chains.noneWords")}</p>
              </Empty>
            ) : (
              <Plain
                label={t("nav.chains")}
                rows={chains}
                rowKey={(one) => one.chain}
                columns={[
                  {
                    id: "name",
                    title: t("record.chain"),
                    cell: (one) => <Link to={`/chains/${one.chain}`}>{one.name}</Link>,
                  },
                  { id: "status", title: t("record.status"), cell: (one) => <ChainStatus chain={one} /> },
                  {
                    id: "height",
                    title: t("chains.height"),
                    atEnd: true,
                    cell: (one) => <Height value={one.height} />,
                  },
                  {
                    id: "lag",
                    title: t("chains.lag"),
                    atEnd: true,
                    cell: (one) => <Lag chain={one} at={query.dataUpdatedAt} />,
                  },
                  {
                    id: "endpoints",
                    title: t("chains.endpoints"),
                    atEnd: true,
                    cell: (one) => <Healthy chain={one} />,
                  },
                  { id: "problem", title: t("chains.problem"), cell: (one) => <Problem of={one} /> },
                ]}
              />
            )
          }
        </QueryView>
      </Section>
    </Page>
  );
}

type Chain = Schemas["AdminChainView"];

/** What is wrong with it, if anything is. */
export function Problem({ of }: { readonly of: Chain }) {
  const told = problemOf(of);
  return told === null ? <None /> : <Trouble {...told} />;
}

export function problemOf(chain: Chain): { readonly code: string; readonly words: string } | null {
  const { error, setupProblem, problem } = chain;
  if (error !== null) return { code: chain.errorCode ?? "", words: error };
  if (setupProblem !== null) return { code: chain.setupProblemCode ?? "", words: setupProblem };
  return problem === null ? null : { code: chain.problemCode ?? "", words: problem };
}

export function Height({ value }: { readonly value: number | null }) {
  const { i18n } = useWords();
  return value === null ? <None /> : <span className="number">{numbers(i18n.language).format(value)}</span>;
}

/**
 * How many blocks were left to read at the last poll, and how long ago the last one that was read was made. With none
 * left, and a chain that is read as it should be, nothing is behind however old that block is: chains pause.
 *
 * The block is as old as told at the moment of the answer, in milliseconds of this machine's clock, and grows older while
 * no other comes.
 */
export function Lag({ chain, at: answeredAt }: { readonly chain: Chain; readonly at: number }) {
  const { t, i18n } = useWords();
  const { lagBlocks, lagSeconds, status } = chain;
  // The clock of the page may be a moment behind the answer.
  const at = atGateway(answeredAt);
  const now = Math.max(useNow(), at);
  if (lagBlocks === null) return <None />;
  const parts = [];
  if (lagBlocks > 0) parts.push(t("chains.lagBlocks", { count: lagBlocks }));
  else if (status === "working") parts.push(t("chains.upToDate"));
  if (lagSeconds !== null && lagSeconds > 0) {
    const minedAt = new Date(at - 1_000 * lagSeconds).toISOString();
    parts.push(t("chains.lastBlock", { age: showAge(minedAt, i18n.language, now) }));
  }
  const [first, ...others] = parts;
  if (first === undefined) return <None />;
  return (
    <span>
      <span className="number">{first}</span>
      {others.length > 0 && <span className="muted"> · {others.join(" · ")}</span>}
    </span>
  );
}

function Healthy({ chain }: { readonly chain: Chain }) {
  const { t } = useWords();
  const used = chain.endpoints.filter((one) => one.state === "in_use");
  if (used.length === 0) return <None />;
  const healthy = used.filter((one) => one.healthy !== false);
  return <span className="number">{t("common:ui.of", { value: healthy.length, max: used.length })}</span>;
}
