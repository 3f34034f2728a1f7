import { Tooltip } from "@mantine/core";

interface HintProps {
  readonly id: string;
  readonly target: HTMLElement;
  readonly children: string;
}

/** What an element says more of itself, beside it. */
export function Hint({ id, target, children }: HintProps) {
  return <Tooltip opened target={target} label={<span id={id}>{children}</span>} multiline maw={480} />;
}
