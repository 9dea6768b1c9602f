const LIMITS = ["UPLOADS", "BILLING", "TRANSLATE", "SYNC", "LIVE", "DEVICE_TOKENS", "BEACON"];

/** Settings of a server that is sent more than anybody else would send. */
export const SERVER_ENV: Record<string, string> = {
  ...Object.fromEntries(LIMITS.map((name) => [`VODBOX_RATE_LIMIT_${name}`, "1000000/1"])),
  VODBOX_LOG_FORMAT: "json",
  VODBOX_MIN_FREE_BYTES: "0",
};
