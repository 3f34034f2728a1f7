/**
 * The session of whoever uses the page. Its access token is in memory alone; the refresh token is an HttpOnly cookie,
 * which only the gateway sees. Each refresh token works once, so pages of one browser take turns.
 */
import { ApiError, asApiError, errorOf } from "./errors";
import { inTime } from "./inTime";

/** Where one kind of people signs in. */
export interface SignInPaths {
  readonly refresh: string;
  readonly signOut: string;
  readonly stepUp: string;
}

export const MERCHANT_PATHS: SignInPaths = {
  refresh: "/api/auth/refresh",
  signOut: "/api/auth/logout",
  stepUp: "/api/auth/step-up",
};

export const OPERATOR_PATHS: SignInPaths = {
  refresh: "/api/admin/auth/refresh",
  signOut: "/api/admin/auth/sign-out",
  stepUp: "/api/admin/auth/step-up",
};

/** How long before its end a token is renewed, so that none ends on its way. */
const EARLY_MS = 20_000;
/** How long an answer is waited for. None of what is sent here does more when it is sent once more. */
const LIMIT_MS = 20_000;
/**
 * How long the answer to a refresh is waited for before it is asked for once more. The gateway may have exchanged the
 * refresh token, and the answer with the next one may be lost. For `SAME_AGAIN_S` of `sessions.py` the gateway gives the
 * same answer again; after that it takes the old token for a stolen one, and ends the session.
 */
export const ASK_AGAIN_MS = 4_000;
/** How long the browser's other pages are waited for: longer than asking twice takes. */
const TURN_MS = 30_000;
/** What a proxy says that got no answer: the gateway may have done what was asked all the same. */
const LOST: ReadonlySet<number> = new Set([502, 504]);

/** What pages of one browser say to each other. */
const SIGNED_IN = "signed-in";
const SIGNED_OUT = "signed-out";

export type SessionState = "unknown" | "signed-in" | "signed-out";

interface Signed {
  accessToken: string;
  /** In seconds. */
  expiresIn: number;
}

export class Session {
  #token: string | null = null;
  /** Who the session is of, by the last token that said so. */
  #whose: string | null = null;
  #endsAt = 0;
  #state: SessionState = "unknown";
  #notEnded: ApiError | null = null;
  #hasEnded = false;
  #isRefused = false;
  #renewing: Promise<string | null> | null = null;
  readonly #listeners = new Set<() => void>();
  readonly #others: BroadcastChannel | null;
  readonly #send: typeof fetch;
  readonly #sendSoon: typeof fetch;

