import { Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import type { ReactNode } from "react";

const TYPING_MS = 250;

interface Filter {
  readonly label: string;
  readonly value: string | undefined;
  /** An empty text takes the filter away. */
  readonly onFilter: (value: string) => void;
}

interface SelectFilterProps extends Filter {
  readonly options: readonly { readonly value: string; readonly label: string }[];
}

/** Chooses one of a few. */
export function SelectFilter({ label, value, onFilter, options }: SelectFilterProps) {
  return (
    <Select
      aria-label={label}
      placeholder={label}
      clearable
      data={options}
      value={value ?? null}
      onChange={(chosen) => {
        onFilter(chosen ?? "");
      }}
    />
  );
}

/** Takes a text, and filters once nothing more is typed. */
export function TextFilter({ label, value, onFilter }: Filter) {
  const filter = useDebouncedCallback(onFilter, TYPING_MS);
  return (
    <TextInput
      aria-label={label}
      placeholder={label}
      defaultValue={value ?? ""}
      key={value === undefined ? "none" : "some"}
      onChange={(event) => {
        filter(event.currentTarget.value.trim());
      }}
    />
  );
}

interface FiltersProps {
  /** Which list's they are, on a page that has several. */
  readonly label?: string;
  readonly children: ReactNode;
}

/** The filters above a list. */
export function Filters({ label, children }: FiltersProps) {
  return (
    <div className="filters" role="search" aria-label={label}>
      {children}
    </div>
  );
}
