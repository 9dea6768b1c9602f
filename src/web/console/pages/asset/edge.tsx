import { duration } from "#web/console/format.ts";

const STEP_MS = 100;
const LARGE_STEP_MS = 1000;

type Props = {
  side: "start" | "end";
  label: string;
  ms: number;
  mostMs: number;
  /** The time at a position of the pointer. */
  msAt(clientX: number): number;
  onMove(ms: number): void;
};

/** The start or end of a cue: moved with the pointer, or with arrow keys by 0.1 s, and by 1 s with Shift. */
export function Edge({ side, label, ms, mostMs, msAt, onMove }: Props) {
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.shiftKey ? LARGE_STEP_MS : STEP_MS;
    const to = { ArrowLeft: ms - step, ArrowRight: ms + step, Home: 0, End: mostMs }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    onMove(to);
  };
  return (
    <span
      class={`edge ${side}`}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={mostMs}
      aria-valuenow={ms}
      aria-valuetext={`${duration(ms / 1000)} (${ms / 1000} s)`}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.focus();
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (event.currentTarget.hasPointerCapture(event.pointerId)) onMove(msAt(event.clientX));
      }}
    />
  );
}
