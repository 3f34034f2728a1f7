import { useTranslation } from "react-i18next";

import { Chart, endOfAxis, heightIn, placeOf } from "./Chart";
import { numbers } from "./format";
import type { Tone } from "./Status";
import styles from "./Stacks.module.css";

export interface Layer {
  readonly key: string;
  readonly label: string;
  readonly tone: Tone;
}

export interface Stack {
  readonly key: string;
  /** What it is of, such as a day. */
  readonly label: string;
  /** How many there are of each layer. */
  readonly counts: readonly number[];
}

interface StacksProps {
  readonly label: string;
  readonly layers: readonly Layer[];
  readonly stacks: readonly Stack[];
}

const SWATCH = 10;

const sumOf = (counts: readonly number[]) => counts.reduce((sum, one) => sum + one, 0);

/**
 * A series of which each part is several kinds, one on the other. Where the pointer is, a part says how many of each it
 * has; a table says so to who sees none. Layers of which there are none at all are left out.
 */
export function Stacks({ label, layers, stacks }: StacksProps) {
  const { i18n } = useTranslation();
  const format = numbers(i18n.language);
  const totals = layers.map((_, at) => sumOf(stacks.map(({ counts }) => counts[at] ?? 0)));
  const shown = layers
    .map((layer, at) => ({ ...layer, at, total: totals[at] ?? 0 }))
    .filter(({ total }) => total > 0)
    .map((layer, place, all) => ({
      ...layer,
      again: all.slice(0, place).filter(({ tone }) => tone === layer.tone).length,
    }));
  const end = endOfAxis(Math.max(...stacks.map(({ counts }) => sumOf(counts)), 1));
  const heightOf = (counts: readonly number[]) => heightIn(sumOf(counts), end);
  return (
    <figure>
      <Chart
        label={label}
        first={stacks[0]?.label}
        last={stacks.at(-1)?.label}
        parts={stacks.length}
        end={end}
        onAxis={(size) => (Number.isInteger(size) ? format.format(size) : null)}
      >
        {stacks.map((stack, number) => {
          const words = shown.map((one) => `${one.label} ${format.format(stack.counts[one.at] ?? 0)}`).join(" · ");
          return (
            <g key={stack.key} className={styles.bar}>
              <title>{`${stack.label}: ${words}`}</title>
              {shown.map((one) => (
                <rect
                  key={one.key}
                  className={styles.part}
                  data-tone={one.tone}
                  data-again={one.again}
                  {...placeOf(number, heightOf([stack.counts[one.at] ?? 0]), heightOf(stack.counts.slice(0, one.at)))}
                />
              ))}
            </g>
          );
        })}
      </Chart>
      <div className="unseen">
        <table>
          <caption>{label}</caption>
          <thead>
            <tr>
              <td />
              {shown.map((one) => (
                <th key={one.key} scope="col">
                  {one.label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {stacks.map((stack) => (
              <tr key={stack.key}>
                <th scope="row">{stack.label}</th>
                {shown.map((one) => (
                  <td key={one.key}>{format.format(stack.counts[one.at] ?? 0)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <figcaption>
        <ul className={styles.legend} aria-label={label}>
          {shown.map((one) => (
            <li key={one.key}>
              <svg width={SWATCH} height={SWATCH} aria-hidden>
                <rect
                  className={styles.part}
                  data-tone={one.tone}
                  data-again={one.again}
                  width={SWATCH}
                  height={SWATCH}
                  rx="2"
                />
              </svg>
              {one.label} <span className="number">{format.format(one.total)}</span>
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

interface Share {
  readonly key: string;
  readonly label: string;
  /** How long it is: for drawing alone, the text says what it is. */
  readonly size: number;
  readonly text: string;
}

interface SharesProps {
  readonly label: string;
  readonly shares: readonly Share[];
}

/** What several have of one thing, the largest first, each with its line. */
export function Shares({ label, shares }: SharesProps) {
  const most = Math.max(...shares.map(({ size }) => size), 0);
  return (
    <ul className={styles.shares} aria-label={label}>
      {shares
        .toSorted((one, other) => other.size - one.size)
        .map(({ key, label: name, size, text }) => (
          <li key={key} className={styles.share}>
            <span className={styles.words}>
              <span>{name}</span>
              <bdi dir="ltr" className="number muted">
                {text}
              </bdi>
            </span>
            <svg className={styles.line} viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden>
              <rect className={styles.length} width={most > 0 ? (100 * size) / most : 0} height="1" />
            </svg>
          </li>
        ))}
    </ul>
  );
}
