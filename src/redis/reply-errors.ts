/** Whether Redis has replied with an error, such as NOPERM or WRONGPASS. */
export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Whether a replica has refused to write. */
export const isReadOnly = (error: unknown): boolean =>
  isReplyError(error) && error.message.startsWith('READONLY');

/** Whether Redis will reply with this error again, unlike LOADING, CLUSTERDOWN or a reached `maxclients`. */
export function isRefusal(error: unknown): error is Error {
  if (!isReplyError(error) || error.message.startsWith('ERR max number of clients')) return false;
  return /^(?:DENIED|ERR|NOAUTH|NOPERM|WRONGPASS|WRONGTYPE)\b/.test(error.message);
}
