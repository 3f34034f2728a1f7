import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { ChainName } from "../../ui/ChainName";
import type { Translate } from "../../i18n";
import { Address } from "../../ui/Address";
import { usePathPart } from "../../ui/address";
import { Amount, Fiat, Rate } from "../../ui/Amount";
import { Copyable } from "../../ui/Copyable";
import { Empty } from "../../ui/Feedback";
import { Meaning } from "../../ui/Meaning";
import { Facts, Page, Section, type Fact } from "../../ui/Page";
import { PriceSource } from "../../ui/PriceSource";
import { Scannable } from "../../ui/Scannable";
import { QueryPage } from "../../ui/QueryView";
import { Status } from "../../ui/Status";
import { Moment, When } from "../../ui/When";
import { usePermitted, useProjectId } from "../project";
import { Decision } from "../resolutions/Decision";
import { PaymentPanel } from "../sandbox/PaymentPanel";
import { paymentLinksQuery, paymentQuery, type PaymentDetail } from "../queries";

import { Held } from "./Held";
import { LeftOut } from "./LeftOut";
import { Recalculate } from "./Recalculate";
import { Refund } from "./Refund";
import { Refunds } from "./Refunds";
import { Timeline } from "./Timeline";

const REFUNDABLE: ReadonlySet<string> = new Set(["paid", "overpaid", "underpaid", "refunded"]);
const POLL_MS = 5_000;
/** In these, nothing moves any more by itself. */
const AT_REST: ReadonlySet<string> = new Set(["paid", "overpaid", "underpaid", "refunded", "failed"]);

/** One payment: what was asked for, what came, what the merchant was told, and what can be done. */
export function PaymentPage() {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const paymentId = usePathPart("paymentId");
  const query = useQuery({
    ...paymentQuery(projectId, paymentId),
    refetchInterval: ({ state }) => (state.data !== undefined && AT_REST.has(state.data.status) ? false : POLL_MS),
  });
  return (
    <QueryPage title={t("payment.title")} query={query}>
      {(payment) => <Shown projectId={projectId} payment={payment} />}
    </QueryPage>
  );
}

function Shown({ projectId, payment }: { readonly projectId: string; readonly payment: PaymentDetail }) {
  const { t } = useTranslation();
  return (
    <Page
      title={t("payment.title")}
      tab={`${t("payment.title")} ${payment.orderId ?? payment.paymentId}`}
      lead={
        <span className="row">
          <Status value={payment.status} />
          <Copyable text={payment.paymentId}>
            <code>{payment.paymentId}</code>
          </Copyable>
          <When at={payment.createdAt} />
        </span>
      }
      actions={<Acts payment={payment} />}
    >
      <PaymentPanel payment={payment} />
      <Section title={t("payment.amounts")}>
        <Facts facts={amounts(payment, t)} />
      </Section>
      <Section title={t("payment.where")}>
        <Where payment={payment} />
      </Section>
      <Section title={t("payment.deposits")} flush>
        <Deposits payment={payment} />
      </Section>
      <Held paymentId={payment.paymentId} />
      <Refunds projectId={projectId} paymentId={payment.paymentId} />
      <Timeline projectId={projectId} payment={payment} />
      <Section title={t("payment.details")}>
        <Facts facts={details(payment, t)} />
      </Section>
    </Page>
  );
}

type T = Translate;

function amounts(payment: PaymentDetail, t: T): readonly Fact[] {
  const { token } = payment;
  return [
    [t("payment.expected"), <Amount key="expected" value={payment.expectedAmount} token={token} />],
    [t("payments.received"), <Amount key="received" value={payment.receivedAmount} token={token} />],
    [
      t("payment.refunded"),
      payment.refundedAmount === "0" ? null : <Amount key="refunded" value={payment.refundedAmount} token={token} />,
    ],
    [
      t("payment.price"),
      payment.fiatCurrency === undefined ? null : (
        <Fiat key="price" value={payment.amount} currency={payment.fiatCurrency} />
      ),
    ],
    [
      t("payment.rate"),
      payment.exchangeRate === undefined ? null : (
        <span key="rate">
          <bdi dir="ltr" className="number">
            1 {token} = <Rate value={payment.exchangeRate} /> {payment.fiatCurrency?.toUpperCase()}
          </bdi>
          {payment.rateSource !== undefined && (
            <>
              {" "}
              · <PriceSource of={payment.rateSource} />
            </>
          )}
        </span>
      ),
    ],
    [t("payment.expires"), <Moment key="expires" at={payment.expiresAt} />],
  ];
}

