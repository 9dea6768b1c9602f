import { Markup } from "../html.ts";

/** The style of a collection's page and playlist, after that of all pages. */
export const COLLECTION_STYLE = new Markup(`
.top{display:flex;flex-wrap:wrap;gap:1rem 2rem;align-items:end;justify-content:space-between;margin:.5rem 0 1.75rem}
.top h1{font-size:1.9rem;letter-spacing:-.02em;margin:0}
.top .logo{display:block;max-height:2.5rem;max-width:12rem;margin:0 0 1rem}
.lead{margin:.4rem 0 0;max-width:44rem;white-space:pre-line;overflow-wrap:anywhere;display:-webkit-box;-webkit-line-clamp:6;-webkit-box-orient:vertical;overflow:hidden}
.links{display:flex;flex-wrap:wrap;gap:.4rem 1rem;margin:.6rem 0 0;color:var(--quiet-text);font-size:.95rem}
.links a,.pages a{color:var(--accent);text-decoration:none;font-weight:500}
.links a:hover,.pages a:hover{text-decoration:underline}
.search{display:flex;gap:.5rem;flex:0 1 25rem;min-width:14rem}
.search input{flex:1;min-width:0;font:inherit;padding:.5rem .8rem;border:1px solid var(--strong-line);border-radius:8px;background:var(--surface);color:var(--text)}
.search button{font:inherit;font-weight:500;padding:.5rem 1rem;border-radius:8px;border:1px solid var(--strong-line);background:var(--surface);color:var(--text);cursor:pointer}
.grid{list-style:none;margin:0;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,16.5rem),1fr));gap:1.9rem 1.25rem}
.card{display:grid;gap:.65rem;color:inherit;text-decoration:none;border-radius:12px}
.shot{position:relative;display:grid;place-items:center;aspect-ratio:16/9;border-radius:12px;overflow:hidden;background:radial-gradient(circle at 50% 35%,#1d2532,#0a0d12 75%)}
.shot img{position:absolute;inset:0;width:100%;height:100%;object-fit:contain;transition:transform .18s ease}
.shot svg{width:2.5rem;fill:#5b6472}
.card:hover .shot img{transform:scale(1.025)}
.length{position:absolute;right:.5rem;bottom:.5rem;padding:.1rem .4rem;border-radius:5px;background:rgb(0 0 0/.8);color:#fff;font-size:.8rem;font-weight:500;font-variant-numeric:tabular-nums}
.card strong{font-weight:600;line-height:1.35;letter-spacing:-.005em;overflow-wrap:anywhere;display:-webkit-box;-webkit-line-clamp:2;-webkit-box-orient:vertical;overflow:hidden}
.card:hover strong{color:var(--accent)}
.card time{color:var(--quiet-text);font-size:.9rem;margin-top:-.4rem}
.nothing{color:var(--quiet-text);text-align:center;padding:5rem 1rem}
.pages{display:flex;gap:1.5rem;justify-content:center;margin:2.5rem 0 0}
.pages a{padding:.55rem 1.2rem;border:1px solid var(--strong-line);border-radius:8px;background:var(--surface)}
.card:focus-visible,.links a:focus-visible,.pages a:focus-visible,.search :focus-visible,.list a:focus-visible,.bar :focus-visible{outline:3px solid #5b86ff;outline-offset:2px}
@media(prefers-reduced-motion:reduce){.shot img{transition:none}}
@media(max-width:40rem){.watch main{padding:1.25rem 1rem 2rem}.watch .top h1{font-size:1.5rem;margin:0}.search{flex:1 1 100%}}
.playlist{height:100%;display:grid;grid-template-columns:minmax(0,1fr) 20rem;background:#0a0d12;color:#eef1f5}
.playlist .frame{border-radius:0}
.side{display:grid;grid-template:auto minmax(0,1fr)/minmax(0,1fr);min-height:0;border-left:1px solid #252c37}
.bar{display:flex;align-items:center;gap:.4rem;padding:.55rem .75rem;border-bottom:1px solid #252c37;font-size:.9rem}
.bar h1{flex:1;min-width:0;margin:0;font-size:.95rem;line-height:1.3;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.bar button{display:grid;place-items:center;width:2rem;height:2rem;padding:0;border:0;border-radius:7px;background:none;color:inherit;cursor:pointer}
.bar button:hover{background:#252c37}
.bar button:disabled{opacity:.35;cursor:default}
.bar svg{width:1.1rem;fill:currentColor}
.bar label{display:flex;align-items:center;gap:.35rem;color:#aeb8c6;white-space:nowrap}
.bar input{accent-color:#5b86ff;margin:0}
.list{position:relative;list-style:none;margin:0;padding:.35rem;overflow-y:auto}
.list a{display:grid;grid-template-columns:6rem minmax(0,1fr);gap:.7rem;padding:.4rem;border-radius:9px;color:inherit;text-decoration:none;font-size:.9rem}
.list a:hover{background:#161b22}
.list a[aria-current]{background:#1d2836}
.list .shot{border-radius:6px}
.list .length{right:.25rem;bottom:.25rem;font-size:.7rem}
.list strong{font-weight:500;line-height:1.35;overflow-wrap:anywhere;display:-webkit-box;-webkit-line-clamp:3;-webkit-box-orient:vertical;overflow:hidden}
@media(max-width:44rem){.playlist{grid-template-columns:none;grid-template-rows:minmax(0,1fr) minmax(0,42%)}.side{border-left:0;border-top:1px solid #252c37}}
@media(max-height:22rem){.playlist{grid-template-rows:minmax(0,1fr) auto}.side .list{display:none}}
`);
