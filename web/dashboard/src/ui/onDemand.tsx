import { useEffect, useState, type ComponentType } from "react";

import { ErrorNote } from "./Feedback";
import styles from "./onDemand.module.css";

/** What was not asked for yet is loaded once the page has had this long to come: it takes nothing from what is seen first. */
const LATER_MS = 1_500;

type Load<Props> = () => Promise<ComponentType<Props>>;

interface Instead<Props> {
  /** What stands there until the part has come. */
  readonly meanwhile?: ComponentType<Props>;
  /** Whether nothing is said where it does not come: the page is whole without it. */
  readonly isDispensable?: boolean;
}

const all = new Set<() => Promise<void>>();

/** Load every part that the pages so far can ask for. Rejects where one does not come. */
export async function loadParts(): Promise<void> {
  await Promise.all([...all].map((load) => load()));
}

/**
 * Return a part of a page that is not seen until somebody does something, such as a dialog. It comes in a file of its
 * own: after the page, when the browser has time, or when it is asked for, where that is sooner.
 */
export function onDemand<Props extends object>(
  load: Load<Props>,
  { meanwhile: Meanwhile, isDispensable = false }: Instead<Props> = {},
): ComponentType<Props> {
  let part: ComponentType<Props> | null = null;
  const come = async () => {
    part ??= await load();
  };
  all.add(come);
  setTimeout(() => {
    come().catch(() => undefined); // it is asked for again when it is wanted
  }, LATER_MS);

  return function OnDemand(props: Props) {
    const [Part, setPart] = useState<ComponentType<Props> | null>(() => part);
    const [error, setError] = useState<unknown>(null);
    const [tries, setTries] = useState(0);
    useEffect(() => {
      if (Part !== null) return;
      come().then(() => {
        setPart(() => part);
      }, setError);
    }, [Part, tries]);
    if (Part !== null) return <Part {...props} />;
    const tryAgain = () => {
      // What did not come once does not come again in some browsers, until the page is loaded anew.
      if (tries > 0) location.reload();
      setError(null);
      setTries(tries + 1);
    };
    return (
      <>
        {Meanwhile !== undefined && <Meanwhile {...props} />}
        {error !== null && !isDispensable && (
          <div className={styles.failed}>
            <ErrorNote error={error} onRetry={tryAgain} />
          </div>
        )}
      </>
    );
  };
}
