import { createWarningLog } from '../../logging/warning-log.ts';

/** Reports a problem of the system as a process warning. An equal message is repeated at most once a minute. */
export const warnOfSystem: (error: Error) => void = createWarningLog({
  owner: 'staticFiles',
  type: 'StaticWarning',
  code: 'ESPALIER_STATIC',
});
