import { alternatives, UserError } from "#lib/base";

/** The value of an option that is `on` or `off`; undefined without it. `others`: what the caller accepts besides. */
export function isOn(flag: string, text: string | undefined, others: readonly string[] = []): boolean | undefined {
  if (text === undefined) return undefined;
  if (text !== "on" && text !== "off")
    throw new UserError(`${flag} must be ${alternatives(["on", "off", ...others])}.`, 2);
  return text === "on";
}
