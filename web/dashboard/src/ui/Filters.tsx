import { Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { isDay } from "./days";

/** The first letter filters at once; what follows it faster than this is taken together. */
const TYPING_MS = 50;
/** Room for the longest of all languages. */
const DAY_LABEL_WIDTH = 84;

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

/** Takes a text, and filters as it is typed. */
export function TextFilter({ label, value, onFilter }: Filter) {
  const filter = useDebouncedCallback(onFilter, { delay: TYPING_MS, leading: true });
  const [text, setText] = useTyped(value);
  return (
    <TextInput
      aria-label={label}
      placeholder={label}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        filter(event.currentTarget.value.trim());
      }}
    />
  );
}

interface DaysFilterProps {
  /** Days as the page's address has them: 2026-01-31. */
  readonly from: string | undefined;
  readonly until: string | undefined;
  readonly onFilter: (changed: { readonly from?: string; readonly until?: string }) => void;
}

/** Takes the first and the last day of a time, in the time zone of whoever looks. */
export function DaysFilter({ from, until, onFilter }: DaysFilterProps) {
  const { t } = useTranslation();
  return (
    <div className="days">
      <DayFilter
        label={t("list.from")}
        value={from}
        max={until}
        onFilter={(day) => {
          onFilter({ from: day });
        }}
      />
      <DayFilter
        label={t("list.until")}
        value={until}
        min={from}
        onFilter={(day) => {
          onFilter({ until: day });
        }}
      />
    </div>
  );
}

interface DayFilterProps extends Filter {
  readonly min?: string | undefined;
  readonly max?: string | undefined;
}

function DayFilter({ label, value, min, max, onFilter }: DayFilterProps) {
  const [day, setDay] = useTyped(value);
  return (
    <TextInput
      type="date"
      aria-label={label}
      leftSection={<span aria-hidden>{label}</span>}
      leftSectionWidth={DAY_LABEL_WIDTH}
      min={min}
      max={max}
      value={day}
      onChange={(event) => {
        const typed = event.currentTarget.value;
        setDay(typed);
        // While a year is typed it is one of the first centuries.
        if (typed === "" || isDay(typed)) onFilter(typed);
      }}
    />
  );
}

/** What stands in a field, until something else than typing there changes what is asked for. */
function useTyped(value: string | undefined) {
  const [text, setText] = useState(value ?? "");
  const [shown, setShown] = useState(value);
  if (value !== shown) {
    setShown(value);
    if ((value ?? "") !== text.trim()) setText(value ?? "");
  }
  return [text, setText] as const;
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
