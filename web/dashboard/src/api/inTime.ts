/** Requests that end: where no answer has come in a time, an error says whether the request may be sent again. */
import { ApiError } from "./errors";

/** What only reads is asked again soon; what acts may have to wait for others. */
const READ_MS = 30_000;
const ACT_MS = 60_000;

interface Limit {
  readonly limitMs?: number;
  /** Sent once more, it does no more than sent once. */
  readonly isRepeatable?: boolean;
}

/**
 * Return a `fetch` whose answer has come within a time, body and all. Otherwise it throws an ApiError: `TIMEOUT` for what
 * may be sent again, `NO_ANSWER` for what may have been done.
 */
export function inTime(
  send: typeof fetch = (...request) => fetch(...request),
  { limitMs, isRepeatable }: Limit = {},
): typeof fetch {
  return (input, init) =>
    new Promise((resolve, reject) => {
      const method = input instanceof Request ? input.method : (init?.method ?? "GET");
      const isRead = method === "GET" || method === "HEAD";
      const ended = new AbortController();
      const timer = setTimeout(
        () => {
          reject(noAnswer(isRepeatable ?? isRead));
          ended.abort();
        },
        limitMs ?? (isRead ? READ_MS : ACT_MS),
      );
      const given = input instanceof Request ? input.signal : init?.signal;
      given?.addEventListener("abort", () => {
        ended.abort();
      });
      if (given?.aborted === true) ended.abort();
      const { signal } = ended;
      const sent = input instanceof Request ? send(new Request(input, { signal })) : send(input, { ...init, signal });
      void sent
        .then(whole)
        .then(resolve, reject)
        .finally(() => {
          clearTimeout(timer);
        });
    });
}

function noAnswer(isRepeatable: boolean): ApiError {
  return isRepeatable
    ? new ApiError(0, "TIMEOUT", "The gateway did not answer in time.")
    : new ApiError(0, "NO_ANSWER", "No answer came in time. It may have been done all the same.");
}

const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** Read an answer to its end. */
async function whole(answer: Response): Promise<Response> {
  if (WITHOUT_BODY.has(answer.status)) return answer;
  const { status, statusText, headers } = answer;
  return new Response(await answer.arrayBuffer(), { status, statusText, headers });
}
