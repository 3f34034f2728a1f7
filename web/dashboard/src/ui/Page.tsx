import { useEffect, type ReactNode } from "react";

import styles from "./Page.module.css";

interface PageProps {
  readonly title: string;
  /** What the tab is called, where that is more than the title. */
  readonly tab?: string;
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A page: its heading, what can be done there, and its sections. */
export function Page({ title, tab = title, lead, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${tab} · Cambist`;
  }, [tab]);
  return (
    <div className={styles.page}>
      <header className={styles.header}>
        <div className={styles.heading}>
          <h1>{title}</h1>
          {lead !== undefined && <div className={styles.lead}>{lead}</div>}
        </div>
        {actions !== undefined && <div className="row">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

interface SectionProps {
  readonly title?: string;
  /** By which an address leads to it. */
  readonly id?: string;
  readonly actions?: ReactNode;
  /** Let what is inside reach the edges: lists do. */
  readonly flush?: boolean;
  readonly children: ReactNode;
}

/** A card of a page. */
export function Section({ title, id, actions, flush = false, children }: SectionProps) {
  return (
    <section className={styles.section} id={id} aria-label={title}>
      {(title !== undefined || actions !== undefined) && (
        <header className={styles.sectionHeader}>
          {title !== undefined && <h2>{title}</h2>}
          {actions !== undefined && <div className="row">{actions}</div>}
        </header>
      )}
      <div className={flush ? undefined : styles.body}>{children}</div>
    </section>
  );
}

interface ContentsProps {
  readonly label: string;
  readonly parts: readonly { readonly id: string; readonly title: string }[];
}

/** Leads to the sections of a long page. Whoever comes with a section's address is led there once it is shown. */
export function Contents({ label, parts }: ContentsProps) {
  useEffect(() => {
    // The router looks for it before the page has what to show.
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }, []);
  return (
    <nav className={styles.contents} aria-label={label}>
      {parts.map(({ id, title }) => (
        <a key={id} href={`#${id}`}>
          {title}
        </a>
      ))}
    </nav>
  );
}

export type Fact = readonly [label: string, value: ReactNode];

interface FactsProps {
  readonly facts: readonly Fact[];
  /** Whether the values are short, such as numbers. */
  readonly narrow?: boolean;
}

/** Names and values. What has no value is left out. */
export function Facts({ facts, narrow = false }: FactsProps) {
  return <Named of={facts} className={narrow ? `${styles.facts ?? ""} ${styles.narrow ?? ""}` : styles.facts} />;
}

interface FiguresProps {
  readonly figures: readonly Fact[];
}

/** The few numbers that a page is read for, larger than all else. */
export function Figures({ figures }: FiguresProps) {
  return <Named of={figures} className={styles.figures} />;
}

function Named({ of, className }: { readonly of: readonly Fact[]; readonly className: string | undefined }) {
  return (
    <dl className={className}>
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
