/** The mark of the pages' icon. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <circle cx="16" cy="16" r="16" />
    <path d="M12 9l12 7-12 7z" />
  </svg>
);

/** The mark and the name. */
export const Brand = () => (
  <span class="brand">
    <Mark />
    vodbox
  </span>
);
