/** A state with a color; its text says the same. */
export function Badge({ state, text }: { state: string; text: string }) {
  return <span class={`badge ${state}`}>{text}</span>;
}
