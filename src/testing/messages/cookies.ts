/** Returns the value of the `Cookie` header (RFC 6265 §4.2.1). */
export function cookieHeader(cookies: Readonly<Record<string, string>>): string {
  return Object.entries(cookies)
    .map(([name, value]) => `${name}=${value}`)
    .join('; ');
}

/** Returns the cookies that a response sets, by name, without those that it deletes (RFC 6265 §5.2). */
export function parseSetCookie(lines: readonly string[]): Record<string, string> {
  const cookies = new Map<string, string>();
  for (const line of lines) {
    const [pair = '', ...attributes] = line.split(';');
    const equals = pair.indexOf('=');
    if (equals <= 0) continue;
    const name = pair.slice(0, equals).trim();
    if (isExpired(attributes)) cookies.delete(name);
    else cookies.set(name, pair.slice(equals + 1).trim());
  }
  return Object.fromEntries(cookies);
}

/** `Max-Age` has precedence over `Expires`. */
function isExpired(attributes: readonly string[]): boolean {
  const values = new Map(attributes.map((attribute) => splitAttribute(attribute)));
  const maxAge = values.get('max-age');
  if (maxAge !== undefined) return Number(maxAge) <= 0;
  const expires = values.get('expires');
  return expires !== undefined && Date.parse(expires) <= Date.now();
}

function splitAttribute(attribute: string): [name: string, value: string] {
  const [name = '', ...value] = attribute.split('=');
  return [name.trim().toLowerCase(), value.join('=').trim()];
}
