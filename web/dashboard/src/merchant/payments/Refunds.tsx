import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { Address } from "../../ui/Address";
import { Amount } from "../../ui/Amount";
import { ErrorNote } from "../../ui/Feedback";
import { shortId } from "../../ui/format";
import { Section } from "../../ui/Page";
import { Failed } from "../../ui/Said";
import { Status } from "../../ui/Status";
import { When } from "../../ui/When";
import { refundsQuery } from "../queries";

interface RefundsProps {
  readonly projectId: string;
  readonly paymentId: string;
}

/** What was sent back of a payment; nothing where nothing was. Where nobody knows whether anything was, that is said. */
export function Refunds({ projectId, paymentId }: RefundsProps) {
  const { t } = useTranslation();
  const { data, error, refetch } = useQuery(refundsQuery(projectId, paymentId));
  const { refunds, isAll } = data ?? { refunds: [], isAll: true };
  const note = error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (refunds.length === 0) return note && <Section title={t("refund.list")}>{note}</Section>;
  return (
    <Section title={t("refund.list")} flush>
      {note}
      <ol className="timeline">
        {refunds.map((one) => (
          <li key={one.refundId}>
            <div className="row">
              <Amount value={one.amount} token={one.token} />
              <Status value={one.status} />
              <Link to={`/${projectId}/refunds/${one.refundId}`}>
                <code>{shortId(one.refundId)}</code>
              </Link>
              <When at={one.createdAt} />
            </div>
            <div className="row muted">
              <Address value={one.toAddress} />
              {one.txHash !== null && <Address value={one.txHash} />}
              {one.reason !== null && <bdi>{one.reason}</bdi>}
              {one.error !== null && (
                <span>
                  <Failed code={one.errorCode ?? ""} words={one.error} />
                </span>
              )}
            </div>
          </li>
        ))}
      </ol>
      {!isAll && <p className="muted">{t("events.newest")}</p>}
    </Section>
  );
}
