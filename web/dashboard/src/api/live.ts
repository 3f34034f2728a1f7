/**
 * What changes, as it changes: server-sent events, read by `fetch`, since a browser's EventSource cannot send a token.
 * A message names a thing to read again, never what it is now.
 */
import type { Session } from "./session";

export interface Change {
  readonly kind: string;
  readonly id?: string;
  readonly projectId?: string;
}

export interface Listener {
  readonly onChanges: (changes: readonly Change[]) => void;
  /** Something may have been missed: everything that is shown has to be read again. */
  readonly onMissed: () => void;
  /** Whether changes are told just now. */
  readonly onState: (isTold: boolean) => void;
}

/** A line comes every 20 seconds at least. */
const SILENCE_MS = 60_000;
const BACK_OFF_MS = 1_000;
const BACK_OFF_MAX_MS = 30_000;

export interface Message {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

/** Takes a stream in pieces, wherever they are cut, and gives its messages. */
export class MessageReader {
  #rest = "";

  push(piece: string): Message[] {
    const parts = (this.#rest + piece.replaceAll("\r\n", "\n")).split("\n\n");
    this.#rest = parts.pop() ?? "";
    return parts.map(messageOf).filter((one) => one !== null);
  }
}

function messageOf(text: string): Message | null {
  let id: string | null = null;
  let event = "message";
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue; // a comment says that the connection is alive
    const value = line.slice(colon + 1).replace(/^ /, "");
    const name = line.slice(0, colon);
    if (name === "id") id = value;
    else if (name === "event") event = value;
    else if (name === "data") data.push(value);
  }
  // What is nothing but an id, beside a comment, says where to go on after a time in which nothing happened.
  return id === null && data.length === 0 && event === "message" ? null : { id, event, data: data.join("\n") };
}

/**
 * Follow a stream, and connect again whenever it ends, until the function that is returned is called. A page that nobody
 * sees holds none: over HTTP/1 browsers allow six connections to a host, of all tabs together, and a seventh tab would
 * wait for ever. What changed meanwhile is told once it is seen again.
 */
export function follow(path: string, session: Session, listener: Listener): () => void {
  const stopped = new AbortController();
  void run(path, session, listener, stopped.signal);
  return () => {
    stopped.abort();
  };
}

async function run(path: string, session: Session, listener: Listener, stopped: AbortSignal): Promise<void> {
  let lastId: string | null = null;
  let failures = 0;
  const isStopped = () => stopped.aborted;
  while (!isStopped()) {
    await seen(stopped);
    if (isStopped()) return;
    const hidden = new AbortController();
    const hide = () => {
      if (document.hidden) hidden.abort();
    };
    document.addEventListener("visibilitychange", hide);
    const connection = new Connection(path, session, listener, AbortSignal.any([stopped, hidden.signal]));
    try {
      await connection.read(lastId);
    } catch {
      // No answer, or one that broke off: it is asked for again below, like one that ended.
    }
    document.removeEventListener("visibilitychange", hide);
    lastId = connection.lastId ?? lastId;
    if (isStopped()) return;
    if (hidden.signal.aborted) {
      // We ended it ourselves: that is no failure, and it is asked for without a pause when the page is seen again.
      failures = 0;
      continue;
    }
    failures = connection.wasReady ? 0 : failures + 1;
    if (failures > 0) listener.onState(false);
    const wait = Math.min(BACK_OFF_MS * 2 ** failures, BACK_OFF_MAX_MS);
    await pause(wait * (0.5 + Math.random() / 2), stopped);
  }
}

/** Wait until somebody can see the page, or nobody waits any more. */
function seen(stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      if (document.hidden && !stopped.aborted) return;
      document.removeEventListener("visibilitychange", end);
      stopped.removeEventListener("abort", end);
      resolve();
    };
    document.addEventListener("visibilitychange", end);
    stopped.addEventListener("abort", end);
    end();
  });
}

class Connection {
  lastId: string | null = null;
  wasReady = false;

  constructor(
    private readonly path: string,
    private readonly session: Session,
    private readonly listener: Listener,
    private readonly stopped: AbortSignal,
  ) {}

  async read(lastId: string | null): Promise<void> {
    const token = await this.session.token();
    if (token === null) return;
    const silent = new AbortController();
    let timer = setTimeout(() => {
      silent.abort();
    }, SILENCE_MS);
    try {
      const headers = { Authorization: `Bearer ${token}`, ...(lastId === null ? {} : { "Last-Event-ID": lastId }) };
      const answer = await fetch(this.path, { headers, signal: AbortSignal.any([this.stopped, silent.signal]) });
      if (answer.status === 401) await this.session.renew(token);
      if (!answer.ok || answer.body === null) return;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      const messages = new MessageReader();
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        clearTimeout(timer);
        timer = setTimeout(() => {
          silent.abort();
        }, SILENCE_MS);
        for (const message of messages.push(read.value)) this.#take(message);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #take({ id, event, data }: Message): void {
    if (id !== null) this.lastId = id;
    if (event === "ready") {
      this.wasReady = true;
      this.listener.onState(true);
      if (!(JSON.parse(data) as { resumed: boolean }).resumed) this.listener.onMissed();
    } else if (event === "resync") this.listener.onMissed();
    // Who may read less or more than before sees and may do other things, too.
    else if (event === "end" && (JSON.parse(data) as { reason: string }).reason === "access_changed")
      this.listener.onMissed();
    else if (event === "changes") this.listener.onChanges((JSON.parse(data) as { changes: Change[] }).changes);
  }
}

/** Wait for so long, or until the browser is online again, or nobody waits any more. */
function pause(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      stopped.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    addEventListener("online", end);
    stopped.addEventListener("abort", end);
  });
}
