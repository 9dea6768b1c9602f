/** What the player keeps in the browser: choices of the viewer, and where each video was left. */
export type Remembered = {
  volume?: number;
  isMuted?: boolean;
  rate?: number;
  /** Language of captions; null: switched off. */
  captions?: string | null;
  /** Seconds by id, least recently watched first. */
  positions: [id: string, seconds: number][];
};

const KEY = "svc-player";
/** The oldest positions are dropped: a page's storage is shared with everything else on its site. */
const MAX_POSITIONS = 200;

const isNumber = (value: unknown, least: number, most: number): value is number =>
  typeof value === "number" && value >= least && value <= most;

const isPosition = (value: unknown): value is [string, number] =>
  Array.isArray(value) && typeof value[0] === "string" && isNumber(value[1], 0, Number.MAX_VALUE);

/** What is stored, without what is not valid. Nothing is remembered where the browser or the page forbids storage. */
export function remembered(): Remembered {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    const { volume, isMuted, rate, captions, positions } = stored as Record<string, unknown>;
    return {
      ...(isNumber(volume, 0, 1) && { volume }),
      ...(typeof isMuted === "boolean" && { isMuted }),
      ...(isNumber(rate, 0.25, 4) && { rate }),
      ...((typeof captions === "string" || captions === null) && { captions }),
      positions: Array.isArray(positions) ? positions.filter(isPosition) : [],
    };
  } catch {
    return { positions: [] };
  }
}

/** Changes what is stored. It is read again, because other tabs write it too. */
export function remember(change: Partial<Remembered>): void {
  try {
    const all = { ...remembered(), ...change };
    localStorage.setItem(KEY, JSON.stringify({ ...all, positions: all.positions.slice(-MAX_POSITIONS) }));
  } catch {
    // Forbidden, or full: playback does not depend on it.
  }
}
