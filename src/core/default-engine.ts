/** The default of the option `engine`. A separate module, which the tests replace to run everything under graphql-js too. */
export const DEFAULT_ENGINE: 'compiled' | 'graphql-js' = 'compiled';
