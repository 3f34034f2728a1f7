import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";

import { asApiError } from "../../api/errors";
import { Amount, Rate } from "../../ui/Amount";
import { ErrorNote } from "../../ui/Feedback";
import { PriceSource } from "../../ui/PriceSource";
import { Moment } from "../../ui/When";
import { api, unwrap } from "../api";
import { useProjectId } from "../project";
import type { Schemas } from "../queries";

const TYPING_MS = 400;
const STALE_MS = 15_000;
const PLAIN = /^\d+(\.\d+)?$/;

interface QuoteProps {
  readonly ask: Schemas["Ask"];
  /** The code that the payment itself was refused with, which is said beside. */
  readonly refused?: string | undefined;
}

/** What a customer would pay if the payment were made now. It is advice: the rate holds once it is made. */
export function Quote({ ask, refused }: QuoteProps) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const wanted = JSON.stringify(ask);
  const [asked] = useDebouncedValue(wanted, TYPING_MS);
  // While somebody types, what was answered is of another amount, token or chain: beside the new one it would be wrong.
  const isAsked = asked === wanted;
  const isPlain = PLAIN.test(ask.amount) && Number(ask.amount) > 0;
  const { data, error } = useQuery({
    queryKey: ["project", projectId, "payment-quote", asked],
    enabled: isPlain && isAsked,
    staleTime: STALE_MS,
    queryFn: ({ signal }) => {
      const params = { path: { projectId } };
      return unwrap(api.POST("/api/dashboard/projects/{projectId}/payments/quote", { params, body: ask, signal }));
    },
  });
  if (!isPlain || !isAsked) return null;
  if (error !== null) return asApiError(error).code === refused ? null : <ErrorNote error={error} />;
  if (data === undefined) return null;
  return (
    <div role="status">
      {t("payments.willPay")} <Amount value={data.expectedAmount} token={ask.token} />{" "}
      {data.rate !== null && (
        <div className="muted">
          <bdi dir="ltr" className="number">
            1 {ask.token} = <Rate value={data.rate} /> {ask.fiatCurrency?.toUpperCase()}
          </bdi>{" "}
          · <PriceSource of={data.source} /> · <Moment at={data.validUntil} />
        </div>
      )}
    </div>
  );
}
