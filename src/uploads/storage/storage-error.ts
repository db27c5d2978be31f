import { HttpError } from '../../http/reply/http-error.ts';

const NO_SPACE = ['ENOSPC', 'EDQUOT', 'EFBIG'];
const OUT_OF_RESOURCES = ['EMFILE', 'ENFILE', 'ENOMEM', 'EAGAIN'];

/**
 * Converts an error of the temporary file, or of the files of the parser. Clients get 507 for a full disk and 503 if descriptors or memory ran out;
 * the operator gets the cause. Any other failure is unexpected.
 */
export function storageError(cause: Error): Error {
  const { code = '' } = cause as NodeJS.ErrnoException;
  if (NO_SPACE.includes(code)) {
    return new HttpError(507, 'There is no space for the upload', { code: 'NO_SPACE', cause });
  }
  if (!OUT_OF_RESOURCES.includes(code)) return cause;
  return new HttpError(503, 'The server cannot store the upload now; try again', {
    headers: { 'retry-after': '1' },
    code: 'STORAGE_UNAVAILABLE',
    cause,
  });
}
