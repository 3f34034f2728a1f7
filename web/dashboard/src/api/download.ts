import { authorized } from "./client";
import { asApiError, errorOf } from "./errors";
import type { Session } from "./session";

export type Send = (request: Request) => Promise<Response>;

/** Save a file of the API's, which only a signed-in request gets. Throws an ApiError. */
export async function downloadCsv(path: string, name: string, session: Session): Promise<void> {
  await saveCsv(path, name, authorized(session));
}

/** Save a file of the API's, whoever asks for it. Throws an ApiError. */
export async function saveCsv(path: string, name: string, send: Send): Promise<void> {
  let answer: Response;
  try {
    answer = await send(new Request(new URL(path, location.origin)));
  } catch (error) {
    throw asApiError(error);
  }
  if (!answer.ok) throw await errorOf(answer);
  const url = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
