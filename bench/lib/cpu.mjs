import { readdirSync, readFileSync } from 'node:fs';

/** CPU microseconds that processes have used so far, all threads, as the scheduler counts them (Linux). */
export function cpuOfProcesses(pids) {
  let nanoseconds = 0;
  for (const pid of pids) {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'latin1').split(' ')[0]);
    }
  }
  return nanoseconds / 1000;
}
