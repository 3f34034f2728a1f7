import { useSuspenseQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { ChainNames } from "../ui/ChainName";
import { Empty } from "../ui/Feedback";
import type { Command } from "../ui/Palette";
import { Shell } from "../ui/Shell";
import { useLive } from "../ui/useLive";
import { UserMenu } from "../ui/UserMenu";

import { merchantSession } from "./api";
import { InMode } from "./InMode";
import { useNav } from "./nav";
import { useChainOptions, usePermitted, useProject } from "./project";
import styles from "./ProjectLayout.module.css";
import { ProjectSwitch } from "./projects/ProjectSwitch";
import { meQuery } from "./queries";
import { touches } from "./touches";
import { useFinder } from "./useFinder";

/** What stands around the pages of one project. */
export function ProjectLayout() {
  const { t } = useTranslation();
  const project = useProject();
  const navigate = useNavigate();
  const mayAdd = usePermitted("projects.add");
  const nav = useNav(project);
  const chains = useChainOptions();
  const finder = useFinder(project);
  const isTold = useLive("/api/dashboard/stream", merchantSession, touches);
  const commands: readonly Command[] = [
    ...nav.flatMap((group) =>
      group.items.map((item) => ({ id: item.to, label: item.label, run: () => void navigate({ to: item.to }) })),
    ),
    ...(project === null
      ? []
      : [
          {
            id: "new-payment",
            label: t("payments.new"),
            run: () => void navigate({ to: `/${project.projectId}/payments/new` }),
          },
        ]),
    ...(mayAdd
      ? [{ id: "new-project", label: t("projects.new"), run: () => void navigate({ to: "/projects/new" }) }]
      : []),
    { id: "sign-out", label: t("user.signOut"), run: () => void merchantSession.end() },
  ];
  return (
    <Shell
      nav={nav}
      commands={commands}
      finder={finder}
      isTold={isTold}
      session={merchantSession}
      head={<ProjectSwitch project={project} />}
      place={<InMode />}
      user={<User />}
      band={project?.mode === "sandbox" ? <SandboxBand /> : undefined}
    >
      <ChainNames chains={chains}>{project === null ? <NotOpen /> : <Outlet />}</ChainNames>
    </Shell>
  );
}

/** A project of somebody else's, or of nobody's, and the way to one that is open. */
function NotOpen() {
  const { t } = useTranslation();
  return (
    <Empty title={t("projects.notOpen")}>
      <Link to="/">{t("notFound.home")}</Link>
    </Empty>
  );
}

function SandboxBand() {
  const { t } = useTranslation();
  return (
    <div className={styles.band} role="note">
      <b>{t("mode.sandbox")}</b> {t("mode.sandboxWords")}
    </div>
  );
}

function User() {
  const { t } = useTranslation();
  const { member } = useSuspenseQuery(meQuery).data;
  return <UserMenu person={member} role={t(`role.${member.role}`)} session={merchantSession} />;
}
