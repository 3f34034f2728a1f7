import { queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";

import { SESSIONS_MAX, SessionsSection } from "../../ui/SessionsSection";
import { api, unwrap } from "../api";

const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: async ({ signal }) => {
    const params = { query: { limit: SESSIONS_MAX } };
    return (await unwrap(api.GET("/api/auth/sessions", { params, signal }))).sessions;
  },
});

/** From where one is signed in. */
export function Sessions() {
  const client = useQueryClient();
  const query = useQuery(sessionsQuery);
  const changed = () => {
    void client.invalidateQueries(sessionsQuery);
  };
  return (
    <SessionsSection
      query={query}
      onEnd={async (sessionId) => {
        await unwrap(api.DELETE("/api/auth/sessions/{sessionId}", { params: { path: { sessionId } } }));
        changed();
      }}
      onEndOthers={async () => {
        await unwrap(api.DELETE("/api/auth/sessions"));
        changed();
      }}
    />
  );
}
