export { teardown as default } from './shared.mjs';
