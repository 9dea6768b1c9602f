import { embedded } from "#lib/executable";
import { Markup } from "./html.ts";

let style: Markup | undefined;
/** The style sheet of all pages, in the console's colors; small enough to be inlined. */
export function pageStyle(): Markup {
  style ??= new Markup(`${embedded("web/colors.css").toString("utf8")}${RULES}`);
  return style;
}

const RULES = `
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 Inter,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:72rem;margin:0 auto;padding:1.5rem 1.5rem 3rem}
.frame{position:relative;background:#000;border-radius:12px;overflow:hidden;aspect-ratio:var(--shape,16/9);width:100%;max-height:80vh;margin:0 auto;display:grid}
svc-player{display:block;width:100%;height:100%;min-height:0;aspect-ratio:auto}
svc-player>img{display:block;width:100%;height:100%;object-fit:contain}
h1{font-size:1.45rem;line-height:1.3;letter-spacing:-.01em;margin:1.2rem 0 .2rem;overflow-wrap:anywhere}
.heard{position:absolute;width:1px;height:1px;margin:0;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.about{color:var(--quiet-text);margin:0;font-size:.95rem;font-variant-numeric:tabular-nums}
.description{white-space:pre-line;overflow-wrap:anywhere;max-width:48rem;background:var(--surface);border:1px solid var(--line);border-radius:10px;padding:.9rem 1.1rem;margin:1.1rem 0 0}
#transcript{margin:1.1rem 0 0;max-height:24rem;overflow-y:auto}
#transcript:has(svc-transcript){max-height:none;overflow:visible}
#transcript svc-transcript{background:var(--surface)}
#transcript h2{font-size:1rem;margin:0}
.message{display:grid;place-content:center;justify-items:center;gap:.6rem;min-height:14rem;text-align:center;padding:2rem;color:#e8ecf2;background:radial-gradient(circle at 50% 35%,#1d2532,#0a0d12 75%)}
.message h1{font-size:1.2rem;margin:0}
.message span{color:#aeb8c6;max-width:32rem}
.message form{display:grid;gap:.5rem;width:min(20rem,100%);text-align:left}
.message input,.message button,.download button{font:inherit;padding:.5rem .8rem;border-radius:8px}
.message input{border:1px solid #8c97a8;background:#0a0d12;color:#eef1f5}
.message button,.download button{border:1px solid #3b6cf6;background:#2f5fe8;color:#fff;cursor:pointer}
.message input:focus-visible,.message button:focus-visible,.download button:focus-visible{outline:3px solid #8fb0ff;outline-offset:2px}
.message p{margin:0;color:#ffb4ab}
.download{margin:1rem 0 0}
.embed .download{position:absolute;top:.6rem;right:.6rem;margin:0}
progress{width:16rem;max-width:100%;height:.4rem;accent-color:#5b86ff}
.embed,.embed body,.embed main{height:100%;background:#000}
.embed main{max-width:none;padding:0}
.embed .frame{height:100%;max-height:none;border-radius:0;aspect-ratio:auto}
@media(max-width:40rem){.watch main{padding:0 0 2rem}.watch .frame{border-radius:0}.watch main>h1,.about,.description,.download,#transcript{margin-left:1rem;margin-right:1rem}.watch main>h1{font-size:1.2rem;margin-top:.9rem}.message{padding:1.5rem}}
`;
