/** `fetch` for clients whose responses must all be compressed. */
export const codedFetch: typeof fetch = async (...request) => {
  const response = await fetch(...request);
  expect(response.headers.get('content-encoding')).toBe('gzip');
  return response;
};
