import type { Fields } from "./selection.ts";

declare module "drizzle-orm/utils" {
  /** Exported by the module but missing in its types. */
  export function orderSelectedFields(fields: Record<string, unknown>): Fields;
}
