import { Checkbox } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";

import { Confirm } from "../../ui/Confirm";
import { numbers, showList } from "../../ui/format";
import { useOpened } from "../../ui/useOpened";
import { api, unwrap } from "../api";
import { projectsQuery } from "../queries";

import { membersQuery, type Member } from "./queries";

/** Which projects are open to a member, and choosing others. */
export function OpenProjects({ member, mayChange }: { readonly member: Member; readonly mayChange: boolean }) {
  const { t, i18n } = useTranslation();
  const { open, close, opener } = useOpened<"projects">();
  const { data: projects = [] } = useQuery(projectsQuery);
  const { projectIds } = member;
  if (projectIds === null && !mayChange) return t("team.allProjects");
  const names = projects.filter((one) => projectIds?.includes(one.projectId)).map((one) => one.name);
  const shown =
    projectIds === null
      ? t("team.allProjects")
      : names.length === projectIds.length
        ? showList(names, i18n.language)
        : numbers(i18n.language).format(projectIds.length);
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
  const client = useQueryClient();
  const [chosen, setChosen] = useState<readonly string[]>(member.projectIds ?? []);
  return (
    <Confirm
      title={t("team.projectsTitle", { name: member.name })}
      act={t("team.projectsAct")}
      onConfirm={async () => {
        const params = { path: { memberId: member.memberId } };
        const body = { version: member.version, projectIds: chosen.length === 0 ? null : [...chosen] };
        await unwrap(api.PATCH("/api/dashboard/members/{memberId}", { params, body }));
        void client.invalidateQueries(membersQuery);
      }}
      onClose={onClose}
    >
      <ProjectChoice chosen={chosen} onChosen={setChosen} />
    </Confirm>
  );
}

interface ProjectChoiceProps {
  readonly chosen: readonly string[];
  readonly onChosen: (projectIds: readonly string[]) => void;
}

/** Chooses projects; none are all of them, also those that are made later. */
export function ProjectChoice({ chosen, onChosen }: ProjectChoiceProps) {
  const { t } = useTranslation();
  const { data: projects = [] } = useQuery(projectsQuery);
  return (
    <Checkbox.Group
      label={t("team.projects")}
      description={t("team.projectsWords")}
      value={[...chosen]}
      onChange={onChosen}
    >
      <div className="choices">
        {projects.map((one) => (
          <Checkbox key={one.projectId} value={one.projectId} label={`${one.name} · ${t(`mode.${one.mode}`)}`} />
        ))}
      </div>
    </Checkbox.Group>
  );
}
