type Part = { label: string; value: number };

/** Parts of a whole as one bar; their texts are elsewhere on the page. `whole`: what the full width means. */
export function ShareBar({ label, parts, whole }: { label: string; parts: readonly Part[]; whole: number }) {
  let from = 0;
  return (
    <svg class="share" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={label}>
      {parts.map(({ label: name, value }, index) => {
        const width = whole === 0 ? 0 : (value / whole) * 100;
        const x = from;
        from += width;
        return (
          <rect key={name} class={`part-${index}`} x={x} y="0" width={width} height="4">
            <title>{name}</title>
          </rect>
        );
      })}
    </svg>
  );
}
