import { integer } from "drizzle-orm/sqlite-core";

export const id = () => integer("id").primaryKey({ autoIncrement: true });
/** Milliseconds since the epoch. */
export const times = { createdAt: integer("created_at").notNull(), updatedAt: integer("updated_at").notNull() };
