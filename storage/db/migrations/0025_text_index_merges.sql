-- FTS5 merges segments of its index while it writes, 64 pages for each page written and level: a step of up to 50 ms on
-- the thread that serves requests. Here it only merges 100 segments of one level at once, which are small then; the
-- program merges in small steps (storage/db/text-index.ts). https://www.sqlite.org/fts5.html#the_automerge_configuration_option
INSERT INTO assets_text (assets_text, rank) VALUES ('automerge', 0);
INSERT INTO assets_text (assets_text, rank) VALUES ('crisismerge', 100);
