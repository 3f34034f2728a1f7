/** Requests that end: where no answer has come in a time, an error says whether the request may be sent again. */
import { ApiError } from "./errors";

/** What only reads is asked again soon; what acts may have to wait for others. */
const READ_MS = 30_000;
const ACT_MS = 60_000;

/**
 * How the paths end of what is a POST and may be sent again all the same: it only reads, or lets somebody in who is then
 * let in twice.
 */
const REPEATABLE = /\/(quote|batch\/check|invitations\/read|auth\/login|auth\/sign-in)$/;

/** What proxies answer in the place of a gateway that got the request; it answers neither itself. */
const LOST_BEHIND_PROXY: ReadonlySet<number> = new Set([502, 504]);

interface Limit {
  readonly limitMs?: number;
  /** Sent once more, it does no more than sent once. */
  readonly isRepeatable?: boolean;
}

/**
 * Return a `fetch` whose answer has come within a time, body and all. Otherwise it throws an ApiError: `TIMEOUT` for what
 * may be sent again, `NO_ANSWER` for what may have been done. An act of which the connection breaks may have been done,
 * too, unless the browser had none to send it by.
 */
export function inTime(
  send: typeof fetch = (...request) => fetch(...request),
  { limitMs, isRepeatable }: Limit = {},
): typeof fetch {
  return (input, init) =>
    new Promise((resolve, reject) => {
      const { method, url } = input instanceof Request ? input : { method: init?.method ?? "GET", url: String(input) };
      const isRead = method === "GET" || method === "HEAD";
      const mayRepeat = isRepeatable ?? (isRead || REPEATABLE.test(pathOf(url)));
      const ended = new AbortController();
      const timer = setTimeout(
        () => {
          reject(noAnswer(mayRepeat));
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
      const answered = mayRepeat ? sent.then(whole) : ofAct(sent, () => given?.aborted === true);
      void answered.then(resolve, reject).finally(() => {
        clearTimeout(timer);
      });
    });
}

function noAnswer(isRepeatable: boolean): ApiError {
  return isRepeatable
    ? new ApiError(0, "TIMEOUT", "The gateway did not answer in time.")
    : new ApiError(0, "NO_ANSWER", "No answer came. It may have been done all the same.");
}

/** Return an act's answer to its end. Where none comes, it may have been done, unless there was nothing to send it by. */
async function ofAct(sent: Promise<Response>, isGivenUp: () => boolean): Promise<Response> {
  let mayBeDone = navigator.onLine;
  try {
    const answer = await sent;
    mayBeDone = true;
    const read = await whole(answer);
    if (!LOST_BEHIND_PROXY.has(read.status)) return read;
  } catch (error) {
    if (!mayBeDone || isGivenUp()) throw error;
  }
  throw noAnswer(false);
}

function pathOf(url: string): string {
  return new URL(url, location.href).pathname;
}

const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/** Read an answer to its end. */
async function whole(answer: Response): Promise<Response> {
  if (WITHOUT_BODY.has(answer.status)) return answer;
  const { status, statusText, headers } = answer;
  return new Response(await answer.arrayBuffer(), { status, statusText, headers });
}
