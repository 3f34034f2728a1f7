import { Menu, UnstyledButton } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { useRoutePath } from "../../ui/address";
import { usePermitted } from "../project";
import { projectsQuery, type Project } from "../queries";

import { Mode } from "./Mode";
import styles from "./ProjectSwitch.module.css";

const MODES = ["live", "sandbox"] as const;

/**
 * Return the page of another project that shows there what this one shows here. What is named by an id is this project's
 * own, so its list stands for it; only a sandbox has the page of that name.
 */
export function sameIn(path: string, other: Pick<Project, "projectId" | "mode">): string {
  const [, , ...parts] = path.split("/");
  const [first = "payments"] = parts;
  if (first === "sandbox" && other.mode !== "sandbox") return `/${other.projectId}/overview`;
  const page = parts.some((part) => part.startsWith("$")) ? first : parts.join("/");
  return `/${other.projectId}/${page === "" ? first : page}`;
}

/** Which project the pages are about, live or sandbox, and the way to another one. */
export function ProjectSwitch({ project }: { readonly project: Project | null }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const mayAdd = usePermitted("projects.add");
  const path = useRoutePath();
  const { data: projects } = useSuspenseQuery(projectsQuery);
  return (
    <Menu position="bottom-start" width={260}>
      <Menu.Target>
        <UnstyledButton className={styles.switch}>
          <span className="unseen">{t("projects.switch")}</span>
          <span className={styles.name}>{project?.name ?? "–"}</span>
          {project !== null && <Mode mode={project.mode} />}
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        {MODES.map((mode) => {
          const those = projects.filter((one) => one.mode === mode);
          return those.length === 0 ? null : (
            <div key={mode} role="group" aria-label={t(`mode.${mode}`)}>
              <Menu.Label>{t(`mode.${mode}`)}</Menu.Label>
              {those.map((one) => (
                <Menu.Item
                  key={one.projectId}
                  rightSection={one.projectId === project?.projectId ? "✓" : null}
                  onClick={() => void navigate({ to: sameIn(path, one) })}
                >
                  {one.name}
                </Menu.Item>
              ))}
            </div>
          );
        })}
        {mayAdd && <Menu.Divider />}
        {mayAdd && <Menu.Item onClick={() => void navigate({ to: "/projects/new" })}>{t("projects.new")}</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  );
}
