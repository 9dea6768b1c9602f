export {
  activeTraceparent,
  bound,
  continueTrace,
  inSpan,
  type SpanKind,
  type SpanOptions,
  type Tracer,
  traced,
} from "./active-span.ts";
export { formatTraceparent, parseTraceparent, TRACEPARENT } from "./traceparent.ts";
