import { Checkbox } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Choice } from "../../ui/Choice";
import { Confirm } from "../../ui/Confirm";
import { useOpened } from "../../ui/useOpened";
import { projectsQuery } from "../queries";

import { mayBeLimited, type Member } from "./queries";
import { useMemberChange, useProjectsText } from "./useMemberChange";

/** Projects by their ids; null for all of them, also those that are made later. */
export type Opened = readonly string[] | null;

/** Say whether nothing was chosen yet of what is to be opened. */
export function isUnchosen(opened: Opened): boolean {
  return opened?.length === 0;
}

interface OpenProjectsProps {
  readonly member: Member;
  readonly mayManage: boolean;
}

/** Which projects are open to a member, and choosing others. */
export function OpenProjects({ member, mayManage }: OpenProjectsProps) {
  const { open, close, opener } = useOpened<"projects">();
  const shown = useProjectsText()(member.projectIds);
  const mayChange = mayManage && mayBeLimited(member.role);
  if (!mayChange) return shown;
  return (
    <>
      {opener("projects", shown)}
      {open !== null && <Change member={member} onClose={close} />}
    </>
  );
}

function Change({ member, onClose }: { readonly member: Member; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const [opened, setOpened] = useState<Opened>(member.projectIds);
  const { change, meanwhile } = useMemberChange(member);
  return (
    <Confirm
      title={t("team.projectsTitle", { name: member.name })}
      act={t(opened === null ? "team.projectsAllAct" : "team.projectsAct")}
      isBlocked={isUnchosen(opened)}
      onConfirm={() => change({ projectIds: opened === null ? null : [...opened] })}
      onClose={onClose}
    >
      {meanwhile}
      <ProjectChoice opened={opened} onOpened={setOpened} />
    </Confirm>
  );
}

interface ProjectChoiceProps {
  readonly opened: Opened;
  readonly onOpened: (opened: Opened) => void;
}

/** Chooses all projects, or some: that none is ticked never stands for all. */
export function ProjectChoice({ opened, onOpened }: ProjectChoiceProps) {
  const { t } = useTranslation();
  const { data: projects = [] } = useQuery(projectsQuery);
  return (
    <div className="stack">
      <Choice
        label={t("team.projects")}
        value={opened === null ? "all" : "these"}
        options={[
          { value: "all", label: t("team.openAll") },
          { value: "these", label: t("team.openThese") },
        ]}
        onChoice={(choice) => {
          onOpened(choice === "all" ? null : (opened ?? []));
        }}
      />
      {opened === null ? (
        <p className="muted">{t("team.openAllWords")}</p>
      ) : (
        <Checkbox.Group
          label={t("team.projects")}
          description={t("team.openTheseWords")}
          value={[...opened]}
          onChange={onOpened}
        >
          <div className="choices">
            {projects.map((one) => (
              <Checkbox key={one.projectId} value={one.projectId} label={`${one.name} · ${t(`mode.${one.mode}`)}`} />
            ))}
          </div>
        </Checkbox.Group>
      )}
    </div>
  );
}
