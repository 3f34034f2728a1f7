/** The members of a merchant's team, as the gateway tells of them. */
export const MEMBERS = "/api/dashboard/members";

export const ME = {
  memberId: "mem_1",
  name: "Ada",
  email: "ada@shop.example",
  role: "owner",
  version: 1,
  projectIds: null,
  hasTwoFactor: true,
};

export const BOB = { ...ME, memberId: "mem_2", name: "Bob", email: "bob@shop.example", role: "viewer", version: 7 };
