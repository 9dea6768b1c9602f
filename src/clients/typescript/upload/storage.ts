/** Where an upload is remembered until it is complete, so that a later call resumes it. */
export type ResumeStorage = {
  get(key: string): Promise<string | null> | string | null;
  set(key: string, value: string): Promise<void> | void;
  remove(key: string): Promise<void> | void;
};

/** The page's localStorage; null where there is none, or where the browser does not allow it. */
export function pageStorage(): ResumeStorage | null {
  try {
    const { localStorage } = globalThis;
    if (!localStorage) return null;
    return {
      get: (key) => localStorage.getItem(key),
      // Full: the upload works, and cannot be resumed.
      set: (key, value) => {
        try {
          localStorage.setItem(key, value);
        } catch {}
      },
      remove: (key) => localStorage.removeItem(key),
    };
  } catch {
    return null;
  }
}
