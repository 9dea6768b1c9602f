import { AsyncLocalStorage } from "node:async_hooks";

/** Never contains URLs, arguments of programs, texts of users, or credentials: traces leave the machine. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;
export type SpanKind = "internal" | "server" | "client" | "consumer";
export type SpanOptions = {
  kind?: SpanKind;
  attributes?: Attributes;
  /** The `traceparent` of what caused it; without one, a trace begins, which the sampler decides about. */
  parent?: string | null;
  /** The parent is in another process. */
  isRemote?: boolean;
  /** The `traceparent` of another trace that has to do with it. */
  link?: string | null;
};
export type Span = {
  /** Also of a span that is not recorded: what follows from it is then not recorded either. */
  readonly traceparent: string;
  set(attributes: Attributes): void;
  /** `type`: a code or the name of a class, never a message, which may contain URLs. */
  fail(type: string): void;
  end(): void;
};
/** What records spans. Its methods never throw, and never wait for a collector. */
export type Tracer = {
  start(name: string, options: SpanOptions): Span;
  /** Sends what is left, for at most two seconds. */
  close(): Promise<void>;
};

type Scope = { tracer: Tracer | null; traceparent: string; isOver: boolean };
const active = new AsyncLocalStorage<Scope | undefined>();

/** Background work that continues after a span has ended does not belong to it. */
function current(): Scope | undefined {
  const scope = active.getStore();
  return scope?.isOver === false ? scope : undefined;
}

/** The `traceparent` for what the running work causes elsewhere; null outside of spans. */
export const activeTraceparent = (): string | null => current()?.traceparent ?? null;

async function within<T>(scope: Scope, work: () => Promise<T>): Promise<T> {
  try {
    return await active.run(scope, work);
  } finally {
    scope.isOver = true;
  }
}

/** What is recorded of an error: its code, or its class. */
function typeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : error.name;
}

/** Runs `work` in a span of its own, which ends with it, and fails with its error. */
export async function inSpan<T>(
  tracer: Tracer,
  name: string,
  options: SpanOptions,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const span = tracer.start(name, options);
  try {
    return await within({ tracer, traceparent: span.traceparent, isOver: false }, () => work(span));
  } catch (error) {
    span.fail(typeOf(error));
    throw error;
  } finally {
    span.end();
  }
}

/** Runs `work` in a span below the active one; without one, or without a tracer, it only runs it. */
export function traced<T>(name: string, options: Omit<SpanOptions, "parent">, work: () => Promise<T>): Promise<T> {
  const scope = current();
  if (!scope?.tracer) return work();
  return inSpan(scope.tracer, name, { ...options, parent: scope.traceparent }, work);
}

/** Runs `work` as a part of a trace that this process does not record, but passes on. */
export const continueTrace = <T>(traceparent: string, work: () => Promise<T>): Promise<T> =>
  within({ tracer: null, traceparent, isOver: false }, work);

/** `work`, for a queue that calls it: with the span that is active now, whichever is active then. */
export function bound<Args extends unknown[], T>(work: (...args: Args) => T): (...args: Args) => T {
  const scope = active.getStore();
  return (...args) => active.run(scope, () => work(...args));
}
