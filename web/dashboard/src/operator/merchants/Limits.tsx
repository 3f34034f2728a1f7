import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { Empty } from "../../ui/Feedback";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { Text } from "../../ui/Text";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { usePermitted } from "../queries";

import { useMerchantsChanged } from "./queries";

type All = Readonly<Record<string, Schemas["MerchantLimit"]>>;

interface LimitsProps {
  readonly merchantId: string;
  readonly limits: All;
}

/** What may leave this merchant's wallet, where that is not what may leave everybody's. */
export function Limits({ merchantId, limits }: LimitsProps) {
  const { t } = useWords();
  const changed = useMerchantsChanged();
  const mayChange = usePermitted("merchants.limits");

  async function put(all: All): Promise<void> {
    const params = { path: { merchantId } };
    await unwrap(api.PUT("/api/admin/merchants/{merchantId}/limits", { params, body: { limits: all } }));
    await changed();
  }

  const rows = Object.entries(limits);
  return (
    <Section title={t("merchants.limits")} flush actions={mayChange && <SetLimit limits={limits} onPut={put} />}>
      {rows.length === 0 ? (
        <Empty title={t("merchants.noLimits")} />
      ) : (
        <Plain
          label={t("merchants.limits")}
          rows={rows}
          rowKey={([coin]) => coin}
          columns={[
            { id: "coin", title: t("merchants.coin"), cell: ([coin]) => <b>{coin}</b> },
            {
              id: "once",
              title: t("merchants.perTransaction"),
              atEnd: true,
              cell: ([, one]) => <span className="number">{one.perTransaction ?? t("merchants.asEverybody")}</span>,
            },
            {
              id: "day",
              title: t("merchants.perDay"),
              atEnd: true,
              cell: ([, one]) => <span className="number">{one.perDay ?? t("merchants.asEverybody")}</span>,
            },
            {
              id: "acts",
              title: "",
              atEnd: true,
              cell: ([coin]) =>
                mayChange && (
                  <ActButton
                    isSmall
                    act={t("merchants.takeAway")}
                    title={t("merchants.takeAwayTitle", { coin })}
                    onConfirm={() => put(Object.fromEntries(rows.filter(([other]) => other !== coin)))}
                  >
                    <p>{t("merchants.takeAwayWords")}</p>
                  </ActButton>
                ),
            },
          ]}
        />
      )}
    </Section>
  );
}

interface SetLimitProps {
  readonly limits: All;
  readonly onPut: (all: All) => Promise<void>;
}

function SetLimit({ limits, onPut }: SetLimitProps) {
  const { t } = useWords();
  const [coin, setCoin] = useState<string | null>(null);
  const [once, setOnce] = useState("");
  const [day, setDay] = useState("");
  const { data: tokens = [] } = useQuery({
    queryKey: ["tokens", undefined],
    queryFn: async ({ signal }) => (await unwrap(api.GET("/api/admin/tokens", { signal }))).tokens,
    enabled: usePermitted("chains.read"),
  });
  // What it is limited to already is shown, and not taken away unseen.
  const choose = (chosen: string | null) => {
    setCoin(chosen);
    setOnce((chosen === null ? null : limits[chosen]?.perTransaction) ?? "");
    setDay((chosen === null ? null : limits[chosen]?.perDay) ?? "");
  };
  const coins = tokens.flatMap(({ chain, symbol }) => (symbol === null ? [] : [`${chain}/${symbol}`]));
  return (
    <ActButton
      isSmall
      act={t("merchants.setLimit")}
      title={t("merchants.setLimit")}
      onOpen={() => {
        choose(null);
      }}
      onConfirm={async () => {
        const own = {
          ...(once.trim() === "" ? {} : { perTransaction: once.trim() }),
          ...(day.trim() === "" ? {} : { perDay: day.trim() }),
        };
        await onPut({ ...limits, [coin ?? ""]: own });
      }}
    >
      <p>{t("merchants.setLimitWords")}</p>
      <Select
        label={t("merchants.coin")}
        required
        searchable
        data={[...new Set(coins)]}
        value={coin}
        onChange={choose}
      />
      <Text
        label={t("merchants.perTransaction")}
        inputMode="decimal"
        autoComplete="off"
        value={once}
        onText={setOnce}
      />
      <Text label={t("merchants.perDay")} inputMode="decimal" autoComplete="off" value={day} onText={setDay} />
    </ActButton>
  );
}
