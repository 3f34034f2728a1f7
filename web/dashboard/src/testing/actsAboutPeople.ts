/** What operators do about merchants, and about who runs the gateway. */
import type { Act } from "./acts";

const NAME = "Ada's Shop";
const REASON = { Reason: "It is late." } as const;
const reason = "It is late.";
const MERCHANT = { route: "/merchants/$merchantId", id: "mer_1x0c9v" } as const;

/** A person whom the one who looks is not. */
const OTHER_SESSION = {
  sessionId: "ses_2",
  ip: null,
  userAgent: null,
  lastUsedAt: "2026-01-31T12:00:00.000Z",
  current: false,
};

const person = (changed: object = {}) => ({
  "/operators": {
    operators: [
      {
        operatorId: "opr_2",
        email: "bob@gateway.example",
        name: "Bob",
        role: "support",
        hasTwoFactor: true,
        disabledAt: null,
        createdAt: "2026-01-31T12:00:00.000Z",
        ...changed,
      },
    ],
  },
});
export const ABOUT_PEOPLE: readonly Act[] = [
  // Merchants.
  {
    route: "/merchants",
    press: "Add a merchant",
    says: "sets the password, and signs in",
    filled: { Name: "Bob's", "E-mail": "bob@shop.example" },
    asks: "POST /api/admin/merchants",
    body: { name: "Bob's", email: "bob@shop.example", live: false },
  },
  {
    ...MERCHANT,
    press: "Take live mode back",
    says: "the merchant can still withdraw",
    asks: "PUT /api/admin/merchants/mer_1x0c9v",
    body: { live: false },
  },
  {
    ...MERCHANT,
    press: "Grant live mode",
    others: { "/mer_1x0c9v": { merchant: { live: false } } },
    says: "Real money can be taken and paid out",
    asks: "PUT /api/admin/merchants/mer_1x0c9v",
    body: { live: true },
  },
  {
    ...MERCHANT,
    press: "Sign out everywhere",
    says: "API keys go on working.",
    asks: "DELETE /api/admin/merchants/mer_1x0c9v/sessions",
  },
  {
    ...MERCHANT,
    press: "Suspend",
    says: "what waits to be sent waits",
    filled: { [`Type ${NAME} to confirm`]: NAME, ...REASON },
    asks: "POST /api/admin/merchants/mer_1x0c9v/suspend",
    body: { reason },
  },
  {
    ...MERCHANT,
    press: "Reinstate",
    others: { "/mer_1x0c9v": { merchant: { suspendedAt: "2026-01-31T12:00:00.000Z" } } },
    says: "what waited is sent",
    asks: "POST /api/admin/merchants/mer_1x0c9v/reinstate",
  },
  {
    ...MERCHANT,
    press: "Grant credits",
    says: "Once for each reference, however often it is asked for.",
    filled: { "Usage credits": "500", "Reference, such as an invoice's number": "inv-7" },
    asks: "POST /api/admin/merchants/mer_1x0c9v/credits",
    body: { amount: 500, mode: "live", reference: "inv-7" },
  },
  {
    ...MERCHANT,
    press: "Take away",
    says: "What holds for everybody holds again.",
    asks: "PUT /api/admin/merchants/mer_1x0c9v/limits",
    body: { limits: {}, version: 7 },
  },
  // People.
  {
    route: "/people",
    press: "Invite somebody",
    says: "Whoever opens it first sets the password",
    filled: { Name: "Eva", "E-mail": "eva@gateway.example" },
    chosen: { Role: "Auditor" },
    asks: "POST /api/admin/operators",
    body: { name: "Eva", email: "eva@gateway.example", role: "auditor" },
  },
  {
    route: "/people",
    press: "Role",
    others: person(),
    says: "Change the role of Bob?",
    chosen: { Role: "Owner" },
    asks: "PATCH /api/admin/operators/opr_2",
    body: { role: "owner" },
  },
  {
    route: "/people",
    press: "New link",
    others: person(),
    says: "An earlier link no longer works.",
    asks: "POST /api/admin/operators/opr_2/link",
  },
  {
    route: "/people",
    press: "Reset second factor",
    others: person(),
    says: "Be sure who asks.",
    asks: "POST /api/admin/operators/opr_2/two-factor/reset",
  },
  {
    route: "/people",
    press: "Disable",
    others: person(),
    says: "Sessions end at once.",
    asks: "POST /api/admin/operators/opr_2/disable",
  },
  {
    route: "/people",
    press: "Enable",
    others: person({ disabledAt: "2026-01-31T12:00:00.000Z" }),
    says: "The password and the second factor are as they were.",
    asks: "POST /api/admin/operators/opr_2/enable",
  },
  {
    route: "/security",
    press: "End all others",
    others: { "/auth/sessions": { sessions: [OTHER_SESSION] } },
    says: "Everywhere else you are signed out at once and have to sign in again. This session stays.",
    asks: "DELETE /api/admin/auth/sessions",
  },
];
