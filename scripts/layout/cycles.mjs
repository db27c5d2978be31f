/** Finds cycles of imports of values: for each file that is on one, a shortest through it, unless it is on a found one. */
export function findCycles(modules) {
  const found = new Set();
  const cycles = [];
  for (const file of modules.keys()) {
    if (found.has(file)) continue;
    const cycle = cycleThrough(modules, file);
    if (cycle === undefined) continue;
    for (const member of cycle) found.add(member);
    cycles.push(cycle);
  }
  return cycles;
}

/** The files of a shortest cycle through a file, in the order of the imports. */
function cycleThrough(modules, start) {
  const queue = [[start]];
  const reached = new Set([start]);
  for (const path of queue) {
    for (const target of modules.get(path.at(-1)).targets) {
      if (target === start && path.length > 1) return path;
      if (!reached.has(target)) queue.push([...path, target]);
      reached.add(target);
    }
  }
  return undefined;
}
