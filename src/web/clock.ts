/** 0:08, 12:34, 1:02:03. */
export function clock(durationSeconds: number): string {
  const whole = Math.round(durationSeconds);
  const parts = [Math.floor(whole / 60) % 60, whole % 60];
  if (whole >= 3600) parts.unshift(Math.floor(whole / 3600));
  return parts.map((part, index) => (index === 0 ? String(part) : String(part).padStart(2, "0"))).join(":");
}
