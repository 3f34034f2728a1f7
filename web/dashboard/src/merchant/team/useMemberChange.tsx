import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { ChangedMeanwhile, useBegun } from "../../ui/Changed";
import { numbers, showList } from "../../ui/format";
import { api, unwrap } from "../api";
import { projectsQuery, type Schemas } from "../queries";

import { membersQuery, type Member } from "./queries";

/** Return what says which projects are open to a member: by their names, or how many, where not all names are known. */
export function useProjectsText(): (projectIds: Member["projectIds"]) => string {
  const { t, i18n } = useTranslation();
  const { data: projects = [] } = useQuery(projectsQuery);
  return (projectIds) => {
    if (projectIds === null) return t("team.allProjects");
    const names = projects.filter((one) => projectIds.includes(one.projectId)).map((one) => one.name);
    const isAll = names.length === projectIds.length;
    return isAll ? showList(names, i18n.language) : numbers(i18n.language).format(projectIds.length);
  };
}

interface MemberChange {
  /** Has what is so now be what is changed: a dialog that is mounted while it is open begins with that by itself. */
  readonly begin: () => void;
  readonly change: (what: Omit<Schemas["ChangeMember"], "version">) => Promise<void>;
  /** What somebody else changed meanwhile, once a change was refused for it. */
  readonly meanwhile: ReactNode;
}

/**
 * Changes a member by the version that the dialog began with. The list is read again while the dialog is open: by the newest
 * version, whoever confirms would put back, unseen, what somebody else has just taken away.
 */
export function useMemberChange(member: Member): MemberChange {
  const { t } = useTranslation();
  const client = useQueryClient();
  const shown = useProjectsText();
  const { memberId } = member;
  const { begin, send, changed } = useBegun({
    now: member,
    told: ({ role, projectIds }) => [
      { key: "role", title: t("team.role"), value: role, text: t(`role.${role}`) },
      { key: "projects", title: t("team.projects"), value: projectIds, text: shown(projectIds) },
    ],
    readAgain: async () => {
      const members = await client.query({ ...membersQuery, staleTime: 0 });
      return members.find((one) => one.memberId === memberId) ?? member;
    },
  });
  return {
    begin,
    change: async (what) => {
      const params = { path: { memberId } };
      await send(({ version }) =>
        unwrap(api.PATCH("/api/dashboard/members/{memberId}", { params, body: { version, ...what } })),
      );
      void client.invalidateQueries(membersQuery);
    },
    meanwhile: <ChangedMeanwhile changed={changed} />,
  };
}
