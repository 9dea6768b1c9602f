import { foldMenu } from "./parts/guide/menu.ts";
import { offerSearch } from "./parts/guide/search.ts";

/** The script of the guide's pages: what they say is there without it. */
foldMenu();
offerSearch();
