/** `value`: 0 to 1. */
export function Progress({ value, label }: { value: number; label: string }) {
  return (
    <progress value={value} max={1} aria-label={label}>
      {Math.round(value * 100)} %
    </progress>
  );
}
