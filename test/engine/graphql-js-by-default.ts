// Replaces src/core/default-engine.ts when the whole suite runs under graphql-js (see README.md).
export const DEFAULT_ENGINE: 'compiled' | 'graphql-js' = 'graphql-js';
