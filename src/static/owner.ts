import type { Owner } from '../options/settle.ts';

/** Whose options they are, for messages. */
export const OWNER: Owner = { name: 'staticFiles', page: 'static-files' };
