// For `node --import`: every import of graphql loads graphql 17, which npm run test:all installs in test/neighbours. All of
// them get one copy: some modules of src/ are required, and others are imported.
import * as modules from 'node:module';
import { pathToFileURL } from 'node:url';

const { resolve } = modules.createRequire(new URL('../neighbours/package.json', import.meta.url));
const graphql = { url: pathToFileURL(resolve('graphql17')).href, format: 'commonjs', shortCircuit: true };

modules.registerHooks({
  resolve: (specifier, context, next) => (specifier === 'graphql' ? graphql : next(specifier, context)),
});
