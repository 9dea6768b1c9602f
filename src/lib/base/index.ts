export { alternatives } from "./alternatives.ts";
export { mapBounded, slots } from "./bounded.ts";
export { type Clock, type ClockStep, iso, systemClock } from "./clock.ts";
export { DOCUMENT_LIMITS, MAX_SUBTITLE_BYTES, requireAtMost, TooComplex, tooComplex } from "./document-limits.ts";
export { clientClosed, HttpError, invalid, notFound, UserError, withoutStatement } from "./errors.ts";
export { createKeyedLock } from "./keyed-lock.ts";
export {
  canonicalLanguage,
  englishName,
  languageOfName,
  MAX_LANGUAGE_CHARACTERS,
  ownName,
  primaryLanguage,
  spokenTag,
} from "./language.ts";
export {
  type AcquireLock,
  type Lock,
  LockManager,
  type LockOptions,
  type LockRequest,
  withLock,
} from "./lock-manager.ts";
export { arrival } from "./loop-share.ts";
export { memoizeByObject } from "./memoize-by-object.ts";
export { monthOf, nextMonth, spansByMonth } from "./months.ts";
export { backgroundPacer, pacer, yieldToEventLoop, yieldToRequests } from "./pace.ts";
export { exposition, Histogram, type MetricFamily, type Sample } from "./prometheus.ts";
export { type NumberedLine, RecentLines } from "./recent-lines.ts";
export { recentRequests } from "./recent-requests.ts";
export { runToEnd, type Sliced } from "./sliced.ts";
export { SteppingClock } from "./stepping-clock.ts";
export { runInSlices } from "./time-slices.ts";
export { abortAfter, onSilence, setInterval, setTimeout, sleep } from "./timers.ts";
export {
  hmac,
  newApiToken,
  newExternalId,
  newOrderId,
  newSigningKeyId,
  newStreamKey,
  randomName,
  sameSecret,
  sha256,
} from "./tokens.ts";
export { withoutTrailing } from "./without-trailing.ts";
export { writeAll } from "./write-all.ts";
