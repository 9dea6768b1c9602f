type Props = {
  label: string;
  /** Oldest first; a gap is null. */
  values: readonly (number | null)[];
  /** The number of values that fill the width. */
  length: number;
  format(value: number): string;
  /** The value at the top; by default the largest one. */
  max?: number;
};

const WIDTH = 120;
const HEIGHT = 32;

/** A small chart of one figure, with its current value as text. */
export function Sparkline({ label, values, length, format, max }: Props) {
  const known = values.filter((value) => value !== null);
  const current = known.at(-1);
  const highest = Math.max(0, ...known);
  const top = (max ?? highest) || 1;
  const step = WIDTH / Math.max(1, length - 1);
  const first = length - values.length;
  const points = values
    .flatMap((value, index) =>
      value === null ? [] : [`${((first + index) * step).toFixed(1)},${(HEIGHT - (value / top) * HEIGHT).toFixed(1)}`],
    )
    .join(" ");
  return (
    <div class="spark">
      <span class="fine">{label}</span>
      <strong>{current === undefined ? "–" : format(current)}</strong>
      <svg
        viewBox={`0 -1 ${WIDTH} ${HEIGHT + 2}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${label}: ${current === undefined ? "–" : format(current)}, max. ${format(highest)}`}
      >
        <polyline points={points} />
      </svg>
    </div>
  );
}
