import { CopyButton } from "../../ui/CopyButton";
import { Facts, Section, type Fact } from "../../ui/Page";
import { useWords, type Schemas } from "../api";

import { useKnownOf } from "./known";

type Job = Schemas["JobView"];

/** What was asked for, by name. */
export function Asked({ job }: { readonly job: Job }) {
  const { t } = useWords();
  const known = useKnownOf(job).asked;
  const mode: Fact = [t("common:mode.title"), job.mode === null ? null : t(`common:mode.${modeOf(job.mode)}`)];
  return <Told title={t("jobs.arguments")} value={job.arguments} known={known} besides={[mode]} />;
}

/** What came of it, by name. */
export function Became({ job }: { readonly job: Job }) {
  const { t } = useWords();
  const known = useKnownOf(job).became;
  return job.result === null ? null : <Told title={t("jobs.result")} value={job.result} known={known} />;
}

function modeOf(mode: string): "live" | "sandbox" {
  return mode === "sandbox" ? "sandbox" : "live";
}

/**
 * What a value is called and how it is shown; null where it says nothing that has to be read, and undefined where it is
 * not what was expected.
 */
export type Line = (value: unknown) => Fact | readonly Fact[] | null | undefined;
export type Lines = Readonly<Record<string, Line>>;

interface ToldProps {
  readonly title: string;
  readonly value: Readonly<Record<string, unknown>>;
  readonly known: Lines;
  readonly besides?: readonly Fact[];
}

/** Facts, and as the API writes it whatever else there is, such as of a later gateway's. All of it can be copied. */
function Told({ title, value, known, besides = [] }: ToldProps) {
  const facts: Fact[] = [...besides];
  const rest: Record<string, unknown> = {};
  // The API keeps no order of its own: what is known is told in the order in which it is read.
  const names = [...Object.keys(known).filter((name) => name in value), ...Object.keys(value)];
  for (const name of new Set(names)) {
    const one = value[name];
    const line = known[name]?.(one);
    if (line === undefined) rest[name] = one;
    else if (line !== null) facts.push(...(isFact(line) ? [line] : line));
  }
  const shown = facts.filter(([, one]) => one !== null);
  const hasRest = Object.keys(rest).length > 0;
  if (shown.length === 0 && !hasRest) return null;
  return (
    <Section title={title} actions={<CopyButton text={written(value)} of={title} />}>
      <div className="stack">
        {shown.length > 0 && <Facts facts={shown} />}
        {hasRest && (
          <pre className="code" tabIndex={0}>
            {written(rest)}
          </pre>
        )}
      </div>
    </Section>
  );
}

function isFact(line: Fact | readonly Fact[]): line is Fact {
  return typeof line[0] === "string";
}

function written(value: object): string {
  return JSON.stringify(value, null, 2);
}
