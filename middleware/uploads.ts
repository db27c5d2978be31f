import { createFormReceiver } from '../src/uploads/receive-files.ts';
import type { FormReceiver, ReceiveFilesOptions } from '../types/uploads.ts';

export type * from '../types/uploads.ts';

/**
 * Receives the files and the text fields of `multipart/form-data` forms. It sets `req.files` and `req.body`, and calls
 * `next` when everything has arrived within the limits. No file stays behind: all of them are deleted when the response
 * closes, so save what you keep. A form that is refused goes to `next(error)`; the error has a `status` and a `code`. Requests
 * with another body pass unchanged.
 *
 * @param options - every option has a default
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value
 * @example
 * const photos = receiveFiles({ files: { photo: 1 }, accept: ['image/*'] });
 * app.post('/photos', photos, async (req, res) => {
 *   const [photo] = photos.form(req).files.photo;
 *   if (photo) await photo.saveTo(`uploads/${randomUUID()}`);
 *   res.redirect(303, '/');
 * });
 */
export function receiveFiles<Name extends string = string, Stored = undefined>(
  options?: ReceiveFilesOptions<Name, Stored>,
): FormReceiver<Name, Stored> {
  return createFormReceiver(options);
}
