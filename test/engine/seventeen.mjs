// For `node --import`: who imports graphql gets graphql 17, the development dependency graphql17.
import * as modules from 'node:module';

modules.registerHooks({
  resolve: (specifier, context, next) => next(specifier === 'graphql' ? 'graphql17' : specifier, context),
});
