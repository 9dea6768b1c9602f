import { forApp } from "#app.ts";
import type { TargetReport } from "#live/simulcast/messages.ts";

/** What the ingest process of this server reported last about the targets of channels that are on air, by channel. */
export const targetStates = forApp(() => new Map<number, TargetReport[]>());
