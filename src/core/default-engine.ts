/** The engine of those who name none. A module of its own: the test suite maps it to run everything under graphql-js too. */
export const DEFAULT_ENGINE: 'compiled' | 'graphql-js' = 'compiled';
