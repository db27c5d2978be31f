export { EspalierInstrumentation } from '../src/otel/instrumentation.ts';
export type * from '../types/otel.ts';