  constructor(
    readonly paths: SignInPaths,
    send?: typeof fetch,
    private readonly now: () => number = Date.now,
    readonly reload: () => void = () => {
      location.reload();
    },
  ) {
    this.#send = inTime(send, { limitMs: LIMIT_MS, isRepeatable: true });
    this.#sendSoon = inTime(send, { limitMs: ASK_AGAIN_MS, isRepeatable: true });
    this.#others = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(`cambist ${paths.refresh}`);
    this.#others?.addEventListener("message", ({ data }) => {
      if (data === SIGNED_IN) this.#beginElsewhere();
      else this.#forget();
    });
  }

  get state(): SessionState {
    return this.#state;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  snapshot = (): SessionState => this.#state;

  /** Why the session goes on although it was to end; null where nobody wanted that, or it has ended. */
  notEnded = (): ApiError | null => this.#notEnded;

  /** Whether a session has ended on this page without being asked to here. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Whether it was the gateway that ended it: nobody in this browser wanted that. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Who it is of, or was of last; null where no token said so. */
  get whose(): string | null {
    return this.#whose;
  }

  /** Take what signing in or registering answered, and say so to the browser's other pages: they share the cookie. */
  enter(signed: Signed): void {
    this.begin(signed);
    this.#others?.postMessage(SIGNED_IN);
  }

  /** Take the token of a session that has begun. */
  begin(signed: Signed): void {
    this.#token = signed.accessToken;
    this.#whose = whoseIs(signed.accessToken) ?? this.#whose;
    this.#endsAt = this.now() + signed.expiresIn * 1000;
    this.#hasEnded = false;
    this.#isRefused = false;
    this.#become("signed-in");
  }

  /** Return a token that works for a while, or null for nobody. Rejects where the gateway cannot be reached. */
  async token(): Promise<string | null> {
    if (this.#state === "signed-out") return null;
    if (this.#token !== null && this.now() < this.#endsAt - EARLY_MS) return this.#token;
    return this.renew(this.#token);
  }

  /** Return another token than `used`, which was refused or is about to end; null where the session has ended. */
  renew(used: string | null): Promise<string | null> {
    if (this.#token !== null && this.#token !== used) return Promise.resolve(this.#token);
    this.#renewing ??= this.#refresh().finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  /**
   * End the session here and in the browser's other pages. Only the gateway can: the cookie is out of reach, so a page
   * that forgot on its own would be signed in again by whoever loads it next. Where it did not, `notEnded` says why.
   */
  async end(): Promise<void> {
    try {
      const answer = await this.#send(this.paths.signOut, { method: "POST" });
      if (!answer.ok) throw await errorOf(answer);
    } catch (error) {
      this.#notEnded = asApiError(error);
      this.#tell();
      return;
    }
    this.#forget({ isWished: true });
    this.#others?.postMessage(SIGNED_OUT);
  }

  /** Take it that the session goes on: whoever wanted to leave stays. */
  stay(): void {
    this.#notEnded = null;
    this.#tell();
  }

  /** Let the session do what needs a second factor, for a few minutes. Throws an ApiError for a wrong code. */
  async stepUp(code: string): Promise<void> {
    const token = await this.token();
    const answer = await this.#send(this.paths.stepUp, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...(token === null ? {} : { Authorization: `Bearer ${token}` }) },
      body: JSON.stringify({ totpCode: code }),
    });
    if (!answer.ok) throw await errorOf(answer);
  }

  async #refresh(): Promise<string | null> {
    const answer = await exclusively(this.paths.refresh, () => this.#exchange());
    if (answer.ok) {
      const signed = (await answer.json()) as Signed;
      if (this.#isAnothers(signed)) {
        // What the page shows, and what is being sent from it, is of whoever was signed in before.
        this.#token = null;
        this.reload();
        throw new ApiError(401, "SESSION_ENDED", "Somebody else has signed in here.");
      }
      this.begin(signed);
      return this.#token;
    }
    // Anything but a refusal is no news of the session: it is tried again with the next request.
    if (answer.status !== 401) throw await errorOf(answer);
    this.#forget({ isRefused: true });
    return null;
  }

  /** Exchange the refresh token. Where the answer is lost, ask again at once: later is too late. */
  async #exchange(): Promise<Response> {
    const { refresh } = this.paths;
    try {
      const answer = await this.#sendSoon(refresh, { method: "POST" });
      if (!LOST.has(answer.status)) return answer;
    } catch {
      // Whether the gateway was reached is not known.
    }
    return this.#send(refresh, { method: "POST" });
  }

  /** Say whether a page that somebody is signed in on got another person's token: they signed in in another page. */
  #isAnothers({ accessToken }: Signed): boolean {
    const whose = whoseIs(accessToken);
    return this.#state === "signed-in" && this.#whose !== null && whose !== null && whose !== this.#whose;
  }

  /** Somebody has signed in in another page: go on with that session, or find out at once that it is another's. */
  #beginElsewhere(): void {
    this.#token = null;
    if (this.#state === "signed-in") {
      this.renew(null).catch(() => undefined); // what is asked for next tries again
      return;
    }
    this.#state = "unknown";
    this.#tell();
  }

  #forget({ isWished = false, isRefused = false } = {}): void {
    const isLeft = this.#state === "signed-out" && this.#isRefused && !isRefused;
    this.#isRefused = isRefused;
    this.#hasEnded = !isWished && (this.#hasEnded || this.#state === "signed-in");
    this.#token = null;
    this.#notEnded = null;
    // The gateway had ended it, and somebody signs out after that: nobody goes on with it any more.
    if (isLeft) this.#tell();
    else this.#become("signed-out");
  }

  #become(state: SessionState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** Return who an access token is of; null where it does not say. */
function whoseIs(accessToken: string): string | null {
  try {
    const claims = accessToken.split(".")[1] ?? "";
    const { sub } = JSON.parse(atob(claims.replaceAll("-", "+").replaceAll("_", "/"))) as { sub?: unknown };
    return typeof sub === "string" ? sub : null;
  } catch {
    return null;
  }
}

/** Do it while no other page of the browser does. Rejects where another has not ended in a time. */
function exclusively<T>(name: string, work: () => Promise<T>): Promise<T> {
  // Browsers have locks on HTTPS and localhost only.
  const locks = (navigator as { locks?: LockManager }).locks;
  if (locks === undefined) return work();
  const waiting = new AbortController();
  const timer = setTimeout(() => {
    waiting.abort(new ApiError(0, "TIMEOUT", "Another page of this browser has not ended its request."));
  }, TURN_MS);
  return locks.request(`cambist ${name}`, { signal: waiting.signal }, () => {
    clearTimeout(timer);
    return work();
  });
}
