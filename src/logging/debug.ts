import createDebug from 'debug';

/** Loggers of refused requests, by area. Each writes when `DEBUG` names it (`DEBUG=espalier:*`) and costs a flag test otherwise. */
export const debug: Record<'static' | 'graphql' | 'uploads' | 'subscriptions', createDebug.Debugger> = {
  static: createDebug('espalier:static'),
  graphql: createDebug('espalier:graphql'),
  uploads: createDebug('espalier:uploads'),
  subscriptions: createDebug('espalier:subscriptions'),
};
