import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import styles from "./Attention.module.css";
import { numbers } from "./format";
import { Section } from "./Page";
import { HAVE_MODES, merchantFilter, PLACES_OF, type Place } from "./places";
import { Said } from "./Said";
import type { NavGroup } from "./Shell";
import { Chip } from "./Status";
import { When } from "./When";

interface AttentionProps {
  /** The pages that the reader has; what is on one of them leads there. */
  readonly nav?: readonly NavGroup[];
  /** Of which mode all of it is, where pages show both. */
  readonly mode?: "live" | "sandbox";
  /** Whose all of it is, where pages show everybody's. */
  readonly merchantId?: string;
  readonly attention: readonly {
    readonly code: string;
    readonly message: string;
    readonly count: number;
    readonly since: string | null;
  }[];
}

/** What somebody should look at, the most pressing first. */
export function AttentionView({ attention, nav = [], mode }: AttentionProps) {
  const { t } = useTranslation();
  return (
    <Section title={t("overview.attention")}>
      {attention.length === 0 ? (
        <p>{t("overview.allWell")}</p>
      ) : (
        <AttentionList attention={attention} nav={nav} {...(mode === undefined ? {} : { mode })} />
      )}
    </Section>
  );
}

/** How many there are of each, what it is, and since when. */
export function AttentionList({ attention, nav = [], mode, merchantId }: AttentionProps) {
  const { t, i18n } = useTranslation();
  const number = numbers(i18n.language);
  const pages = nav.flatMap(({ items }) => items);
  return (
    <ul className="stack" aria-label={t("overview.attention")}>
      {attention.map((one) => (
        <li key={one.code} className={styles.attention}>
          <Chip tone="care">{number.format(one.count)}</Chip>
          <span>
            <Said of="attention" code={one.code} words={one.message} />{" "}
            {one.since !== null && (
              <span className="muted">
                <When at={one.since} />
              </span>
            )}
          </span>
          <span className={styles.places}>
            <Places of={PLACES_OF[one.code] ?? []} pages={pages} mode={mode} merchantId={merchantId} />
          </span>
        </li>
      ))}
    </ul>
  );
}

interface PlacesProps {
  readonly of: readonly Place[];
  readonly pages: NavGroup["items"];
  readonly mode: AttentionProps["mode"];
  readonly merchantId: string | undefined;
}

/** The pages that the reader has of these, each with the state that its list then shows. */
function Places({ of, pages, mode, merchantId }: PlacesProps) {
  const { t } = useTranslation();
  const links = of.flatMap(({ page, status, filters, part }) => {
    const found = pages.find(({ to }) => to.endsWith(`/${page}`));
    if (found === undefined) return [];
    const search = {
      ...(status === undefined ? {} : { status }),
      ...filters,
      ...(merchantId === undefined ? {} : { [merchantFilter(page)]: merchantId }),
      ...(mode === undefined || !HAVE_MODES.has(page) ? {} : { mode }),
    };
    return (
      <Link
        key={`${page} ${status ?? ""}`}
        to={found.to}
        search={search}
        {...(part === undefined ? {} : { hash: part })}
      >
        {found.label}
        {status !== undefined && ` · ${t(`status.${status}`)}`}
      </Link>
    );
  });
  return links;
}
