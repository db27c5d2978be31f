import { versionInfo } from 'graphql';

/** Whether the graphql in force is 17 or newer; what differs between the majors is decided by this once. */
export const V17: boolean = versionInfo.major >= 17;
