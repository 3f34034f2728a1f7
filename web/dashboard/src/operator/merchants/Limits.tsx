import { Select } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { Amount } from "../../ui/Amount";
import { AmountText } from "../../ui/AmountText";
import { ChangedMeanwhile, useBegun, type Told } from "../../ui/Changed";
import { Empty } from "../../ui/Feedback";
import { showAmount } from "../../ui/format";
import { Section } from "../../ui/Page";
import { Plain } from "../../ui/Plain";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords, type Schemas } from "../api";
import { useCoinNames, usePermitted } from "../queries";

import { merchantQuery, useMerchantsChanged } from "./queries";

type All = Readonly<Record<string, Schemas["MerchantLimit"]>>;

interface LimitsProps {
  readonly merchantId: string;
  readonly limits: All;
  /** Which change of theirs these are. */
  readonly version: number;
}

/** What may leave this merchant's wallet, where that is not what may leave everybody's. */
export function Limits(props: LimitsProps) {
  const { t } = useWords();
  const mayChange = usePermitted("merchants.limits");
  const rows = Object.entries(props.limits);
  return (
    <Section title={t("merchants.limits")} flush actions={mayChange && <SetLimit {...props} />}>
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
              cell: ([coin, one]) => <Limit coin={coin} value={one.perTransaction ?? null} />,
            },
            {
              id: "day",
              title: t("merchants.perDay"),
              atEnd: true,
              cell: ([coin, one]) => <Limit coin={coin} value={one.perDay ?? null} />,
            },
            {
              id: "acts",
              title: "",
              atEnd: true,
              cell: ([coin]) => mayChange && <TakeAway {...props} coin={coin} />,
            },
          ]}
        />
      )}
    </Section>
  );
}

interface LimitProps {
  /** As settings name it: `ethereum/USDT`. */
  readonly coin: string;
  readonly value: string | null;
}

function Limit({ coin, value }: LimitProps) {
  const { t } = useWords();
  return value === null ? t("merchants.asEverybody") : <Amount value={value} token={coin.split("/")[1]} />;
}

/** Return what tells of limits, as the page names and shows them. */
function useLimitsTold(): (read: Pick<LimitsProps, "limits">) => readonly Told[] {
  const { t, i18n } = useWords();
  return ({ limits }) =>
    Object.entries(limits).flatMap(([coin, one]) =>
      (["perTransaction", "perDay"] as const).map((name) => {
        const value = one[name] ?? null;
        return {
          key: `${coin} ${name}`,
          title: `${coin} \u00b7 ${t(`merchants.${name}`)}`,
          value,
          text: value === null ? t("merchants.asEverybody") : showAmount(value, i18n.language, value.length).text,
        };
      }),
    );
}

/** Return how all limits are set at once, to what a dialog makes of those that were read. */
function useLimits({ merchantId, limits, version }: LimitsProps) {
  const client = useQueryClient();
  const changed = useMerchantsChanged();
  const {
    begin,
    send,
    changed: others,
  } = useBegun({
    now: { limits, version },
    told: useLimitsTold(),
    readAgain: async () => {
      const page = await client.query({ ...merchantQuery(merchantId), staleTime: 0 });
      return { limits: page.limits, version: page.limitsVersion };
    },
  });

  async function put(made: (limits: All) => All): Promise<void> {
    const params = { path: { merchantId } };
    await send(async (read) => {
      const body = { limits: made(read.limits), version: read.version };
      await unwrap(api.PUT("/api/admin/merchants/{merchantId}/limits", { params, body }));
    });
    await changed();
  }

  return { begin, put, others };
}

function TakeAway({ coin, ...props }: LimitsProps & { readonly coin: string }) {
  const { t } = useWords();
  const { begin, put, others } = useLimits(props);
  return (
    <ActButton
      isSmall
      act={t("merchants.takeAway")}
      title={t("merchants.takeAwayTitle", { coin })}
      onOpen={begin}
      onConfirm={() => put((limits) => Object.fromEntries(Object.entries(limits).filter(([other]) => other !== coin)))}
    >
      <p>{t("merchants.takeAwayWords")}</p>
      <ChangedMeanwhile changed={others} />
    </ActButton>
  );
}

function SetLimit(props: LimitsProps) {
  const { t } = useWords();
  const { limits } = props;
  const { begin, put, others } = useLimits(props);
  const [coin, setCoin] = useState<string | null>(null);
  const [once, setOnce] = useState("");
  const [day, setDay] = useState("");
  const coins = useCoinNames();
  // What it is limited to already is shown, and not taken away unseen.
  const choose = (chosen: string | null) => {
    setCoin(chosen);
    setOnce((chosen === null ? null : limits[chosen]?.perTransaction) ?? "");
    setDay((chosen === null ? null : limits[chosen]?.perDay) ?? "");
  };
  return (
    <ActButton
      isSmall
      act={t("merchants.setLimit")}
      title={t("merchants.setLimit")}
      onOpen={() => {
        begin();
        choose(null);
      }}
      onConfirm={async () => {
        const own = {
          ...(once.trim() === "" ? {} : { perTransaction: once.trim() }),
          ...(day.trim() === "" ? {} : { perDay: day.trim() }),
        };
        await put((all) => ({ ...all, [coin ?? ""]: own }));
      }}
    >
      <p>{t("merchants.setLimitWords")}</p>
      <ChangedMeanwhile changed={others} />
      <Select
        label={t("merchants.coin")}
        required
        searchable
        openOnFocus={false}
        data={coins}
        value={coin}
        onChange={choose}
      />
      <AmountText label={t("merchants.perTransaction")} value={once} onText={setOnce} />
      <AmountText label={t("merchants.perDay")} value={day} onText={setDay} />
    </ActButton>
  );
}