function details(payment: PaymentDetail, t: T): readonly Fact[] {
  const { metadataText } = payment;
  return [
    [t("payments.order"), payment.orderId],
    [t("payment.customer"), payment.customerName],
    [t("signIn.email"), payment.customerEmail],
    [t("payment.webhook"), payment.webhookUrl],
    [t("payment.success"), payment.successUrl],
    [t("payment.cancel"), payment.cancelUrl],
    [t("payment.updated"), <Moment key="updated" at={payment.updatedAt} />],
    [t("payment.metadata"), metadataText === null ? null : <code key="metadata">{metadataText}</code>],
  ];
}

function Where({ payment }: { readonly payment: PaymentDetail }) {
  const { t } = useTranslation();
  const projectId = useProjectId();
  const { data: links } = useQuery(paymentLinksQuery(projectId, payment.paymentId));
  return (
    <div className="stack">
      <Facts
        facts={[
          [t("payments.chain"), <ChainName key="chain" of={payment.chain} />],
          [t("payment.address"), <Scannable key="address" value={payment.depositAddress} />],
          [
            t("payment.contract"),
            payment.contractAddress === null ? null : <Address key="contract" value={payment.contractAddress} whole />,
          ],
          [t("payment.confirmations"), payment.requiredConfirmations],
        ]}
      />
      {links !== undefined && (
        <div className="row">
          <Button component="a" href={links.checkoutUrl} target="_blank" rel="noreferrer" variant="default">
            {t("payment.checkout")}
          </Button>
          <Button component="a" href={links.receiptUrl} target="_blank" rel="noreferrer" variant="default">
            {t("payment.receipt")}
          </Button>
        </div>
      )}
    </div>
  );
}

function Deposits({ payment }: { readonly payment: PaymentDetail }) {
  const { t } = useTranslation();
  if (payment.deposits.length === 0) return <Empty title={t("payment.noDeposits")} />;
  return (
    <>
      <ol className="timeline">
        {payment.deposits.map((one) => (
          <li key={one.depositId}>
            <div className="row">
              <Amount value={one.amount} token={one.token} />
              <Status value={one.status} />
              {!one.counted && <span className="muted">{t("payment.notCounted")}</span>}
              {one.resolution !== null && (
                <>
                  <Meaning of="resolution" code={one.resolution} />
                  <Decision depositId={one.depositId} />
                </>
              )}
            </div>
            <div className="row muted">
              <Address value={one.txHash} />
              <span className="number">
                {t("payment.confirmed", { count: one.confirmations, required: one.requiredConfirmations })}
              </span>
              <When at={one.seenAt} />
            </div>
          </li>
        ))}
      </ol>
      <LeftOut count={payment.depositsLeftOut} />
    </>
  );
}

function Acts({ payment }: { readonly payment: PaymentDetail }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState<"refund" | "recalculate" | null>(null);
  const mayRefund = usePermitted("refunds") && REFUNDABLE.has(payment.status);
  const mayRecalculate = usePermitted("payments") && payment.status === "expired" && payment.pricingMode === "fiat";
  const close = () => {
    setOpen(null);
  };
  return (
    <>
      {mayRecalculate && (
        <Button
          variant="default"
          onClick={() => {
            setOpen("recalculate");
          }}
        >
          {t("recalculate.act")}
        </Button>
      )}
      {mayRefund && (
        <Button
          variant="default"
          onClick={() => {
            setOpen("refund");
          }}
        >
          {t("refund.act")}
        </Button>
      )}
      {open === "refund" && <Refund payment={payment} onClose={close} />}
      {open === "recalculate" && <Recalculate payment={payment} onClose={close} />}
    </>
  );
}
