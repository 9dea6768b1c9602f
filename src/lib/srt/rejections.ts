import type { RefusalReason } from "#lib/publishing";

/**
 * Reasons of rejections: of the protocol (draft-sharabayko-srt-01, section 3.2.1, table 7), and from 1000 on those of the
 * SRT Access Control guidelines. Encoders show the number.
 */
export const REJECTION = {
  resource: 3,
  rogue: 4,
  version: 8,
  wrongPassphrase: 10,
  encryption: 11,
  messageApi: 12,
  congestion: 13,
  filter: 14,
  group: 15,
  badRequest: 1400,
  unauthorized: 1401,
  overload: 1402,
  forbidden: 1403,
  badMode: 1405,
  conflict: 1409,
  down: 1503,
} as const;

export const REFUSALS: Readonly<Record<RefusalReason, number>> = {
  refused: REJECTION.unauthorized,
  taken: REJECTION.conflict,
  limit: REJECTION.overload,
  throttled: REJECTION.forbidden,
  unavailable: REJECTION.down,
};
