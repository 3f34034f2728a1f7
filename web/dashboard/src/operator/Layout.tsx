import { useSuspenseQuery } from "@tanstack/react-query";
import { Outlet, useNavigate } from "@tanstack/react-router";

import { ChainNames } from "../ui/ChainName";
import { Shell } from "../ui/Shell";
import { useLive } from "../ui/useLive";
import { UserMenu } from "../ui/UserMenu";

import { operatorSession, useWords } from "./api";
import styles from "./Layout.module.css";
import { useNav } from "./nav";
import { meQuery, useChainOptions } from "./queries";
import { touches } from "./touches";
import { useFinder } from "./useFinder";

/** What stands around an operator's pages. */
export function Layout() {
  const { t } = useWords();
  const navigate = useNavigate();
  const nav = useNav();
  const chains = useChainOptions();
  const isTold = useLive("/api/admin/stream", operatorSession, touches);
  const { operator } = useSuspenseQuery(meQuery).data;
  const finder = useFinder();
  const security = () => void navigate({ to: "/security" });
  const commands = [
    ...nav.flatMap((group) =>
      group.items.map((item) => ({ id: item.to, label: item.label, run: () => void navigate({ to: item.to }) })),
    ),
    { id: "security", label: t("common:security.title"), run: security },
    { id: "sign-out", label: t("common:user.signOut"), run: () => void operatorSession.end() },
  ];
  return (
    <Shell
      nav={nav}
      commands={commands}
      finder={finder}
      isTold={isTold}
      session={operatorSession}
      head={
        <div className={styles.head}>
          <img src="/dashboard-assets/mark.svg" alt="" width="28" height="28" />
          <span>
            <b>Cambist</b>
            <br />
            <span className="muted">{t("gateway")}</span>
          </span>
        </div>
      }
      user={
        <UserMenu person={operator} role={t(`role.${operator.role}`)} session={operatorSession} onSecurity={security} />
      }
    >
      <ChainNames chains={chains}>
        <Outlet />
      </ChainNames>
    </Shell>
  );
}
