/** Generated films for the screenshots of the docs: the same images each time, free of copyright. */
export type Film = { title: string; description: string; seconds: number; graph: string; tags: Record<string, string> };

const SIZE = "1280x720";
const glow = "split[a][b];[b]gblur=sigma=14[c];[a][c]blend=all_mode=screen:all_opacity=0.9";

export const FILMS: readonly Film[] = [
  {
    title: "Descent into the Mandelbrot set",
    description: "Towards the seahorse valley, without a landing.",
    seconds: 24,
    graph: `mandelbrot=s=${SIZE}:rate=30:start_scale=2.4:end_scale=0.02:end_pts=700:maxiter=400`,
    tags: { series: "fractals", year: "2026" },
  },
  {
    title: "Aurora, slowly",
    description: "Drifting light over a quiet horizon.",
    seconds: 30,
    graph: `gradients=s=${SIZE}:rate=30:c0=#07122b:c1=#0f6d5f:c2=#43d69a:c3=#5a2d8a:nb_colors=4:seed=11:speed=0.006:type=radial`,
    tags: { series: "light" },
  },
  {
    title: "Rule 110",
    description: "One line of cells computes everything, given time.",
    seconds: 20,
    graph:
      "cellauto=s=320x180:rate=30:rule=110:random_seed=3:random_fill_ratio=0.2,scale=1280:720:flags=neighbor,colorchannelmixer=rr=1:gg=0.75:bb=0.3",
    tags: { series: "automata" },
  },
  {
    title: "Sierpinski's carpet, unrolled",
    description: "A walk along an endless pattern.",
    seconds: 18,
    graph: `sierpinski=s=${SIZE}:rate=30:seed=8:type=carpet,colorchannelmixer=rr=0.25:gg=0.5:bb=1`,
    tags: { series: "fractals", year: "2025" },
  },
  {
    title: "Plasma study no. 4",
    description: "Four colors that never meet twice in the same way.",
    seconds: 26,
    graph: `gradients=s=${SIZE}:rate=30:c0=#ff6b35:c1=#f7c59f:c2=#1a659e:c3=#004e89:nb_colors=4:seed=4:speed=0.02:type=spiral`,
    tags: { series: "light", year: "2026" },
  },
  {
    title: "A quiet afternoon in a cellular garden",
    description: "Conway's Game of Life from a random start. What dies leaves a glow.",
    seconds: 32,
    graph: `life=s=160x90:seed=7:ratio=0.18:mold=6:r=12:life_color=#ffd166:death_color=#2f6bd7:mold_color=#0b1026,trim=start=2,setpts=PTS-STARTPTS,fps=30,scale=1280:720:flags=neighbor,format=gbrp,${glow}`,
    tags: { series: "automata", year: "2026" },
  },
];
