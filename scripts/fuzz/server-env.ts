const LIMITS = ["UPLOADS", "BILLING", "TRANSLATE", "SYNC", "LIVE", "DEVICE_TOKENS", "BEACON"];

/** Settings of a server under far more than normal load. */
export const SERVER_ENV: Record<string, string> = {
  ...Object.fromEntries(LIMITS.map((name) => [`VODBOX_RATE_LIMIT_${name}`, "1000000/1"])),
  VODBOX_LOG_FORMAT: "json",
  VODBOX_MIN_FREE_BYTES: "0",
};
