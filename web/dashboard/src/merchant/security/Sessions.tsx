import { SESSIONS_MAX, SessionsSection } from "../../ui/SessionsSection";
import { api, unwrap } from "../api";

/** From where one is signed in. */
export function Sessions() {
  return (
    <SessionsSection
      read={async (signal) => {
        const params = { query: { limit: SESSIONS_MAX } };
        return (await unwrap(api.GET("/api/auth/sessions", { params, signal }))).sessions;
      }}
      end={(sessionId) => unwrap(api.DELETE("/api/auth/sessions/{sessionId}", { params: { path: { sessionId } } }))}
      endOthers={() => unwrap(api.DELETE("/api/auth/sessions"))}
    />
  );
}
