import type { Engine } from '../graphql/contract.ts';
import { executing, graphqlJs } from '../graphql/execute.ts';
import type { CoreSettings } from '../graphql/settings.ts';
import { compiled } from './engine.ts';

/** The engine an option names. */
export function engineOf(engine: CoreSettings['engine']): Engine {
  if (engine === 'compiled') return compiled;
  return engine === 'graphql-js' ? graphqlJs : executing(engine);
}
