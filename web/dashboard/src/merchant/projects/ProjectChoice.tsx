import { Menu } from "@mantine/core";
import { useSuspenseQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";

import { useRoutePath } from "../../ui/address";
import { OpenMenu } from "../../ui/OpenMenu";
import type { MenuOf } from "../../ui/useMenu";
import { usePermitted } from "../project";
import { projectsQuery, type Project } from "../queries";

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

interface ProjectChoiceProps {
  readonly project: Project | null;
  readonly menu: MenuOf;
}

/** All projects of the merchant, and a new one. */
export function ProjectChoice({ project, menu }: ProjectChoiceProps) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const mayAdd = usePermitted("projects.add");
  const path = useRoutePath();
  const { data: projects } = useSuspenseQuery(projectsQuery);
  return (
    <OpenMenu of={menu} position="bottom-start" width={260}>
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
    </OpenMenu>
  );
}
