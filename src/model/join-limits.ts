/** Assets that one join has at most, for the API and the console: their manifests are read by the request. */
export const MAX_JOINED = 50;
