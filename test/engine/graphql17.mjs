// For `node --import`: every import of graphql loads graphql 17, which npm run test:all installs in test/neighbours.
import * as modules from 'node:module';

const { href: parentURL } = new URL('../neighbours/package.json', import.meta.url);

modules.registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'graphql' ? next('graphql17', { ...context, parentURL }) : next(specifier, context),
});
