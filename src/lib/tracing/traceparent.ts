/** The header of W3C Trace Context (Recommendation of 2021-11-23), 3.2. `tracestate` is not passed on, which 3.3 allows. */
export const TRACEPARENT = "traceparent";

/** `traceId`: 32, `spanId`: 16 lower case hexadecimal digits. */
export type TraceContext = { traceId: string; spanId: string; isSampled: boolean };

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const MAX_LENGTH = 512;
const isZero = (id: string) => /^0+$/.test(id);

/**
 * What a header says; null for an invalid one, with which a trace begins. Of later versions, the fields of version 00 (4.3).
 * @example
 * const context = parseTraceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
 * context // => { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", isSampled: true }
 * parseTraceparent("01") // => null
 */
export function parseTraceparent(header: string | null | undefined): TraceContext | null {
  if (header == null || header.length > MAX_LENGTH) return null;
  const [, version, traceId = "", spanId = "", flags = "", more] = FORM.exec(header) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return null;
  if (isZero(traceId) || isZero(spanId)) return null;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/**
 * The header that says it.
 * @example
 * const context = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331", isSampled: false };
 * formatTraceparent(context) // => "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
 */
export const formatTraceparent = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
