import { Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

/** Shorter than it takes to type the next letter of a word, and not felt. */
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

/** Takes a text, and filters once nothing more is typed. */
export function TextFilter({ label, value, onFilter }: Filter) {
  const filter = useDebouncedCallback(onFilter, TYPING_MS);
  const [text, setText] = useState(value ?? "");
  const [shown, setShown] = useState(value);
  if (value !== shown) {
    setShown(value);
    // What stands in the address was changed by something else than typing here.
    if ((value ?? "") !== text.trim()) setText(value ?? "");
  }
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
      <TextInput
        type="date"
        aria-label={t("list.from")}
        leftSection={<span aria-hidden>{t("list.from")}</span>}
        leftSectionWidth={DAY_LABEL_WIDTH}
        max={until}
        value={from ?? ""}
        onChange={(event) => {
          onFilter({ from: event.currentTarget.value });
        }}
      />
      <TextInput
        type="date"
        aria-label={t("list.until")}
        leftSection={<span aria-hidden>{t("list.until")}</span>}
        leftSectionWidth={DAY_LABEL_WIDTH}
        min={from}
        value={until ?? ""}
        onChange={(event) => {
          onFilter({ until: event.currentTarget.value });
        }}
      />
    </div>
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
