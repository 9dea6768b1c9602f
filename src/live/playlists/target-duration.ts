/** Latency suffers: the publisher is warned. */
export const LONG_TARGET_SECONDS = 4;
/** Players cannot follow: the publisher is refused. */
export const MAX_TARGET_SECONDS = 12;
const MARGIN_SECONDS = 0.25;

/**
 * TARGETDURATION (draft-pantos-hls-rfc8216bis, 4.4.3.1) for a first segment of so many seconds. It cannot grow later, and
 * frames are not exact: a first segment of 4.3 s makes it 5, so that one of 4.6 s may follow, which counts as 5.
 */
export const targetOf = (longestSeconds: number): number => Math.max(1, Math.ceil(longestSeconds - MARGIN_SECONDS));
