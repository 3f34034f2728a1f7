import { Burger } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, useRouterState } from "@tanstack/react-router";
import { useEffect, useRef, useSyncExternalStore, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import type { Session } from "../api/session";

import { onDemand } from "./onDemand";
import { Palette, type Command, type Finder } from "./Palette";
import { Preferences } from "./Preferences";
import { StillSignedIn } from "./StillSignedIn";
import styles from "./Shell.module.css";
import { useEver } from "./useEver";

const SideDrawer = onDemand(async () => (await import("./SideDrawer")).SideDrawer);

export interface NavItem {
  readonly to: string;
  readonly label: string;
  /** How many things want attention there. */
  readonly count?: number;
}

export interface NavGroup {
  readonly title?: string;
  readonly items: readonly NavItem[];
}

interface ShellProps {
  readonly nav: readonly NavGroup[];
  /** What stands above the navigation: the project, or the gateway. */
  readonly head: ReactNode;
  /** What of that is named in the header where the navigation is put away. */
  readonly place?: ReactNode;
  /** Who is signed in, and how to leave. */
  readonly user: ReactNode;
  readonly session: Session;
  /** What nobody may overlook, such as that this is the sandbox. */
  readonly band?: ReactNode;
  readonly commands: readonly Command[];
  readonly finder?: Finder;
  /** Whether the gateway tells what changes. */
  readonly isTold: boolean;
  readonly children: ReactNode;
}

/** What stands around every page: navigation, who one is, where one is. */
export function Shell({ nav, head, place, user, session, band, commands, finder, isTold, children }: ShellProps) {
  const { t } = useTranslation();
  const [isOpen, drawer] = useDisclosure();
  const wasOpen = useEver(isOpen);
  return (
    <div className={styles.shell}>
      <a href="#main" className={styles.skip}>
        {t("shell.skip")}
      </a>
      <aside className={styles.side}>
        <div className={styles.head}>{head}</div>
        <Navigation nav={nav} />
      </aside>
      <div className={styles.main}>
        <section className={styles.header} aria-label={t("shell.top")}>
          {band}
          <OfflineBand isTold={isTold} />
          <StillSignedIn session={session} />
          <div className={styles.top}>
            <Burger
              className={styles.burger}
              opened={isOpen}
              size="sm"
              onClick={drawer.toggle}
              aria-label={t("shell.menu")}
            />
            {place !== undefined && <span className={styles.place}>{place}</span>}
            <Palette commands={commands} finder={finder} />
            <span className={styles.space} />
            <Preferences />
            {user}
          </div>
        </section>
        <main id="main" tabIndex={-1} className={styles.content}>
          {children}
        </main>
      </div>
      {wasOpen && (
        <SideDrawer isOpen={isOpen} onClose={drawer.close}>
          <div className={styles.head}>{head}</div>
          <Navigation nav={nav} onChosen={drawer.close} />
        </SideDrawer>
      )}
    </div>
  );
}

function Navigation({ nav, onChosen }: { readonly nav: readonly NavGroup[]; readonly onChosen?: () => void }) {
  const { t } = useTranslation();
  const place = useRef<HTMLElement>(null);
  // Which link is that of the page is known once the page is there.
  const at = useRouterState({ select: ({ location, status }) => `${location.pathname} ${status}` });
  // There are more pages than a laptop has room for: where one is, is in sight.
  useEffect(() => {
    place.current?.querySelector("[data-active]")?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return (
    <nav ref={place} aria-label={t("shell.navigation")} className={styles.nav}>
      {nav.map((group, index) => (
        <div key={group.title ?? index}>
          {group.title !== undefined && <h2 className={styles.group}>{group.title}</h2>}
          <ul>
            {group.items.map((item) => (
              <li key={item.to}>
                <Link
                  to={item.to}
                  className={styles.item}
                  activeProps={{ "data-active": "true" }}
                  {...(onChosen === undefined ? {} : { onClick: onChosen })}
                >
                  {item.label}
                  {item.count !== undefined && item.count > 0 && <span className={styles.count}>{item.count}</span>}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  );
}

function subscribeOnline(listener: () => void): () => void {
  addEventListener("online", listener);
  addEventListener("offline", listener);
  return () => {
    removeEventListener("online", listener);
    removeEventListener("offline", listener);
  };
}

function OfflineBand({ isTold }: { readonly isTold: boolean }) {
  const { t } = useTranslation();
  const isOnline = useSyncExternalStore(subscribeOnline, () => navigator.onLine);
  if (isOnline && isTold) return null;
  return (
    <div role="status" className={styles.offline}>
      {t(isOnline ? "shell.untold" : "shell.offline")}
    </div>
  );
}
