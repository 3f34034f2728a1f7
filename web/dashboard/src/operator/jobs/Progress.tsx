import { useChainName } from "../../ui/ChainName";
import { numbers, showList } from "../../ui/format";
import { Meter } from "../../ui/Meter";
import { Facts, Section, type Fact } from "../../ui/Page";
import { useWords, type Schemas } from "../api";

type Job = Pick<Schemas["JobView"], "kind" | "arguments" | "progress">;

/** How far a job is: as a bar where it is known how much there is to do, else by what it has counted so far. */
export function Progress({ job }: { readonly job: Job }) {
  const { t } = useWords();
  const known = useKnown(job);
  const blocks = blocksOf(job);
  if (known.length === 0 && blocks === null) return null;
  return (
    <Section title={t("jobs.progress")}>
      <div className="stack">
        {blocks !== null && <Meter label={t("jobs.blocks")} {...blocks} />}
        {known.length > 0 && <Facts narrow facts={known} />}
      </div>
    </Section>
  );
}

/** Of the blocks that are to be read again, those that were. */
function blocksOf({ kind, arguments: asked, progress }: Job): { readonly value: number; readonly max: number } | null {
  const [first, last, height] = [asked.first, asked.last, progress.height];
  if (kind !== "rescan" || typeof first !== "number" || typeof last !== "number") return null;
  const read = typeof height === "number" && height >= first ? height - first + 1 : 0;
  return { value: read, max: last - first + 1 };
}

function useKnown({ kind, progress }: Job): readonly Fact[] {
  const { t, i18n } = useWords();
  const chainName = useChainName();
  const format = numbers(i18n.language);
  const count = (label: string, value: unknown): Fact => [
    label,
    typeof value === "number" ? format.format(value) : null,
  ];
  const all = {
    audit_verification: [count(t("audit.seals"), progress.seals), count(t("audit.entries"), progress.entries)],
    reconcile: [[t("jobs.compared"), showList(Object.keys(progress).map(chainName), i18n.language)]],
    rescan: [count(t("jobs.deposits"), progress.deposits)],
    statement_export: [count(t("jobs.lines"), progress.entries)],
    tracker_history: [count(t("chains.height"), progress.height)],
    webhook_redelivery: [count(t("jobs.deliveries"), progress.queued)],
  } satisfies Record<Job["kind"], readonly Fact[]>;
  // A later gateway's kind is not among them.
  const facts = (all as Partial<Record<string, readonly Fact[]>>)[kind] ?? [];
  return facts.filter(([, value]) => value !== null && value !== "");
}
