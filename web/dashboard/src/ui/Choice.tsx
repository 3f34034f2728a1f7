import { Button, type ButtonProps } from "@mantine/core";

import styles from "./Choice.module.css";

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly label: string }[];
  readonly size?: NonNullable<ButtonProps["size"]>;
  readonly onChoice: (value: Value) => void;
}

/** One of a few, all of which are seen: buttons, of which the chosen one is pressed. */
export function Choice<Value extends string>({ label, value, options, size = "sm", onChoice }: ChoiceProps<Value>) {
  return (
    <div role="group" aria-label={label} className={`row ${styles.choice ?? ""}`}>
      {options.map((one) => (
        <Button
          key={one.value}
          size={size}
          variant={one.value === value ? "light" : "default"}
          aria-pressed={one.value === value}
          onClick={() => {
            onChoice(one.value);
          }}
        >
          {one.label}
        </Button>
      ))}
    </div>
  );
}
