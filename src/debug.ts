import createDebug from 'debug';

/** Says why a request was refused when `DEBUG=espalier:*` (or one area) is set; a flag test otherwise. */
export const refusals: Record<'static' | 'graphql' | 'uploads' | 'subscriptions', createDebug.Debugger> = {
  static: createDebug('espalier:static'),
  graphql: createDebug('espalier:graphql'),
  uploads: createDebug('espalier:uploads'),
  subscriptions: createDebug('espalier:subscriptions'),
};
