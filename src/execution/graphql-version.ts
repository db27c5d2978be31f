import { versionInfo } from 'graphql';

/** Whether the installed graphql-js is version 17 or newer. */
export const V17: boolean = versionInfo.major >= 17;
