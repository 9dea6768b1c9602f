/** Parameter sets with their lengths in 2 bytes, as decoder configurations have them (ISO/IEC 14496-15, 5.3.3.1.2 and 8.3.3.1.2). */
export const parameterSets = (sets: readonly Buffer[]): Buffer =>
  Buffer.concat(
    sets.flatMap((set) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(set.length);
      return [length, set];
    }),
  );
