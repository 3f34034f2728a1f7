import { useSuspenseQuery } from "@tanstack/react-query";

import { SecondFactorOff } from "../ui/SecondFactorOff";

import { useProject } from "./project";
import styles from "./NeedsSecondFactor.module.css";
import { meQuery } from "./queries";

interface NeedsSecondFactorProps {
  /** Whether the sandbox wants a code as well. */
  readonly always?: boolean;
}

/** Says to whoever has no second factor that the act needs one, before anything is typed in vain. */
export function NeedsSecondFactor({ always = false }: NeedsSecondFactorProps) {
  const { member } = useSuspenseQuery(meQuery).data;
  const isLive = useProject()?.mode === "live";
  // Where nobody knows, nothing is said: the API says it then.
  const isOff = (member.hasTwoFactor as boolean | undefined) === false;
  if (!isOff || !(always || isLive)) return null;
  return (
    <p role="note" className={styles.note}>
      <SecondFactorOff />
    </p>
  );
}
