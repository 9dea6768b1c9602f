/**
 * What a view is of. In the tables of views the id of a live channel is negative: `asset_id` is above 0 for an asset, below 0
 * for a channel, and 0 in sums of all views of a tenant.
 */
export type Subject = {
  id: number;
  tenantId: number;
  /** 0 for a live channel: nothing is known of its end. */
  durationSeconds: number;
};

/** What an id of these tables is to clients. */
export const subjectIds = (id: number) => ({ asset_id: id > 0 ? id : null, channel_id: id < 0 ? -id : null });

export const channelSubject = ({ id, tenantId }: { id: number; tenantId: number }): Subject => ({
  id: -id,
  tenantId,
  durationSeconds: 0,
});
