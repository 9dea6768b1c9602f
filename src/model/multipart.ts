/** Maximum number of parts of one object (Amazon S3, "Multipart upload limits"). */
export const MAX_PARTS = 10_000;
