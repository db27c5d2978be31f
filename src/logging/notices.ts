let noticeGiven = false;

/** Logs one line, once per process, about defaults that production servers usually change. */
export function noteProductionDefaults(page: string, options: readonly string[]): void {
  if (noticeGiven || options.length === 0) return;
  noticeGiven = true;
  console.warn(
    `espalier: NODE_ENV is production, and these defaults are on: ${options.join(', ')}. See ${page}`,
  );
}
