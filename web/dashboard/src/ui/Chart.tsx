import type { ReactNode } from "react";

import styles from "./Chart.module.css";

const HEIGHT = 100;
const WIDTH = 10;
/** What an axis may end at, in the highest power of ten: its half is easy to read as well. */
const ROUND = [1, 2, 4, 6, 8, 10] as const;
const LINES = [0, 0.5, 1] as const;

/** Return where the axis of a chart ends whose longest part is this long. */
export function endOfAxis(most: number): number {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return (ROUND.find((one) => one * power >= most) ?? 10) * power;
}

/** Return how high a part is drawn, of an axis that ends there. */
export function heightIn(size: number, end: number): number {
  return (HEIGHT * Math.max(size, 0)) / end;
}

/** Where the part with this number is drawn. */
export function placeOf(number: number, height: number, below = 0) {
  const gap = 2;
  return { x: number * WIDTH + gap / 2, y: HEIGHT - below - height, width: WIDTH - gap, height };
}

interface ChartProps {
  readonly label: string;
  /** What the first and the last part are of, and how many there are. */
  readonly first: string | undefined;
  readonly last: string | undefined;
  readonly parts: number;
  readonly end: number;
  /** Says how much a line of the axis stands for; nothing where that would say too little. */
  readonly onAxis: (size: number) => string | null;
  readonly children: ReactNode;
}

/**
 * What a series is drawn in: lines that say how much is how high, and what it begins and ends with.
 *
 * Time runs from left to right in every language, as it does in the charts of exchanges and price sources.
 */
export function Chart({ label, first, last, parts, end, onAxis, children }: ChartProps) {
  const right = parts * WIDTH;
  return (
    <div dir="ltr" className={styles.chart}>
      <div className={styles.axis} aria-hidden>
        {LINES.toReversed().map((part) => (
          <bdi key={part} dir="ltr" className="number">
            {onAxis(part * end) ?? ""}
          </bdi>
        ))}
      </div>
      <svg
        className={styles.plot}
        viewBox={`0 0 ${String(right)} ${String(HEIGHT)}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {LINES.map((part) => (
          <line
            key={part}
            className={styles.line}
            x1={0}
            x2={right}
            y1={HEIGHT * (1 - part)}
            y2={HEIGHT * (1 - part)}
            vectorEffect="non-scaling-stroke"
          />
        ))}
        {children}
      </svg>
      <div className={styles.ends}>
        <bdi>{first}</bdi>
        <bdi>{last}</bdi>
      </div>
    </div>
  );
}
