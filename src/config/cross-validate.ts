import { UserError } from "../lib/errors.ts";
import type { Config } from "./load.ts";
import { paymentSettings } from "./payments.ts";
import { s3Settings } from "./stores.ts";

/**
 * What settings need of each other, told at once. To be asked before anything is made. `more` are checks of the caller's own;
 * throws one UserError.
 */
export function crossValidate(config: Config, ...more: ((config: Config) => unknown)[]): void {
  const checks = [config.storage === "s3" ? s3Settings : () => null, paymentSettings, ...more];
  const faults = checks.flatMap((check) => {
    try {
      check(config);
      return [];
    } catch (error) {
      if (error instanceof UserError) return [error];
      throw error;
    }
  });
  const [first] = faults;
  if (!first) return;
  const isUsage = faults.some(({ exitCode }) => exitCode === 2);
  throw new UserError(faults.map(({ message }) => message).join(" "), isUsage ? 2 : 1);
}
