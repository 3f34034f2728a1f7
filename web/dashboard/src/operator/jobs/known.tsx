/** What jobs are asked for and what comes of them, name by name, as they are written in the API. */
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { ChainName, useChainName } from "../../ui/ChainName";
import { Copyable } from "../../ui/Copyable";
import { numbers, showList } from "../../ui/format";
import { Id } from "../../ui/Id";
import type { Fact } from "../../ui/Page";
import { Quoted, Trouble } from "../../ui/Said";
import { Moment } from "../../ui/When";
import { useWords, type Schemas } from "../api";
import { Height } from "../chains/ChainsPage";
import { MerchantLink } from "../merchants/MerchantLink";
import { merchantQuery } from "../merchants/queries";
import { usePermitted } from "../queries";
import { usePageOfId } from "../records/found";

import type { Line, Lines } from "./Told";

type Job = Schemas["JobView"];

interface Known {
  readonly asked: Lines;
  readonly became: Lines;
}

/** Return what is known of the arguments and of the result of a job. */
export function useKnownOf({ kind, arguments: asked }: Job): Known {
  const { t, i18n } = useWords();
  const chainName = useChainName();
  const pageOf = usePageOfId();
  const text =
    (label: string, show: (value: string) => ReactNode): Line =>
    (value) => {
      if (value === null) return null;
      return typeof value === "string" ? [label, show(value)] : undefined;
    };
  const number =
    (label: string, besides?: ReactNode): Line =>
    (value) =>
      typeof value === "number" ? [label, <Numbered key={label} value={value} besides={besides} />] : undefined;
  const names =
    (label: string, show: (value: readonly string[]) => ReactNode): Line =>
    (value) => {
      if (!isTexts(value)) return undefined;
      return value.length === 0 ? null : [label, show(value)];
    };
  /** What is said where it is so, and where it is not. */
  const either =
    (label: string, yes: string | null, no: string | null): Line =>
    (value) =>
      typeof value === "boolean" ? [label, value ? yes : no] : undefined;

  const id = (value: string) => <Copy value={value} />;
  const chain = text(t("record.chain"), (value) => <ChainName of={value} />);
  const moment = (label: string) => text(label, (at) => <Moment at={at} />);
  const since = moment(t("common:list.from"));
  const until = moment(t("common:list.until"));
  const merchant = text(t("record.merchant"), (merchantId) => <Merchant merchantId={merchantId} />);
  const agrees = either(t("audit.result"), t("audit.agrees"), t("audit.differs"));

  const all = {
    audit_verification: {
      asked: {},
      became: {
        agrees,
        seals: number(t("audit.seals")),
        entries: number(t("audit.entries")),
        waiting: number(t("audit.waiting")),
        problems: names(t("audit.problems"), (problems) => <Sentences of={problems} />),
        compared_with_file: either(t("audit.sealsFile"), t("audit.withFile"), t("audit.withoutFile")),
      },
    },
    reconcile: {
      asked: { chains: names(t("nav.chains"), (chains) => showList(chains.map(chainName), i18n.language)) },
      became: {
        agrees,
        chains: (value) =>
          isObject(value) && Object.values(value).every(isCompared)
            ? Object.entries(value as Readonly<Record<string, ComparedChain>>).map(([name, one]): Fact => [
                chainName(name),
                <Compared key={name} of={one} />,
              ])
            : undefined,
      },
    },
    rescan: {
      asked: {
        chain,
        first: number(t("rescan.from")),
        last: number(t("rescan.to"), asked.open_end === true ? t("jobs.openEnd") : undefined),
        open_end: (value) => (typeof value === "boolean" ? null : undefined),
      },
      became: {
        fromHeight: number(t("rescan.from")),
        toHeight: number(t("rescan.to")),
        blocks: number(t("jobs.blocks")),
        deposits: number(t("jobs.deposits")),
        depositIds: names(t("nav.deposits"), (ids) => (
          <ul>
            {ids.map((one) => (
              <li key={one}>
                <Id value={one} page={pageOf(one)} />
              </li>
            ))}
          </ul>
        )),
      },
    },
    statement_export: {
      asked: { merchant_id: merchant, since, until },
      became: {
        entries: number(t("jobs.lines")),
        complete: either(t("record.state"), null, t("jobs.isCut")),
        mediaType: text(t("jobs.format"), (value) => <code>{value}</code>),
        encoding: text(t("jobs.packed"), (value) => <code>{value}</code>),
      },
    },
    tracker_history: {
      asked: {
        chain,
        scope: (value) =>
          typeof value === "number"
            ? [t("common:mode.title"), t(value === 0 ? "common:mode.live" : "common:mode.sandbox")]
            : undefined,
      },
      became: { readBlock: number(t("chains.height")) },
    },
    webhook_redelivery: {
      asked: {
        since,
        until,
        merchant_id: merchant,
        project_id: text(t("record.project"), id),
        endpoint_id: text(t("common:endpoint.one"), id),
        events: names(t("common:events.title"), (events) => showList(events, i18n.language)),
        most: number(t("jobs.most")),
      },
      became: { queued: number(t("jobs.deliveries")), more: either(t("record.state"), t("jobs.moreLeft"), null) },
    },
  } satisfies Record<Job["kind"], Known>;
  // A later gateway's kind is not among them.
  return (all as Partial<Record<string, Known>>)[kind] ?? { asked: {}, became: {} };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function Numbered({ value, besides }: { readonly value: number; readonly besides: ReactNode }) {
  const { i18n } = useWords();
  return (
    <>
      <span className="number">{numbers(i18n.language).format(value)}</span>
      {besides !== undefined && <span className="muted"> · {besides}</span>}
    </>
  );
}

function Copy({ value }: { readonly value: string }) {
  return (
    <Copyable text={value}>
      <code>{value}</code>
    </Copyable>
  );
}

/** A merchant by name, where the reader may see it. */
function Merchant({ merchantId }: { readonly merchantId: string }) {
  const { data } = useQuery({ ...merchantQuery(merchantId), enabled: usePermitted("merchants.read") });
  return <MerchantLink of={{ merchantId, merchantName: data?.merchant.name ?? null }} />;
}

function Sentences({ of }: { readonly of: readonly string[] }) {
  return (
    <ul>
      {of.map((one) => (
        <li key={one}>
          <Quoted words={one} />
        </li>
      ))}
    </ul>
  );
}

type ComparedChain =
  { readonly problem: string; readonly problemCode: string } | { readonly differing: number; readonly height: number };

function isCompared(value: unknown): value is ComparedChain {
  if (!isObject(value)) return false;
  if (typeof value.problem === "string") return typeof value.problemCode === "string";
  return typeof value.differing === "number" && typeof value.height === "number";
}

/** What came of comparing one chain. */
function Compared({ of }: { readonly of: ComparedChain }) {
  const { t } = useWords();
  if ("problem" in of) return <Trouble code={of.problemCode} words={of.problem} />;
  return (
    <>
      {of.differing === 0 ? t("reconcile.agrees") : `${t("reconcile.differences")}: ${of.differing}`}{" "}
      <span className="muted">
        · {t("record.block")} <Height value={of.height} />
      </span>
    </>
  );
}
