import * as graphql from 'graphql';
import { optionalExport } from '../graphql-version.ts';

/** If graphql is a CommonJS module, only its default export reflects later changes. */
const COMMON_JS = optionalExport('default') as { execute?: unknown } | undefined;
const currentExecute = (): unknown => COMMON_JS?.execute ?? graphql.execute;

const EXECUTE_AT_START = currentExecute();
/** Properties that common libraries set on a function that wraps another one. */
const WRAPPER_MARKS = ['__wrapped', '__original', '__unwrap', '__NR_original'];
/** The function of the last check. */
let checked: unknown;
let hasWarned = false;

/**
 * Warns once per process if a library has replaced `execute` of graphql-js, as some tracers do: the compiled
 * engine does not call it, so the library would not see those operations.
 */
export function warnIfExecuteIsWrapped(): void {
  const execute = currentExecute();
  if (execute === checked) return;
  checked = execute;
  const isMarked = typeof execute === 'function' && WRAPPER_MARKS.some((mark) => mark in execute);
  if (hasWarned || (execute === EXECUTE_AT_START && !isMarked)) return;
  hasWarned = true;
  process.emitWarning(
    'The function execute of graphql has been replaced, probably by a tracer such as ' +
      "@opentelemetry/instrumentation-graphql. espalier's compiled engine does not call it, so operations are missing in " +
      "its traces. Use espalier/otel instead (see https://github.com/espalier-js/espalier/blob/main/docs/observability.md), or set the option engine: 'graphql-js'.",
    { code: 'ESPALIER_EXECUTE_REPLACED' },
  );
}
