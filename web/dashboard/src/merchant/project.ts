import { useSuspenseQuery } from "@tanstack/react-query";

import { usePathPart } from "../ui/address";

import { meQuery, projectsQuery, type Member, type Project } from "./queries";

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

type Permission = Member["permissions"][number];

/** Say whether the member's role permits something. The API refuses the rest; pages do not offer it. */
export function usePermitted(permission: Permission): boolean {
  return useSuspenseQuery(meQuery).data.permissions.includes(permission);
}
