/** Acts that must not be done twice, sent under one key until an answer has come: whatever is sent again is done once. */
import { ApiError, asApiError } from "./errors";
import { newKey } from "./newKey";

const STORED = "cambist-unanswered";
/** Where something cannot be stored, its key lives as long as the page. */
const unstored = new Map<string, string>();

/**
 * Send an act under its key, and return what was answered.
 *
 * `what` names the act and what it is of, such as a payment's refund, and not what was typed: where an answer was lost,
 * neither the same nor something else of the kind is done beside it. The key outlives dialogs, pages and a reload of
 * them in the same tab. It ends with an answer that says the act was done, or that it was done before with another
 * content; a refusal of anything else leaves it, as nothing was done under it and it is as good as new.
 *
 * Throws `NO_ANSWER_ONCE` where no answer came: it may be sent again. Throws `SENT_BEFORE` where the answer is that of an
 * earlier request: nobody shall take it for a new one that was sent.
 */
export async function once<Answer>(what: string, send: (idempotencyKey: string) => Promise<Answer>): Promise<Answer> {
  const name = `${STORED} ${what}`;
  const idempotencyKey = read(name) ?? newKey();
  write(name, idempotencyKey);
  try {
    const answer = await send(idempotencyKey);
    if ((answer as { idempotent?: boolean } | undefined)?.idempotent === true) {
      throw new ApiError(200, "SENT_BEFORE", "This had been carried out before. Nothing was sent now.");
    }
    forget(name, idempotencyKey);
    return answer;
  } catch (refused) {
    const { code, isDoneBefore } = asApiError(refused);
    if (isDoneBefore) forget(name, idempotencyKey);
    if (code === "NO_ANSWER") throw new ApiError(0, "NO_ANSWER_ONCE", "No answer came. Send it again as it is.");
    throw refused;
  }
}

/** End a key, but none that has begun since: a late answer says nothing of what was sent after it. */
function forget(name: string, idempotencyKey: string): void {
  if (read(name) === idempotencyKey) write(name, null);
}

function read(name: string): string | null {
  try {
    return sessionStorage.getItem(name) ?? unstored.get(name) ?? null;
  } catch {
    return unstored.get(name) ?? null;
  }
}

function write(name: string, key: string | null): void {
  unstored.delete(name);
  try {
    if (key === null) sessionStorage.removeItem(name);
    else sessionStorage.setItem(name, key);
  } catch {
    if (key !== null) unstored.set(name, key);
  }
}
