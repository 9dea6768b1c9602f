import type { Owner } from "../limits/fair-queue.ts";
import type { Context } from "./route.ts";

/** The tenant or address whose slots an operation uses. */
export const queueOwner = ({ caller, address }: Pick<Context, "caller" | "address">): Owner =>
  caller.kind === "key" || caller.kind === "batch" ? caller.tenantId : caller.kind === "admin" ? "admin" : address;
