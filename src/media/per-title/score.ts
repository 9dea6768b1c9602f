/** What a trial measured of one rendition, scaled to the size of the largest one and compared with the source. */
export type Measured = {
  /** Mean SSIM of the luma, 0 to 1. */
  ssim: number;
  /** PSNR of the luma in dB, of the mean squared error of all frames. */
  psnr: number;
};

/**
 * Weights of a logistic regression against VMAF 0.6.1 over trial encodes of natural clips (scripts/bench/per-title.ts): per
 * decibel of SSIM (-10 log10(1 - SSIM)) and of PSNR, per halving of the height, and the constant. Of one clip the estimates of
 * different sizes and qualities differ from VMAF by 2 to 3 points; that of a clip alone by 8 in the middle of the scale.
 *
 * The weight of the height is higher than the regression's. Both measures punish the blur of scaling more than VMAF does, and a
 * large rendition with few bits must not replace a small one that looks better.
 */
const WEIGHTS = { ssim: 0.145, psnr: 0.129, halving: 0.25, constant: -5.2 };
/** Beyond these, differences cannot be seen; identical frames have infinite values. */
const MOST = { ssimDb: 30, psnr: 60 };

/** The quality on a scale without ends, on which it is nearly linear in the encoder's CRF. `halvings`: of the height. */
export function qualityOf({ ssim, psnr }: Measured, halvings: number): number {
  const ssimDb = Math.min(MOST.ssimDb, -10 * Math.log10(Math.max(1e-9, 1 - ssim)));
  return (
    WEIGHTS.ssim * ssimDb + WEIGHTS.psnr * Math.min(MOST.psnr, psnr) + WEIGHTS.halving * halvings + WEIGHTS.constant
  );
}

/** A quality as a score of 0 to 100, with one decimal. */
export const scoreOf = (quality: number): number => Math.round(1000 / (1 + Math.exp(-quality))) / 10;
