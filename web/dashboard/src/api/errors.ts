/** What the gateway refused, or that it could not be reached. */

export interface FieldError {
  readonly field: string;
  readonly message: string;
}

export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    /** The HTTP status; 0 where no answer came. */
    readonly status: number,
    /** The API's name for it, for programs and for whoever is asked for help. */
    readonly code: string,
    message: string,
    readonly details: readonly FieldError[] = [],
    /** Seconds after which to try again, where the gateway said so. */
    readonly retryAfterS: number | null = null,
  ) {
    super(message);
  }

  get isOffline(): boolean {
    return this.status === 0;
  }

  get isForbidden(): boolean {
    return this.status === 403;
  }

  /** Say whether an earlier request under the same key was carried out, whose answer nobody saw. */
  get isDoneBefore(): boolean {
    return this.code === "IDEMPOTENCY_KEY_REUSED" || this.code === "SENT_BEFORE";
  }

  /** Return what is wrong with one field of the form that was sent, as a sentence that stands by itself. */
  of(field: string): string | undefined {
    const said = this.details.find((one) => one.field === field)?.message;
    // The API's words go on behind the field's name, in English. What is a name itself, such as "pricingMode", stays.
    return said?.replace(/^[a-z](?=[a-z]*\b)/, (letter) => letter.toUpperCase());
  }
}

interface ErrorBody {
  error?: unknown;
  code?: unknown;
  details?: FieldError[];
}

export async function errorOf(answer: Response): Promise<ApiError> {
  let body: ErrorBody = {};
  try {
    body = (await answer.json()) as ErrorBody;
  } catch {
    // A proxy's page, or nothing: the status says what there is to say.
  }
  const retryAfter = Number(answer.headers.get("Retry-After") ?? Number.NaN);
  return new ApiError(
    answer.status,
    typeof body.code === "string" ? body.code : `HTTP_${answer.status}`,
    typeof body.error === "string" ? body.error : `The gateway answered ${answer.status}.`,
    body.details ?? [],
    Number.isFinite(retryAfter) ? retryAfter : null,
  );
}

/** What is thrown where a page's style sheet does not come: its other files reject as `fetch` does. */
const STYLES_LOST = "Unable to preload CSS";

/** Return any error as one of ours: what `fetch` rejects with says no more than that no answer came. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return new ApiError(0, "TIMEOUT", "The gateway did not answer in time.");
  }
  const isLost = error instanceof TypeError || (error instanceof Error && error.message.startsWith(STYLES_LOST));
  if (isLost) return new ApiError(0, "OFFLINE", "The gateway cannot be reached.");
  return new ApiError(-1, "UNEXPECTED", error instanceof Error ? error.message : String(error));
}
