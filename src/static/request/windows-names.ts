// Device names exist in every directory and with any extension; superscript digits count as digits.
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])(?:[. ].*)?$/i;
// Streams and drives (`a.txt::$DATA`, `c:`), wildcards, trailing dots and spaces (Windows drops them), 8.3
// names.
const OTHER = /[:<>"|?*]|[. ]$|~\d/;

/** Whether Windows opens a device, or a file of another name, for this name. */
export function isReservedOnWindows(segment: string): boolean {
  return DEVICE.test(segment) || OTHER.test(segment);
}
