import { UnstyledButton } from "@mantine/core";
import { useTranslation } from "react-i18next";

import { None } from "../../ui/None";
import { onDemand } from "../../ui/onDemand";
import { useMenu } from "../../ui/useMenu";
import type { Project } from "../queries";

import { Mode } from "./Mode";
import styles from "./ProjectSwitch.module.css";

const Choice = onDemand(async () => (await import("./ProjectChoice")).ProjectChoice);

/** Which project the pages are about, live or sandbox, and the way to another one. */
export function ProjectSwitch({ project }: { readonly project: Project | null }) {
  const { t } = useTranslation();
  const { button, menu } = useMenu();
  return (
    <>
      <UnstyledButton {...button} className={styles.switch}>
        <span className="unseen">{t("projects.switch")}</span>
        <span className={styles.name}>{project?.name ?? <None />}</span>
        {project !== null && <Mode mode={project.mode} />}
      </UnstyledButton>
      {menu !== null && <Choice project={project} menu={menu} />}
    </>
  );
}
