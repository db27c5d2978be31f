import createDebug from 'debug';

/** Loggers of refused requests, by area. A logger writes only if `DEBUG` names its area (`DEBUG=espalier:*`). */
export const debug: Record<'static' | 'graphql' | 'uploads' | 'subscriptions', createDebug.Debugger> = {
  static: createDebug('espalier:static'),
  graphql: createDebug('espalier:graphql'),
  uploads: createDebug('espalier:uploads'),
  subscriptions: createDebug('espalier:subscriptions'),
};
