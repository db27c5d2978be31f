// Stands in for src/core/default-engine.ts when the whole suite is run under graphql-js (see README.md here).
export const DEFAULT_ENGINE: 'compiled' | 'graphql-js' = 'graphql-js';
