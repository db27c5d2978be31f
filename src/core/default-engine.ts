/**
 * The default of the option `engine`. A separate module, so that the tests can replace it and run with
 * graphql-js too.
 */
export const DEFAULT_ENGINE: 'compiled' | 'graphql-js' = 'compiled';
