import { authorized } from "./client";
import { asApiError, errorOf } from "./errors";
import type { Session } from "./session";

export type Send = (request: Request) => Promise<Response>;

/** A file of many rows takes its time. */
const FILE_MS = 600_000;

/** Save a file of the API's, which only a signed-in request gets. Throws an ApiError. */
export async function downloadCsv(path: string, name: string, session: Session): Promise<void> {
  await saveCsv(path, name, authorized(session));
}

/** Save a file of the API's, whoever asks for it. Throws an ApiError. */
export async function saveCsv(path: string, name: string, send: Send): Promise<void> {
  let answer: Response;
  try {
    answer = await send(new Request(new URL(path, location.origin), { signal: AbortSignal.timeout(FILE_MS) }));
  } catch (error) {
    throw asApiError(error);
  }
  if (!answer.ok) throw await errorOf(answer);
  let file: Blob;
  try {
    file = await answer.blob();
  } catch (error) {
    // It broke off, or took too long.
    throw asApiError(error);
  }
  const url = URL.createObjectURL(file);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
