import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";

import { ChainName, useChainName } from "../../ui/ChainName";
import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { Empty } from "../../ui/Feedback";
import { List, listed, type Column } from "../../ui/List";
import { None } from "../../ui/None";
import { Facts, Page, Section } from "../../ui/Page";
import { QueryView } from "../../ui/QueryView";
import { Failed, Waits } from "../../ui/Said";
import { useListSearch } from "../../ui/search";
import { Chip } from "../../ui/Status";
import { plus } from "../../ui/units";
import { Moment, When } from "../../ui/When";
import { api, unwrap, useWords, type Schemas } from "../api";
import { ROWS, usePermitted } from "../queries";
import { IntentState } from "../queue/IntentState";

import { limitOf } from "./limit";
import { StakeButton } from "./StakeButton";

/** That only a stake's parts differ, or when a station was read, is not told: it is asked for. */
const POLL_MS = 10_000;

type Station = Schemas["GasStationView"];
type Stake = Schemas["StakeStakeView"];

/** What pays for gas, what is staked for it, and what was asked of the stakes. */
export function GasPage() {
  const { t } = useWords();
  const search = useListSearch([]);
  const mayStake = usePermitted("stakes.change");
  const stations = useQuery({
    queryKey: ["gas_station"],
    queryFn: async ({ signal }) => (await unwrap(api.GET("/api/admin/gas-stations", { signal }))).gasStations,
    refetchInterval: POLL_MS,
  });
  const stakes = useQuery({ ...stakesQuery(search.page), placeholderData: keepPreviousData });
  const newest = useQuery(stakesQuery(1)).data?.rows ?? [];
  const columns: readonly Column<Stake>[] = [
    { id: "created", title: t("common:payments.created"), cell: (one) => <When at={one.createdAt} /> },
    { id: "action", title: t("record.kind"), cell: (one) => t(`stake.${one.action}`) },
    { id: "status", title: t("record.status"), cell: (one) => <IntentState state={one.status} /> },
    { id: "chain", title: t("record.chain"), cell: (one) => <ChainName of={one.chain} /> },
    { id: "why", title: t("record.why"), cell: (one) => <Why of={one} /> },
    {
      id: "amount",
      title: t("record.amount"),
      atEnd: true,
      cell: (one) => <Amount value={one.amount} token={one.token} />,
    },
  ];
  return (
    <Page title={t("nav.gas")} lead={t("gas.lead")}>
      <QueryView query={stations}>
        {(all) =>
          all.length === 0 ? (
            <Section>
              <Empty title={t("gas.none")} />
            </Section>
          ) : (
            all.map((one) => (
              <StationView key={one.chain} station={one} mayStake={mayStake} isBefore={isBeforeChange(one, newest)} />
            ))
          )
        }
      </QueryView>
      <Section title={t("stake.list")} flush>
        <List
          label={t("stake.list")}
          columns={columns}
          query={stakes}
          rowKey={(one) => one.stakeId}
          onPage={search.goTo}
          empty={<Empty title={t("stake.none")} />}
        />
      </Section>
    </Page>
  );
}

interface StationProps {
  readonly station: Station;
  readonly mayStake: boolean;
  /** Whether it was read before its stake was changed last. */
  readonly isBefore: boolean;
}

function stakesQuery(page: number) {
  return queryOptions({
    queryKey: ["stakes", page],
    queryFn: async ({ signal }) => {
      const params = { query: { limit: ROWS, page } };
      const answer = await unwrap(api.GET("/api/admin/stakes", { params, signal }));
      return listed(answer.stakes, answer);
    },
  });
}

function isBeforeChange({ chain, checkedAt }: Station, stakes: readonly Stake[]): boolean {
  if (checkedAt === null) return false;
  return stakes.some((one) => one.chain === chain && one.status === "done" && (one.finishedAt ?? "") > checkedAt);
}

/** What it waits for, or what went wrong with it. */
function Why({ of }: { readonly of: Stake }) {
  if (of.waitsFor !== null) return <Waits code={of.waitsFor} words={of.waitsForText ?? of.waitsFor} />;
  return of.error === null ? <None /> : <Failed code={of.errorCode ?? ""} words={of.error} />;
}

function StationView({ station, mayStake, isBefore }: StationProps) {
  const { t } = useWords();
  const chainName = useChainName();
  const stake = station.stake ?? null;
  const coin = (value: string) => <Amount value={value} token={station.symbol} />;
  const lowBelow = limitOf(station.lowBelow);
  const stakeLowBelow = limitOf(stake?.lowBelow ?? null);
  return (
    <Section
      title={chainName(station.chain)}
      actions={
        mayStake &&
        stake !== null && (
          <>
            <StakeButton station={station} stake={stake} action="stake" />
            <StakeButton station={station} stake={stake} action="unstake" />
            <StakeButton station={station} stake={stake} action="withdraw" />
          </>
        )
      }
    >
      <Facts
        facts={[
          [t("record.state"), <Level key="level" station={station} />],
          [t("gas.balance"), station.balance === null ? t("gas.unknown") : coin(station.balance)],
          [t("gas.lowBelow"), lowBelow === null ? null : coin(lowBelow)],
          [t("gas.waiting"), station.waiting],
          [
            t("gas.checked"),
            station.checkedAt === null ? null : (
              <span key="checked">
                <When at={station.checkedAt} />
                {isBefore && <span className="muted">, {t("stake.before")}</span>}
              </span>
            ),
          ],
          [t("stake.staked"), stake === null ? null : coin(stake.staked)],
          [t("stake.left"), stake === null ? null : coin(plus(stake.lent, stake.lendable))],
          [t("stake.lowBelow"), stakeLowBelow === null ? null : coin(stakeLowBelow)],
          [t("stake.leaving"), stake === null ? null : coin(stake.leaving)],
          [t("stake.freeAt"), stake?.freeAt == null ? null : <Moment key="free" at={stake.freeAt} />],
          [t("stake.withdrawable"), stake === null ? null : coin(stake.withdrawable)],
          [t("record.address"), <Address key="address" value={station.address} whole />],
        ]}
      />
    </Section>
  );
}

/** Whether there is enough, and of what there is not. Before a worker has read it, nobody knows. */
function Level({ station: { isLow, stake } }: { readonly station: Station }) {
  const { t } = useWords();
  if (isLow === null) return <Chip tone="calm">{t("gas.unknown")}</Chip>;
  const isStakeLow = stake?.isLow === true;
  return (
    <span className="row">
      {isLow && <Chip tone="bad">{t("gas.isLow")}</Chip>}
      {isStakeLow && <Chip tone="care">{t("stake.isLow")}</Chip>}
      {!isLow && !isStakeLow && <Chip tone="good">{t("gas.enough")}</Chip>}
    </span>
  );
}
