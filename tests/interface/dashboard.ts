// What a merchant's dashboard does with the client that is made of its description: see merchant.ts.
import createClient from "openapi-fetch";
import type { components, operations, paths } from "described/dashboard";

const client = createClient<paths, "application/json">({ baseUrl: "https://pay.example.com" });

type Is<Found, Wanted> = [Found] extends [Wanted] ? ([Wanted] extends [Found] ? true : false) : false;
const is = <Claim extends true>(): Claim => true as Claim;

is<Is<components["schemas"]["MemberView"]["role"], "owner" | "admin" | "finance" | "developer" | "viewer">>();
type PayoutStatus = "requested" | "processing" | "broadcast" | "completed" | "failed" | "cancelling" | "cancelled";
is<Is<components["schemas"]["PayoutView"]["status"], PayoutStatus>>();
is<Is<components["schemas"]["TransactionView"]["from"], "available" | "pending" | "held" | "receivable" | null>>();
is<Is<components["schemas"]["PayoutView"]["waitsFor"], string | null>>();
type Codes = operations["signIn"]["responses"][401]["content"]["application/json"]["code"];
is<Is<Codes, "INVALID_CREDENTIALS" | "TWO_FACTOR_REQUIRED" | "TWO_FACTOR_INVALID">>();

export async function enter(email: string, password: string): Promise<string> {
  const { data, error } = await client.POST("/api/auth/login", { body: { email, password } });
  if (error?.code === "TWO_FACTOR_REQUIRED") return "ask for a code";
  return data === undefined ? error.error : data.accessToken;
}

export async function everyPayment(projectId: string): Promise<readonly components["schemas"]["PaymentView"][]> {
  const found: components["schemas"]["PaymentView"][] = [];
  let cursor: string | null | undefined;
  do {
    const { data } = await client.GET("/api/dashboard/projects/{projectId}/payments", {
      params: { path: { projectId }, query: { limit: 100, ...(cursor == null ? {} : { cursor }) } },
    });
    found.push(...(data?.payments ?? []));
    cursor = data?.nextCursor;
  } while (cursor);
  return found;
}

void client.PATCH("/api/dashboard/members/{memberId}", {
  params: { path: { memberId: "mem_1" } },
  body: { role: "finance", projectIds: null },
});
void client.PATCH("/api/dashboard/members/{memberId}", {
  params: { path: { memberId: "mem_1" } },
  // @ts-expect-error no member has such a role
  body: { role: "emperor" },
});
// @ts-expect-error whose it is must be said
void client.GET("/api/dashboard/projects/{projectId}/payments");

// What is streamed is text, which the page reads itself.
type Stream = operations["streamChanges"]["responses"][200]["content"]["text/event-stream"];
is<Is<Stream, string>>();
