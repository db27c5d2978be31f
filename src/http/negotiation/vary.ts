import type { ServerResponse } from 'node:http';

/** Adds fields to the value of a `Vary` header; `*` includes all fields (RFC 9110 §12.5.5). */
export function withVary(present: number | string | string[] | undefined, fields: string): string {
  if (present === undefined) return fields;
  const names = String(present)
    .split(',')
    .map((name) => name.trim().toLowerCase());
  if (names.includes('*')) return String(present);
  const missing = fields.split(', ').filter((name) => !names.includes(name.toLowerCase()));
  return [String(present), ...missing].join(', ');
}

/** Adds the fields that `Vary` does not contain yet. */
export function addVary(res: ServerResponse, fields: string): void {
  res.setHeader('Vary', withVary(res.getHeader('Vary'), fields));
}
