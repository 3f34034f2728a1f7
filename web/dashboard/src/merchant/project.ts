import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useMemo } from "react";

import { usePathPart } from "../ui/address";

import { chainsQuery, meQuery, projectsQuery, type Member, type Project } from "./queries";

/** Return the id of the project in the page's address. */
export function useProjectId(): string {
  return usePathPart("projectId");
}

/** Return the project in the page's address; null for one that is not open to whoever is signed in. */
export function useProject(): Project | null {
  const projectId = useProjectId();
  const { data } = useSuspenseQuery(projectsQuery);
  return data.find((one) => one.projectId === projectId) ?? null;
}

/**
 * Say whether all that the merchant has in the project's mode is this project's: what is the merchant's names no project.
 * Of a member to whom some are open nobody can say so.
 */
export function useIsOnlyOne(): boolean {
  const mode = useProject()?.mode;
  const { member } = useSuspenseQuery(meQuery).data;
  const { data } = useSuspenseQuery(projectsQuery);
  return member.projectIds === null && data.filter((one) => one.mode === mode).length === 1;
}

/** Return what asks for the chains that the project can name. */
export function useChains() {
  const mode = useProject()?.mode ?? "live";
  return useQuery(chainsQuery(mode));
}

/** Return them as filters offer them; none while they are not there. */
export function useChainOptions(): readonly { readonly value: string; readonly label: string }[] {
  const { data } = useChains();
  return useMemo(() => (data ?? []).map((one) => ({ value: one.chain, label: one.name })), [data]);
}

type Permission = Member["permissions"][number];

/** Say whether the member's role permits something. The API refuses the rest; pages do not offer it. */
export function usePermitted(permission: Permission): boolean {
  return useSuspenseQuery(meQuery).data.permissions.includes(permission);
}
