import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { ChainName } from "../../ui/ChainName";
import { Amount, Fiat } from "../../ui/Amount";
import { showFiat } from "../../ui/format";
import { Text } from "../../ui/Text";
import { ActButton } from "../ActButton";
import { api, unwrap, useWords } from "../api";
import { usePermitted } from "../queries";

import { coveringPercent, shareOf, toBps } from "./cost";
import type { AtAddress } from "./queries";

/** What is offered where nobody can say what would cover the fee. */
const PERCENT = "5";

interface CollectButtonProps {
  readonly uncollectedId: string;
  readonly one: AtAddress;
}

/** Has what lies on an address collected now, for a fee that is bounded and said before. */
export function CollectButton({ uncollectedId, one }: CollectButtonProps) {
  const { t, i18n } = useWords();
  const client = useQueryClient();
  const mayAsk = usePermitted("collections.ask");
  const [percent, setPercent] = useState(PERCENT);
  if (!mayAsk) return null;
  const bps = toBps(percent);
  const usd = (value: string) => showFiat(value, "usd", i18n.language);
  return (
    <ActButton
      isSmall
      act={t("uncollected.collect")}
      title={t("uncollected.collectTitle")}
      onOpen={() => {
        setPercent(coveringPercent(one.valueUsd, one.feeUsd) ?? PERCENT);
      }}
      onConfirm={async () => {
        const params = { path: { uncollectedId } };
        const body = { maxFeeShareBps: bps };
        await unwrap(api.POST("/api/admin/collections/uncollected/{uncollectedId}/collect", { params, body }));
        await client.invalidateQueries({ queryKey: ["uncollected"] });
      }}
    >
      <p>
        <Amount value={one.amount} token={one.token} /> · <ChainName of={one.chain} />
        {one.valueUsd !== null && (
          <>
            {" "}
            · <Fiat value={one.valueUsd} currency="usd" />
          </>
        )}
      </p>
      <p>{t("uncollected.collectWords")}</p>
      <Text
        label={t("uncollected.share")}
        description={
          one.feeUsd === null ? t("uncollected.feeUnknown") : t("uncollected.feeThen", { fee: usd(one.feeUsd) })
        }
        required
        inputMode="decimal"
        autoComplete="off"
        pattern="[0-9]{1,2}([.,][0-9]{1,2})?"
        value={percent}
        onText={setPercent}
      />
      <p role="status">
        {one.valueUsd === null
          ? t("uncollected.valueUnknown")
          : bps !== null && t("uncollected.most", { most: usd(shareOf(one.valueUsd, bps)) })}
      </p>
    </ActButton>
  );
}
