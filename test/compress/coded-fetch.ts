/** `fetch` for clients whose responses must all be compressed, however short they are. */
export const codedFetch: typeof fetch = async (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set('accept-encoding', 'gzip, identity;q=0');
  const response = await fetch(input, { ...init, headers });
  expect(response.headers.get('content-encoding')).toBe('gzip');
  return response;
};
