/** @tags graphql */
import { versionInfo } from 'graphql';
import { runInProcess } from './run-in-process.ts';

// graphql 17 is an ES module, whose exports cannot be replaced; it has tracing channels instead.
const expected = versionInfo.major >= 17 ? '[]' : '["ESPALIER_EXECUTE_REPLACED"]';

it.each(['before', 'after'])('the engine warns once if execute was replaced %s it was loaded', (when) => {
  expect(runInProcess('test/engine/replaced-execute.ts', [], [when])).toContain(expected);
});

it('the engine does not warn if execute is the original function', () => {
  expect(runInProcess('test/engine/replaced-execute.ts', [], ['never'])).toBe('[]');
});
