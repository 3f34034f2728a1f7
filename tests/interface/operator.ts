// What operators' pages do with the client that is made of their description: see merchant.ts.
import createClient from "openapi-fetch";
import type { components, paths } from "described/operator";

const client = createClient<paths, "application/json">({ baseUrl: "https://pay.example.com" });

type Is<Found, Wanted> = [Found] extends [Wanted] ? ([Wanted] extends [Found] ? true : false) : false;
const is = <Claim extends true>(): Claim => true as Claim;

is<Is<components["schemas"]["OperatorView"]["role"], "owner" | "operator" | "support" | "auditor">>();
is<Is<components["schemas"]["PlanView"]["cptPerMonth"], number | null>>();
is<Is<components["schemas"]["CollectionView"]["status"], "waiting" | "sending" | "done" | "failed">>();

export async function stop(): Promise<string> {
  const { data, error } = await client.PUT("/api/admin/settings", { body: { payoutEnabled: false } });
  if (error?.code === "STEP_UP_REQUIRED") return "ask for a code";
  return data === undefined ? error.error : String(data.payoutEnabled);
}

void client.POST("/api/admin/stakes", { body: { chain: "tron", action: "withdraw" } });
// @ts-expect-error nobody can do that with a stake
void client.POST("/api/admin/stakes", { body: { chain: "tron", action: "eat" } });
