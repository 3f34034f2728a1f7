import { TextInput, type TextInputProps } from "@mantine/core";

export interface TextProps extends Omit<TextInputProps, "value" | "onChange"> {
  readonly value: string;
  readonly onText: (text: string) => void;
}

/** A line of text in a form. */
export function Text({ onText, ...rest }: TextProps) {
  return (
    <TextInput
      {...rest}
      onChange={(event) => {
        onText(event.currentTarget.value);
      }}
    />
  );
}
