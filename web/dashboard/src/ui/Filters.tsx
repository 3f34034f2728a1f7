import { Button, Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { createContext, memo, use, useCallback, useEffect, useId, useRef, useState, type ReactNode } from "react";
import { useTranslation } from "react-i18next";

import { isDay } from "./days";

/** The first letter filters at once; what follows it faster than this is taken together. */
const TYPING_MS = 50;
/** Room for the longest of all languages. */
const DAY_LABEL_WIDTH = 92;

interface Filter {
  readonly label: string;
  readonly value: string | undefined;
  /** An empty text takes the filter away. */
  readonly onFilter: (value: string) => void;
}

interface SelectFilterProps extends Filter {
  /** One of them holds always: there is nothing to take away. */
  readonly isRequired?: boolean;
  readonly options: readonly { readonly value: string; readonly label: string }[];
}

const Count = createContext<(by: number) => void>(() => undefined);

/** Have a filter counted while it leaves something out. */
function useCounted(isSet: boolean): void {
  const count = use(Count);
  useEffect(() => {
    if (!isSet) return undefined;
    count(1);
    return () => {
      count(-1);
    };
  }, [isSet, count]);
}

/** So many are found faster by typing than by looking. */
const LOOKED_THROUGH_MAX = 12;

/**
 * Chooses one. Of many it is looked for by what is typed, which filters nothing yet. What stands in the address and is
 * none of them is shown as it is: something is left out by it, and it can be taken away.
 */
export const SelectFilter = memo(function SelectFilter({
  label,
  value,
  onFilter,
  options,
  isRequired = false,
}: SelectFilterProps) {
  const { t } = useTranslation();
  useCounted(value !== undefined && !isRequired);
  const isOffered = value === undefined || options.some((one) => one.value === value);
  const data = isOffered ? options : [...options, { value, label: value }];
  return (
    <Select
      aria-label={label}
      placeholder={label}
      clearable={!isRequired}
      allowDeselect={!isRequired}
      searchable={options.length > LOOKED_THROUGH_MAX}
      nothingFoundMessage={t("palette.none")}
      data={data}
      value={value ?? null}
      onChange={(chosen) => {
        onFilter(chosen ?? "");
      }}
    />
  );
});

/** Takes a text, and filters as it is typed. */
export const TextFilter = memo(function TextFilter({ label, value, onFilter }: Filter) {
  useCounted(value !== undefined);
  const { text, setText, ask } = useTyped(value, onFilter);
  const askLater = useDebouncedCallback(ask, TYPING_MS);
  const typedAt = useRef(-Infinity);
  return (
    <TextInput
      className="typed"
      aria-label={label}
      placeholder={label}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value);
        const typed = event.currentTarget.value.trim();
        askLater.cancel();
        if (event.timeStamp - typedAt.current < TYPING_MS) askLater(typed);
        else ask(typed);
        typedAt.current = event.timeStamp;
      }}
    />
  );
});

interface DaysFilterProps {
  /** Days as the page's address has them: 2026-01-31. */
  readonly from: string | undefined;
  readonly until: string | undefined;
  readonly onFilter: (changed: { readonly from?: string; readonly until?: string }) => void;
}

/** Takes the first and the last day of a time, in the time zone of whoever looks. */
export const DaysFilter = memo(function DaysFilter({ from, until, onFilter }: DaysFilterProps) {
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
});

interface DayFilterProps extends Filter {
  readonly min?: string | undefined;
  readonly max?: string | undefined;
}

function DayFilter({ label, value, min, max, onFilter }: DayFilterProps) {
  useCounted(value !== undefined);
  const { text, setText, ask } = useTyped(value, onFilter);
  return (
    <TextInput
      type="date"
      aria-label={label}
      leftSection={<span aria-hidden>{label}</span>}
      leftSectionWidth={DAY_LABEL_WIDTH}
      min={min}
      max={max}
      value={text}
      onChange={(event) => {
        const typed = event.currentTarget.value;
        setText(typed);
        // While a year is typed it is one of the first centuries.
        if (typed === "" || isDay(typed)) ask(typed);
      }}
    />
  );
}

/**
 * What stands in a field, until something else than typing there changes what is asked for. The address follows what is
 * typed, but later: what comes from there, and was asked for here, is old by then and takes no letter back.
 */
function useTyped(value: string | undefined, onFilter: (value: string) => void) {
  const given = value ?? "";
  const [text, setText] = useState(given);
  const [seen, setSeen] = useState(given);
  const [asked, setAsked] = useState<readonly string[]>([]);
  if (given !== seen) {
    setSeen(given);
    const at = asked.indexOf(given);
    setAsked(at < 0 ? [] : asked.slice(at + 1));
    if (at < 0) setText(given);
  }
  return {
    text,
    setText,
    ask: (typed: string) => {
      // What is asked for twice comes once.
      setAsked((before) => ((before.at(-1) ?? given) === typed ? before : [...before, typed]));
      onFilter(typed);
    },
  };
}

interface FiltersProps {
  /** Which list's they are, on a page that has several. */
  readonly label?: string;
  readonly children: ReactNode;
}

/**
 * The filters above a list. Where they would fill a phone before the first row, they are behind a button that says how
 * many of them leave something out.
 */
export function Filters({ label, children }: FiltersProps) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const [set, setSet] = useState(0);
  const count = useCallback((by: number) => {
    setSet((before) => before + by);
  }, []);
  const id = useId();
  return (
    <div id={id} className="filters" role="search" aria-label={label} data-open={isOpen}>
      <Button
        className="fold"
        variant="default"
        aria-expanded={isOpen}
        aria-controls={id}
        rightSection={set > 0 && <span className="number">{set}</span>}
        onClick={() => {
          setOpen(!isOpen);
        }}
      >
        {t("list.filters")}
      </Button>
      <Count value={count}>{children}</Count>
    </div>
  );
}
