import { queryOptions } from "@tanstack/react-query";

import { api, unwrap } from "../api";
import type { Schemas } from "../queries";

export type Member = Schemas["MemberView"];

const MEMBERS_MAX = 100;

export const ROLES = ["owner", "admin", "finance", "developer", "viewer"] as const;
export type Role = (typeof ROLES)[number];

export function isRole(text: string | null): text is Role {
  return ROLES.some((one) => one === text);
}

/** Return the roles that members with this one may give and take: the API lets owners alone make and change owners. */
export function rolesGivenBy(role: Role): readonly Role[] {
  return role === "owner" ? ROLES : ROLES.filter((one) => one !== "owner");
}

/** Say whether a role may have some of the projects alone: to owners and admins the API opens every one. */
export function mayBeLimited(role: Role): boolean {
  return role !== "owner" && role !== "admin";
}

/** A link that was made for somebody: it is shown once, and is for nobody else. */
export interface MadeLink {
  readonly name: string;
  readonly link: string;
}

export const membersQuery = queryOptions({
  queryKey: ["members"],
  queryFn: async ({ signal }) => {
    const params = { query: { limit: MEMBERS_MAX } };
    return (await unwrap(api.GET("/api/dashboard/members", { params, signal }))).members;
  },
});

export const invitationsQuery = queryOptions({
  queryKey: ["invitations"],
  queryFn: async ({ signal }) => {
    const params = { query: { limit: MEMBERS_MAX } };
    return (await unwrap(api.GET("/api/dashboard/invitations", { params, signal }))).invitations;
  },
});
