import { useEffect, useState, type ReactNode, type SyntheticEvent } from "react";

import { placesOf } from "./focus";
import { onDemand } from "./onDemand";

const ByHand = onDemand(async () => (await import("./ByHand")).ByHand);

/** How long it is said that something was copied. */
const SAID_MS = 1500;

/** What was clicked when it was not copied, and the places around that. */
type Refused = readonly HTMLElement[];

interface Copying {
  /** Whether it was copied just now. */
  readonly isCopied: boolean;
  readonly copy: (event: SyntheticEvent<HTMLElement>) => void;
  /** What shows the text where the browser did not copy it, to stand beside what is clicked. */
  readonly byHand: ReactNode;
}

/** Return what copies a text, or else shows it to be selected by hand. */
export function useCopy(text: string): Copying {
  const [state, setState] = useState<"copied" | Refused | null>(null);
  useEffect(() => {
    if (state !== "copied") return;
    const over = setTimeout(() => {
      setState(null);
    }, SAID_MS);
    return () => {
      clearTimeout(over);
    };
  }, [state]);
  return {
    isCopied: state === "copied",
    copy: ({ currentTarget }) => {
      void copyText(text).then((done) => {
        setState(done ? "copied" : placesOf(currentTarget));
      });
    },
    byHand: state !== null && state !== "copied" && (
      <ByHand
        text={text}
        before={state}
        onClose={() => {
          setState(null);
        }}
      />
    ),
  };
}

/** Copy a text; return whether the browser did. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** Without https there is no clipboard for scripts: select the text for a moment, and let the browser copy that. */
function copySelected(text: string): boolean {
  const selected = document.createElement("pre");
  selected.textContent = text;
  // As it is, without how it looks.
  selected.addEventListener("copy", (event) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  });
  document.body.append(selected);
  try {
    getSelection()?.selectAllChildren(selected);
    // Nothing else does it there.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    return document.execCommand("copy");
  } catch {
    return false; // a browser may not have it, or may forbid it
  } finally {
    selected.remove(); // it may be a secret
  }
}
