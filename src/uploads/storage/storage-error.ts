import { HttpError } from '../../http/reply/http-error.ts';
import { codeOf, isResourceError } from '../../http/reply/system-error.ts';

const NO_SPACE = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/**
 * Converts an error of the temporary file or of the parser's files. Clients get 507 for a full disk, and 503 if
 * descriptors or memory ran out. The operator gets the cause. Any other failure is unexpected.
 */
export function storageError(cause: Error): Error {
  if (NO_SPACE.has(codeOf(cause) ?? '')) {
    return new HttpError(507, 'There is no space for the upload', { code: 'NO_SPACE', cause });
  }
  if (!isResourceError(cause)) return cause;
  return new HttpError(503, 'The server cannot store the upload now; try again', {
    headers: { 'retry-after': '1' },
    code: 'STORAGE_UNAVAILABLE',
    cause,
  });
}
