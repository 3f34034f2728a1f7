/** Clients of the API, whose types are generated from its own description, and what every request has in common. */
import createClient, { type Client } from "openapi-fetch";

import { learnTime } from "./clock";
import { ApiError, asApiError, errorOf } from "./errors";
import { inTime } from "./inTime";
import { newKey } from "./newKey";
import type { Session } from "./session";

/** Asks whoever sits there for a code; resolves to whether the session has stepped up. */
export type AskForStepUp = () => Promise<boolean>;

let askForStepUp: AskForStepUp = () => Promise.resolve(false);

/** Say who asks for a code: the dialog, once it is there. */
export function onStepUp(ask: AskForStepUp): void {
  askForStepUp = ask;
}

/**
 * Return a `fetch` that sends the session's token, renews it once when it is refused, and where the API wants a
 * step-up, asks for it and sends the request again. So no page knows which of its acts need a code.
 */
export function authorized(session: Session, send: typeof fetch = (...request) => fetch(...request)) {
  return async (request: Request): Promise<Response> => {
    const { state } = session;
    const token = await session.token();
    // What a page goes on to read while somebody signs in over it would count as guesses of whoever is at its address.
    const isRead = request.method === "GET" && session.isRefused;
    if (token === null && (state === "signed-in" || isRead)) throw hasEnded();
    let answer = await send(withToken(request, token));
    learnTime(answer);
    if (answer.status === 401 && token !== null && (await codeOf(answer)) !== "TWO_FACTOR_INVALID") {
      const renewed = await session.renew(token);
      if (renewed === null) throw hasEnded();
      answer = await send(withToken(request, renewed));
    }
    if (answer.status === 403 && (await codeOf(answer)) === "STEP_UP_REQUIRED" && (await askForStepUp())) {
      answer = await send(withToken(request, await session.token()));
    }
    return answer;
  };
}

/** The session ended before this was sent, or was refused for it: nothing was done. */
function hasEnded(): ApiError {
  return new ApiError(401, "SESSION_ENDED", "This session has ended. Sign in again.");
}

/** What has a key of its own, and what is remembered nowhere. */
const UNKEYED = /"(?:idempotencyKey|\w*[pP]assword)":/;

/** For so many milliseconds the same press is the same act where no answer came. Later, the same is meant once more. */
const REPEATED_MS = 15 * 60_000;

/** Under which key an act was sent that has no answer yet, and when (milliseconds of Unix time), by what it asks for. */
const unanswered = new Map<string, { key: string; sent: number }>();

/**
 * Return a `fetch` that sends what acts under an idempotency key, one for each press: a browser repeats a request by
 * itself when a connection breaks. Where no answer came, or none that says whether it was done, the same act is sent under
 * the same key again. A body that has a key of its own, or a password, is left alone.
 */
export function keyed(send: (request: Request) => Promise<Response>) {
  return async (request: Request): Promise<Response> => {
    if (request.method !== "POST") return send(request);
    const body = await request.clone().text();
    if (UNKEYED.test(body)) return send(request);
    const what = `${request.url} ${body}`;
    const before = unanswered.get(what);
    const key = before !== undefined && Date.now() - before.sent < REPEATED_MS ? before.key : newKey();
    unanswered.set(what, { key, sent: Date.now() });
    const copy = new Request(request, { headers: request.headers });
    copy.headers.set("Idempotency-Key", key);
    const answer = await send(copy);
    if (answer.status < 500) unanswered.delete(what);
    return answer;
  };
}

function withToken(request: Request, token: string | null): Request {
  const copy = request.clone();
  if (token !== null) copy.headers.set("Authorization", `Bearer ${token}`);
  return copy;
}

async function codeOf(answer: Response): Promise<string> {
  return (await errorOf(answer.clone())).code;
}

interface Answered<Data> {
  data?: Data;
  error?: unknown;
  response: Response;
}

/** Return what a request answered. Throws an ApiError for everything that is no success. */
export async function unwrap<Data>(request: Promise<Answered<Data>>): Promise<NonNullable<Data>> {
  let answered: Answered<Data>;
  try {
    answered = await request;
  } catch (error) {
    throw asApiError(error);
  }
  if (answered.data !== undefined && answered.data !== null) return answered.data;
  const { error, response } = answered;
  throw await errorOf(
    new Response(JSON.stringify(error ?? {}), { status: response.status, headers: response.headers }),
  );
}

/** Lists also answer as CSV, which `downloadCsv` asks for. */
type Json = "application/json";

/** Return a client of the API for whoever the session is of. */
export function clientOf<Paths extends object>(session: Session): Client<Paths, Json> {
  return createClient<Paths, Json>({ fetch: keyed(authorized(session, inTime())) });
}
